"""ROS: the actions that the target policy takes and the data still lacks."""

from dataclasses import dataclass
from typing import ClassVar

from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies


@strategies.register("ros")
@dataclass(frozen=True)
class RobustOnPolicy(Strategy):
    """Robust on-policy sampling: argmax pi(a|s) - T(s,a)/T(s), tabular and deterministic.

    Zhong, Zhang, Schaefer, Albrecht and Hanna (2022), "Robust On-Policy Sampling for
    Data-Efficient Policy Evaluation in Reinforcement Learning". Data that looks more on-policy
    than on-policy samples do. The paper adapts a parametrized policy by a gradient step; with one
    parameter a pair and a large step it takes the most under-sampled action. In a state without
    visits the gradient is zero, and the action is drawn from the target policy.

    The paper's estimator is the plain mean of returns. It has no propensities here, and certainty
    equivalence, which equals it on a tree with deterministic transitions once the frequencies
    match the policy, is used instead.
    """

    id: ClassVar[str] = "ros"

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:  # noqa: ARG002
        """The target policy's shares, for good."""
        return Plan(task.policy[None], Selection.MATCH)
