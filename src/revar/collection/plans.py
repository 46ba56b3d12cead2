"""Planner and follower: which plan is due, and which action it asks for. Asking changes nothing.

`Planner.plan` makes plans. `PlanInForce.choose_action` follows one; what was taken under it changes
only where an action is taken or an episode ends.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.validation import SUM_TOLERANCE
from revar.strategies.selection import DRAWN, Selection, UniformDraws, choose
from revar.strategies.strategy import Plan, Strategy, make_plan

NOTHING_TAKEN: IntArray = np.zeros((0, 0, 0), dtype=np.int64)


class Decision(NamedTuple):
    """An action, its propensity (NaN if it was not sampled), and how many numbers were drawn."""

    action: int
    propensity: float
    draws: int


class PlanBasis(NamedTuple):
    """What a plan is made of: a task, statistics, and the states whose rows are known."""

    task: Task
    statistics: VisitStatistics
    covered: frozenset[int]


class PlanInForce:
    """A plan while it is followed: actions taken under it, and episodes finished."""

    def __init__(self, plan: Plan, strategy_id: str, covered: frozenset[int] | None = None) -> None:
        self.plan = plan
        self.strategy_id = strategy_id
        self.covered = covered  # the states it was made for; None stands for all
        self.episodes = 0
        # By table and state, where shares are followed step by step.
        self.taken: dict[tuple[int, int], IntArray] = {}  # [1, 1, A]
        # The same numbers: a memoryview counts in a fraction of the time that an array takes.
        self._counts: dict[tuple[int, int], memoryview] = {}
        self.counts_taken = plan.selection is Selection.FOLLOW
        self._tables = len(plan.scores)
        self._by_step = plan.by_step
        self._selection = int(plan.selection)  # numba types a number faster than an enum
        # By table and state: checked scores [1, 1, A], and the mean of the target policies [1, A].
        self._rows: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}

    @property
    def expired(self) -> bool:
        """Whether it has served as long as it should, so that a new plan is due."""
        return self.plan.lasts is not None and self.episodes >= self.plan.lasts

    def choose_action(
        self,
        episode: int,
        step: int,
        state: int,
        policies: FloatArray,
        visits: IntArray,
        rng: UniformDraws,
        without_data: Callable[[FloatArray], FloatArray] | None = None,
        *,
        remember: bool = True,
    ) -> tuple[int, float]:
        """The action at that step of an episode, and its propensity (NaN if it was not sampled).

        `policies` [J, A] and `visits` [1, A] are the state's rows. `without_data` gives the scores
        [1 or L, 1, A] of a state that the plan does not cover. `remember` False is for a state or
        a row that may yet turn out to be another.
        """
        place = self._table(step, episode), state
        rows = self._rows.get(place) if remember else None
        if rows is None:
            rows = self._rows_at(*place, policies, without_data)
            if remember:
                self._rows[place] = rows
        scores, policy = rows
        taken = NOTHING_TAKEN
        if self.counts_taken:
            taken = self.taken.get(place, NOTHING_TAKEN)
            if taken is NOTHING_TAKEN:
                taken = np.zeros(scores.shape, dtype=np.int64)
        return choose(
            self._selection, self.plan.visits_first, scores, 0, 0, policy, visits, taken, rng
        )

    def take(self, episode: int, step: int, state: int, action: int) -> None:
        """Count an action taken at that step and state, where shares are followed step by step."""
        if not self.counts_taken:
            return
        place = self._table(step, episode), state
        counts = self._counts.get(place)
        if counts is None:
            none = np.zeros((1, 1, self.plan.scores.shape[2]), dtype=np.int64)
            counts = self._counts[place] = self.taken.setdefault(place, none).reshape(-1).data
        counts[action] += 1

    def _table(self, step: int, episode: int) -> int:
        return step if self._by_step else episode % self._tables

    def _rows_at(
        self,
        table: int,
        state: int,
        policies: FloatArray,
        without_data: Callable[[FloatArray], FloatArray] | None,
    ) -> tuple[FloatArray, FloatArray]:
        """A state's scores, checked, [1, 1, A]; and the mean of the target policies, [1, A]."""
        if without_data is None or self.covered is None or state in self.covered:
            scores = self.plan.scores[table : table + 1, state : state + 1]
        else:
            known = without_data(policies)
            table = min(table, len(known) - 1)
            scores = known[table : table + 1]
        if self.plan.selection in DRAWN:
            total = float(scores.sum())
            if abs(total - 1.0) > SUM_TOLERANCE:
                raise InputError(
                    f"strategy {self.strategy_id!r} gives the actions of state {state} "
                    f"probabilities that sum to {total:.12g}; they must sum to 1"
                )
        elif not policies.any():
            raise InputError(f"the target policy takes no action in state {state}")
        return scores, policies if len(policies) == 1 else policies.mean(axis=0, keepdims=True)


class Planner:
    """What plan is due, and what it is made from. Asking twice changes nothing."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        # Remembered, because a plan that is looked at is often put in force next.
        self._latest: tuple[Task, VisitStatistics, int, Plan] | None = None
        self.made = 0  # plans

    def plan(
        self, task: Task, statistics: VisitStatistics, covered: frozenset[int] | None = None
    ) -> PlanInForce:
        """The plan that follows from the statistics; nothing has been taken under it yet."""
        if self._latest is None or not self._is_latest(task, statistics):
            plan = make_plan(self.strategy, task, statistics)
            self._latest = task, statistics, statistics.recorded, plan
            self.made += 1
        return PlanInForce(self._latest[3], self.strategy.id, covered)

    def scores_without_data(self, task: Task) -> FloatArray:
        """What the strategy plans for a task of a single state without data, [1 or L, 1, A]."""
        plan = make_plan(self.strategy, task, VisitStatistics(1, task.actions))
        scores = plan.scores
        if plan.selection in DRAWN:
            total = scores.sum(axis=2, keepdims=True)
            scores = np.where(total > 0, scores / np.where(total > 0, total, 1.0), task.policy)
        return scores

    def _is_latest(self, task: Task, statistics: VisitStatistics) -> bool:
        """Whether the plan made last was made of the same."""
        assert self._latest is not None
        before, read, recorded, _ = self._latest
        return (
            read is statistics
            and recorded == statistics.recorded
            and (before.horizon, before.discount) == (task.horizon, task.discount)
            and before.budget == task.budget
            and before.model is task.model
            and before.initial is task.initial
            and np.array_equal(before.policies, task.policies)
        )
