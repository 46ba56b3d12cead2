"""Collection step by step where all states are known: statistics, plan, and the next action."""

import numpy as np

from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.simulation.standing import StandingPlan
from revar.strategies.strategy import Strategy, make_plan


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
        self.standing: StandingPlan | None = None
        self._step = 0

    def begin(self, state: int) -> None:
        """An episode begins in `state`."""
        self._step = 0
        self._plan_in_force()  # from finished episodes, before this one counts
        self.statistics.start_episode(state)

    def act(self, state: int) -> tuple[int, float]:
        """The action to take in `state`, and its propensity (NaN if it was not sampled)."""
        standing = self._plan_in_force()
        action, propensity = standing.action(
            self._step, state, self.task.policy, self.statistics.visits, self.rng
        )
        standing.note(self._step, state, action)
        return action, propensity

    def observe(self, state: int, action: int, reward: float, successor: int) -> None:
        """`action` in `state` gave `reward` and led to `successor`, or ENDED."""
        self.statistics.record_step(state, action, reward, successor)
        self._step += 1

    def end(self) -> None:
        """The episode is over."""
        if self.standing is not None:
            self.standing.episodes += 1

    def _plan_in_force(self) -> StandingPlan:
        if self.standing is None or self.standing.due:
            plan = make_plan(self.strategy, self.task, self.statistics)
            self.standing = StandingPlan(plan, self.strategy.id)
        return self.standing
