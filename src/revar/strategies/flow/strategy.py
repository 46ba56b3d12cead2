"""The strategy "flow", and the oracle that follows the optimal flow of the true model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from revar.model.arrays import FloatArray
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.plan import plan_flow
from revar.strategies.flow.tuning import DEFAULT_TUNING, Tuning
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, next_plan_after, strategies
from revar.theory.flow import optimal_flow


@strategies.register("flow")
@dataclass(frozen=True)
class Flow(Strategy):
    """Follow the optimal flow of the estimated model for the episodes that are left.

    What is left of the budget counts, in its own unit, and plans keep to the limits of the task.
    Nothing needs to be known but the target policy, the horizon and the discount, and nothing
    needs to be tuned: `tuning` is there for studies. Takes only actions that the target policy
    takes. `known_transitions` says that the true transitions are known to strategy and estimator,
    so that only rewards are learned.
    """

    id: ClassVar[str] = "flow"
    estimators: ClassVar[tuple[str, ...]] = ("smallest-error", "certainty-equivalence")
    keeps_limits: ClassVar[bool] = True
    known_transitions: bool = False
    tuning: Tuning = DEFAULT_TUNING

    @property
    def needs_model(self) -> bool:
        """Only where the transitions are known to it."""
        return self.known_transitions

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The optimal behavior for what is left, as far as the statistics tell.

        The target policy itself is sampled until that pays.
        """
        observed = statistics.run_statistics(task.states)
        episode = int(observed.initial_count.sum())
        lasts = next_plan_after(episode, 2, self.tuning.growth) - episode
        behavior = _target_policy(task)
        pays = False
        if episode > 0:
            if self.known_transitions:
                model = task.known_model("flow with known transitions")
                observed = observed.with_known(model.arrays.outcomes)
            pays = plan_flow(
                TaskArrays.observed(task, observed),
                observed,
                self.known_transitions,
                self.tuning,
                episode,
                behavior,
            )
        if pays:
            return Plan(behavior, Selection.FOLLOW, lasts=lasts, visits_first=0)
        return Plan(_target_policy(task), Selection.SAMPLE, lasts=lasts, visits_first=0)


@strategies.register("flow-oracle")
@dataclass(frozen=True)
class FlowOracle(Strategy):
    """Knows the model and follows the behavior of `optimal_flow`, step by step.

    `known_transitions` says whether the estimator knows the transitions, so that only rewards
    have to be learned; `tolerance` is that of `optimal_flow`.
    """

    id: ClassVar[str] = "flow-oracle"
    keeps_limits: ClassVar[bool] = True
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
            task.question,
            known_transitions=self.known_transitions,
            tolerance=self.tolerance,
            cost=None if task.budget is None or task.budget.by_episode else task.visit_cost,
            limits=task.limits,
        )
        return Plan(flow.behavior, Selection.FOLLOW)


def _target_policy(task: Task) -> FloatArray:
    """The target policy at every step, [L, S, A]."""
    return np.repeat(task.policy[None], task.horizon, axis=0)
