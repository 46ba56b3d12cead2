"""What `simulate` plays: the checked question, and the arrays that the runs fill."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from revar.errors import InputError
from revar.estimators.estimator import Estimate, Estimator
from revar.model.arrays import FloatArray, IntArray
from revar.model.mdp import TabularMDP
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.task import Task, checked_behavior
from revar.model.trajectory import Dataset
from revar.model.validation import SUM_TOLERANCE, as_floats
from revar.simulation.result import log_spaced
from revar.strategies.selection import DRAWN, Selection
from revar.strategies.strategy import Plan, Strategy, made_plan, shown_to


@dataclass(frozen=True, eq=False)
class Job:
    """What is played, and the arrays that the runs fill, one row each."""

    mdp: TabularMDP
    task: Task
    strategy: Strategy
    estimator: Estimator
    seed: int
    first_run: int
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
        first_run: int,
        runs: int,
        checkpoints: ArrayLike | None,
        keep_episodes: bool,
    ) -> "Job":
        """The job with nothing played yet; raises where strategy and estimator do not fit."""
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
            first_run,
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
        """The random stream of its own that row `run` of the arrays is played with."""
        number = self.first_run + run
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))

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
    elif plan.selection in DRAWN:
        # The target policy's actions may be taken whatever their shares.
        allowed = np.any(plan.scores > 0, axis=0) | (policy > 0)
        layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, allowed, mdp.horizon)
        for t in range(mdp.horizon):
            entered = layers.states[layers.start[t] : layers.start[t + 1]]
            sums = plan.scores[min(t, len(plan.scores) - 1), entered].sum(axis=1)
            wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
            if wrong.any():
                i = int(np.argmax(wrong))
                raise InputError(
                    f"shares of state {entered[i]} at step {t} sum to {sums[i]:.12g}; where they "
                    f"are followed or matched they must sum to 1"
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
