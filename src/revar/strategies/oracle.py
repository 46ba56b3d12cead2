"""The paper's oracle: Theorem 1's proportions from the true model, tracked."""

from dataclasses import dataclass
from typing import ClassVar

from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies
from revar.theory.proportions import sampling_proportions


@strategies.register("oracle")
@dataclass(frozen=True)
class Oracle(Strategy):
    """Knows the model and matches b* of Theorem 1 (Algorithm 2 off trees) by argmax b*/T."""

    id: ClassVar[str] = "oracle"

    @property
    def needs_model(self) -> bool:
        """It is the oracle."""
        return True

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:  # noqa: ARG002
        """The optimal proportions, for good."""
        model = task.known_model("the oracle")
        behavior = sampling_proportions(model, task.policy).behavior
        return Plan(behavior[None], Selection.TRACK)
