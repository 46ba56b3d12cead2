"""The flow oracle: the optimal flow of the true model, followed."""

from dataclasses import dataclass
from typing import ClassVar

from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies
from revar.theory.flow import optimal_flow


@strategies.register("flow-oracle")
@dataclass(frozen=True)
class FlowOracle(Strategy):
    """Knows the model and follows the behavior of `optimal_flow`, step by step.

    `known_transitions` says whether the estimator knows the transitions, so that only rewards
    have to be learned; `tolerance` is that of `optimal_flow`.
    """

    id: ClassVar[str] = "flow-oracle"
    known_transitions: bool = False
    tolerance: float = 1e-3

    @property
    def needs_model(self) -> bool:
        """It is an oracle."""
        return True

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:  # noqa: ARG002
        """The optimal behavior, for good."""
        flow = optimal_flow(
            task.known_model("the flow oracle"),
            task.policy,
            known_transitions=self.known_transitions,
            tolerance=self.tolerance,
        )
        return Plan(flow.behavior, Selection.FOLLOW)
