"""On-policy collection: simply run the target policy."""

from dataclasses import dataclass
from typing import ClassVar

from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies


@strategies.register("on-policy")
@dataclass(frozen=True)
class OnPolicy(Strategy):
    """Actions drawn from the target policy."""

    id: ClassVar[str] = "on-policy"
    # With ratios of 1 every importance-sampling estimator is Monte Carlo.
    estimators: ClassVar[tuple[str, ...]] = (
        "certainty-equivalence",
        "doubly-robust",
        "monte-carlo",
    )

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:  # noqa: ARG002
        """The target policy, for good."""
        return Plan(task.policy[None], Selection.SAMPLE)
