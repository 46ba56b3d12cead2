"""Collection step by step from Python: statistics, the plan in force, and the next action."""

import numpy as np

from revar.errors import InputError
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.validation import SUM_TOLERANCE
from revar.strategies.selection import DRAWN, Selection, choose
from revar.strategies.strategy import Plan, Strategy, made_plan


class Collector:
    """Asks a strategy for actions and tells it what they led to.

    The same rules, in the same order and with the same draws, as the compiled engine.
    """

    def __init__(
        self,
        strategy: Strategy,
        task: Task,
        statistics: VisitStatistics,
        rng: np.random.Generator,
    ) -> None:
        self.strategy = strategy
        self.task = task
        self.statistics = statistics
        self.rng = rng
        self._plan: Plan | None = None
        self._step = 0
        self._episodes_planned = 0  # episodes that the plan in force has seen to their end

    def begin(self, state: int) -> None:
        """An episode begins in `state`."""
        self._step = 0
        self._current_plan()  # from finished episodes, before this one counts
        self.statistics.start_episode(state)

    def act(self, state: int) -> tuple[int, float]:
        """The action to take in `state`, and its propensity (NaN if it was not sampled)."""
        plan = self._current_plan()
        table = min(self._step, plan.scores.shape[0] - 1)
        if plan.selection in DRAWN:
            total = float(plan.scores[table, state].sum())
            if abs(total - 1.0) > SUM_TOLERANCE:
                raise InputError(
                    f"strategy {self.strategy.id!r} gives the actions of state {state} "
                    f"probabilities that sum to {total:.12g}; they must sum to 1"
                )
        elif not self.task.policy[state].any():
            raise InputError(f"the target policy takes no action in state {state}")
        action, propensity = choose(
            int(plan.selection),
            plan.visits_first,
            plan.scores,
            table,
            state,
            self.task.policy,
            self.statistics.visits,
            self._taken,
            self.rng,
        )
        if plan.selection is Selection.FOLLOW:
            self._taken[table, state, action] += 1
        return action, propensity

    def observe(self, state: int, action: int, reward: float, successor: int) -> None:
        """`action` in `state` gave `reward` and led to `successor`, or ENDED."""
        self.statistics.record_step(state, action, reward, successor)
        self._step += 1

    def end(self) -> None:
        """The episode is over."""
        self._episodes_planned += 1

    def _current_plan(self) -> Plan:
        plan = self._plan
        if plan is None or (plan.lasts is not None and self._episodes_planned >= plan.lasts):
            plan = made_plan(self.strategy, self.task, self.statistics)
            self._plan, self._episodes_planned = plan, 0
            follows = plan.selection is Selection.FOLLOW
            self._taken = np.zeros(plan.scores.shape if follows else (0, 0, 0), dtype=np.int64)
        return plan
