"""simulate: many independent runs of a strategy on a known model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revar.engine import plain
from revar.engine.kernel import BY_NAME, Ledger, Log, play_run
from revar.engine.parallel import Progress, available_threads, drive
from revar.engine.result import SimulationResult, log_spaced
from revar.engine.signatures import pointer_to, prepare
from revar.engine.world import World
from revar.errors import InputError
from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.estimator import Estimate, Estimator, find_estimator
from revar.model.arrays import FloatArray, IntArray
from revar.model.mdp import TabularMDP
from revar.model.policy import checked_behavior
from revar.model.reachability import reachable_layers
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset
from revar.model.validation import (
    SUM_TOLERANCE,
    as_floats,
    checked_count,
    checked_episodes,
    checked_seed,
)
from revar.strategies.reduced_variance import replan
from revar.strategies.rule import CompiledRule, Memory, Question, leave
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, find_strategy, made_plan, shown_to
from revar.theory.values import policy_value


def simulate(
    mdp: TabularMDP,
    policy: Any,
    strategy: str | Strategy,
    *,
    episodes: int,
    runs: int,
    seed: int = 0,
    checkpoints: ArrayLike | None = None,
    estimator: str | Estimator = "certainty-equivalence",
    threads: int | None = None,
    keep_episodes: bool = False,
    progress: Progress | None = None,
    compiled: bool | None = None,
) -> SimulationResult:
    """Collect `episodes` episodes with `strategy`, `runs` times over, and estimate the value.

    Run i draws from its own stream, child i of SeedSequence(seed): the result depends neither on
    `threads` nor on the number of other runs. Estimates are made at `checkpoints` (episode
    counts; by default log-spaced up to `episodes`). `keep_episodes` keeps every step of every
    run. `progress(done, total)` is called with episode counts about ten times a second. An
    interrupt (Ctrl-C) returns the finished runs, with `complete` False.

    `compiled` False plays in plain Python, as strategies without a compiled rule always do.
    """
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp is a {type(mdp).__name__}; it must be a TabularMDP")
    collector = find_strategy(strategy)
    estimates_by = find_estimator(estimator)
    runs, episodes = checked_count(runs, "runs"), checked_episodes(episodes)
    threads = available_threads() if threads is None else checked_count(threads, "threads")
    checked_seed(seed)
    task = Task.of(mdp, policy, episodes=episodes)
    job = _Job.of(mdp, task, collector, estimates_by, seed, runs, checkpoints, keep_episodes)
    rule = _compiled_rule(job) if compiled is not False else None
    if compiled and rule is None:
        raise InputError(f"strategy {collector.id!r} has no compiled rule")
    play = _compiled_play(job, rule) if rule is not None else _plain_play(job)
    true_value = policy_value(mdp, task.policy)  # before the runs: an interrupt waits for nothing
    ended = drive(
        play,
        job.finished,
        episodes,
        threads=threads if rule is not None else 1,
        progress=progress,
        stop=job.stop,
    )
    complete = ended.size == runs
    return SimulationResult(
        true_value=true_value,
        strategy=collector.id,
        estimator=estimates_by.id,
        checkpoints=job.checkpoints,
        estimates=job.estimates if complete else job.estimates[ended],
        standard_errors=job.standard_errors if complete else job.standard_errors[ended],
        unvisited_probability=job.unvisited if complete else job.unvisited[ended],
        visits=job.visits if complete else job.visits[ended],
        complete=complete,
        datasets=tuple(job.datasets[run] for run in ended) if keep_episodes else (),
    )


@dataclass(frozen=True, eq=False)
class _Job:
    """What is played, and the arrays that the runs fill, one row each."""

    mdp: TabularMDP
    task: Task
    strategy: Strategy
    estimator: Estimator
    seed: int
    checkpoints: IntArray  # [checkpoint]
    keep_episodes: bool
    plan: Plan  # before the first episode
    estimates: FloatArray  # [run, checkpoint]
    standard_errors: FloatArray  # [run, checkpoint]
    unvisited: FloatArray  # [run, checkpoint]
    visits: IntArray  # [run, S, A]
    finished: IntArray  # [run, 1] episodes played
    stop: IntArray  # [1]
    datasets: dict[int, Dataset]

    @classmethod
    def of(
        cls,
        mdp: TabularMDP,
        task: Task,
        strategy: Strategy,
        estimator: Estimator,
        seed: int,
        runs: int,
        checkpoints: ArrayLike | None,
        keep_episodes: bool,
    ) -> "_Job":
        shown = shown_to(strategy, task)
        plan = made_plan(strategy, shown, VisitStatistics(mdp.states, mdp.actions))
        _check_shares(mdp, task.policy, plan)
        if estimator.needs_episodes and plan.selection is not Selection.SAMPLE:
            raise InputError(
                f"estimator {estimator.id!r} needs the probability of every action, and strategy "
                f"{strategy.id!r} chooses deterministically; use 'certainty-equivalence'"
            )
        if estimator.needs_episodes:
            _check_cover(strategy, task.policy, plan)
        points = _checked_checkpoints(checkpoints, task.episodes or 0)
        rows = (runs, points.size)
        return cls(
            mdp,
            task,
            strategy,
            estimator,
            seed,
            points,
            keep_episodes,
            plan,
            np.full(rows, np.nan),
            np.full(rows, np.nan),
            np.full(rows, np.nan),
            np.zeros((runs, mdp.states, mdp.actions), dtype=np.int64),
            np.zeros((runs, 1), dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            {},
        )

    def stream(self, run: int) -> np.random.Generator:
        """The run's own random stream."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(run,)))

    def write(self, run: int, checkpoint: int, estimate: Estimate | None) -> None:
        """Note an estimate; None leaves NaN."""
        if estimate is not None:
            self.estimates[run, checkpoint] = estimate.value
            self.standard_errors[run, checkpoint] = estimate.standard_error
            self.unvisited[run, checkpoint] = estimate.unvisited_probability


def _check_shares(mdp: TabularMDP, policy: FloatArray, plan: Plan) -> None:
    """Scores that an action may be drawn from sum to 1 in every state that can be entered."""
    if plan.selection is Selection.SAMPLE:
        checked_behavior(mdp, plan.scores if len(plan.scores) > 1 else plan.scores[0])
    elif plan.selection is Selection.FOLLOW:
        # The target policy's actions are taken at least once, whatever their shares.
        allowed = np.any(plan.scores > 0, axis=0) | (policy > 0)
        layers = reachable_layers(mdp._outcomes, mdp._initial, allowed, mdp.horizon)
        for t in range(mdp.horizon):
            entered = layers.states[layers.start[t] : layers.start[t + 1]]
            sums = plan.scores[min(t, len(plan.scores) - 1), entered].sum(axis=1)
            wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
            if wrong.any():
                i = int(np.argmax(wrong))
                raise InputError(
                    f"shares of state {entered[i]} at step {t} sum to {sums[i]:.12g}; where they "
                    f"are followed they must sum to 1"
                )


def _check_cover(strategy: Strategy, policy: FloatArray, plan: Plan) -> None:
    """Importance ratios need a behavior that takes whatever the target policy takes."""
    left_out = (policy > 0) & np.any(plan.scores == 0, axis=0)
    if left_out.any():
        state, action = (int(i) for i in np.argwhere(left_out)[0])
        raise InputError(
            f"strategy {strategy.id!r} never takes action {action} in state {state}, which the "
            f"target policy does; use 'certainty-equivalence'"
        )


def _checked_checkpoints(checkpoints: ArrayLike | None, episodes: int) -> IntArray:
    if checkpoints is None:
        return log_spaced(episodes)
    points = np.atleast_1d(as_floats(checkpoints, "checkpoints"))
    if points.ndim != 1 or points.size == 0 or not np.all(np.floor(points) == points):
        raise InputError(f"checkpoints must be whole numbers of episodes; got {checkpoints!r}")
    whole = points.clip(-1, episodes + 1).astype(np.int64)
    if np.any(np.diff(whole) <= 0) or whole[0] < 1 or whole[-1] > episodes:
        raise InputError(
            f"checkpoints must increase from at least 1 to at most episodes = {episodes}; "
            f"got {checkpoints!r}"
        )
    return whole


def _compiled_rule(job: _Job) -> CompiledRule | None:
    """The strategy's own rule; or, for a plan that lasts for good, the rule to leave it alone."""
    rule = job.strategy.compiled_rule(
        shown_to(job.strategy, job.task), tree=job.mdp.structure().is_tree
    )
    if rule is None and job.plan.lasts is None:
        follows = job.plan.selection is Selection.FOLLOW
        rule = CompiledRule(Memory.of(job.plan.scores, follows=follows), np.zeros(0))
    return rule


def _compiled_play(job: _Job, rule: CompiledRule) -> Callable[[int], bool]:
    mdp, task = job.mdp, job.task
    prepare()
    on_step, on_episode = pointer_to(rule.on_step), pointer_to(rule.on_episode)
    world = World.of(mdp)
    episodes = task.episodes or 0
    question = Question(task.policy, mdp._initial, mdp.horizon, mdp.discount, episodes)
    layers = reachable_layers(mdp._outcomes, mdp._initial, task.policy > 0, mdp.horizon)
    revises = np.array([rule.on_step is not leave, rule.on_episode is not leave], dtype=np.int64)
    if rule.on_episode is replan:
        revises[1] = BY_NAME
    in_kernel = isinstance(job.estimator, CertaintyEquivalence)
    known = isinstance(job.estimator, CertaintyEquivalence) and job.estimator.known_transitions
    logging = job.keep_episodes or not in_kernel

    def play(run: int) -> bool:
        log = _empty_log(episodes, mdp.horizon if logging else 0)
        ended = play_run(
            world,
            question,
            layers,
            mdp._outcomes,
            rule.memory,
            rule.parameters,
            on_step,
            on_episode,
            revises,
            rule.known_transitions,
            known,
            in_kernel,
            int(job.plan.selection),
            job.plan.visits_first,
            job.checkpoints,
            Ledger(
                job.estimates[run],
                job.standard_errors[run],
                job.unvisited[run],
                job.visits[run],
                job.finished[run],
            ),
            log,
            job.stream(run),
            job.stop,
        )
        if logging and ended:
            dataset = _dataset(log, mdp.states)
            if not in_kernel:
                for i, count in enumerate(job.checkpoints.tolist()):
                    if job.stop[0] != 0:
                        return False
                    if count >= job.estimator.least_episodes:
                        job.write(run, i, job.estimator.estimate(task, dataset.head(count)))
            if job.keep_episodes:
                job.datasets[run] = dataset
        return bool(ended)

    return play


def _plain_play(job: _Job) -> Callable[[int], bool]:
    world = World.of(job.mdp)

    class Stopped(Exception):  # noqa: N818 - not an error
        pass

    def play(run: int) -> bool:
        def finished(episode: int) -> None:
            job.finished[run, 0] = episode
            if job.stop[0] != 0 and episode < (job.task.episodes or 0):
                raise Stopped

        try:
            estimates, statistics, dataset = plain.play_run(
                job.mdp,
                world,
                job.task,
                job.strategy,
                job.estimator,
                job.task.episodes or 0,
                job.checkpoints,
                job.stream(run),
                finished,
            )
        except Stopped:
            return False
        for i, estimate in enumerate(estimates):
            job.write(run, i, estimate)
        job.visits[run] = statistics.visits
        if job.keep_episodes:
            job.datasets[run] = dataset
        return True

    return play


def _empty_log(episodes: int, horizon: int) -> Log:
    steps = episodes * horizon
    return Log(
        np.zeros(episodes + 1 if steps else 1, dtype=np.int64),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps),
    )


def _dataset(log: Log, states: int) -> Dataset:
    steps = int(log.start[-1])
    return Dataset(
        log.start,
        log.states[:steps],
        log.actions[:steps],
        log.rewards[:steps],
        np.where(log.successors[:steps] == states, ENDED, log.successors[:steps]),
        log.propensities[:steps],
    )
