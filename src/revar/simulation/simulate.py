"""simulate: many independent runs of a strategy on a known model."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revar.errors import InputError
from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.estimator import Estimator, find_estimator
from revar.model.mdp import TabularMDP
from revar.model.structure import reachable_layers
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset
from revar.model.validation import checked_count, checked_episodes, checked_whole
from revar.simulation import plain
from revar.simulation.job import Job
from revar.simulation.kernel import BY_NAME, Ledger, Log, play_run
from revar.simulation.parallel import Progress, available_threads, drive
from revar.simulation.result import SimulationResult
from revar.simulation.signatures import pointer_to, prepare
from revar.simulation.world import World
from revar.strategies.reduced_variance import replan
from revar.strategies.rule import CompiledRule, Memory, Question, leave
from revar.strategies.selection import Selection
from revar.strategies.strategy import Strategy, find_strategy, shown_to
from revar.theory.values import policy_value


def simulate(
    mdp: TabularMDP,
    policy: Any,
    strategy: str | Strategy,
    *,
    episodes: int,
    runs: int,
    seed: int = 0,
    first_run: int = 0,
    checkpoints: ArrayLike | None = None,
    estimator: str | Estimator = "certainty-equivalence",
    threads: int | None = None,
    keep_episodes: bool = False,
    progress: Progress | None = None,
    compiled: bool | None = None,
) -> SimulationResult:
    """Collect `episodes` episodes with `strategy`, `runs` times over, and estimate the value.

    Run i draws from its own stream, child i of SeedSequence(seed): the result depends neither on
    `threads` nor on the number of other runs. Runs are numbered from `first_run`, so that a large
    simulation can be done in parts. Estimates are made at `checkpoints` (episode
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
    checked_whole(seed, "seed")
    checked_whole(first_run, "first_run")
    task = Task.of(mdp, policy, episodes=episodes)
    job = Job.of(
        mdp, task, collector, estimates_by, seed, first_run, runs, checkpoints, keep_episodes
    )
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
        interrupted=bool(job.stop[0]),
        datasets=tuple(job.datasets[run] for run in ended) if keep_episodes else (),
    )


def _compiled_rule(job: Job) -> CompiledRule | None:
    """The strategy's own rule; or, for a plan that lasts for good, the rule to leave it alone."""
    rule = job.strategy.compiled_rule(
        shown_to(job.strategy, job.task), tree=job.mdp.structure().is_tree
    )
    if rule is None and job.plan.lasts is None:
        follows = job.plan.selection is Selection.FOLLOW
        rule = CompiledRule(Memory.of(job.plan.scores, follows=follows), np.zeros(0))
    return rule


def _compiled_play(job: Job, rule: CompiledRule) -> Callable[[int], bool]:
    mdp, task = job.mdp, job.task
    prepare()
    on_step, on_episode = pointer_to(rule.on_step), pointer_to(rule.on_episode)
    world = World.of(mdp)
    episodes = task.episodes or 0
    question = Question(task.policy, mdp.arrays.initial, mdp.horizon, mdp.discount, episodes)
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, task.policy > 0, mdp.horizon)
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
            mdp.arrays.outcomes,
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


def _plain_play(job: Job) -> Callable[[int], bool]:
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
