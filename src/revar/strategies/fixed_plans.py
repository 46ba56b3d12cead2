"""Strategies whose plan is made once and lasts for good: on-policy, uniform, ROS, the oracle."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from revar.errors import InputError
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.selection import Selection
from revar.strategies.strategy import FOR_SAMPLED, Plan, Strategy, strategies
from revar.theory.proportions import sampling_proportions


@strategies.register("on-policy")
@dataclass(frozen=True)
class OnPolicy(Strategy):
    """Actions drawn from the target policy; of several, episodes follow each in turn.

    `shares` are whole numbers, how many episodes of each policy in a round: equal by default.
    """

    id: ClassVar[str] = "on-policy"
    shares: tuple[int, ...] | None = field(default=None, kw_only=True)
    # With ratios of 1 every importance-sampling estimator is Monte Carlo.
    estimators: ClassVar[tuple[str, ...]] = (
        "certainty-equivalence",
        "smallest-error",
        "corrected-return",
        "doubly-robust",
        "monte-carlo",
    )
    keeps_limits: ClassVar[bool] = True  # as far as the target policy does

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:  # noqa: ARG002
        """The target policy, or each in its turn, for good."""
        policies = task.policies
        if task.limits.max_ratio is not None:
            # Ratios are to the mean of the policies, and episodes of one of them exceed it.
            if self.shares is not None:
                raise InputError("shares of on-policy episodes do not go with a max_ratio")
            policies = task.policy[None]
        if self.shares is not None:
            if (
                not isinstance(self.shares, tuple)
                or len(self.shares) != len(policies)
                or not all(isinstance(share, int) and share > 0 for share in self.shares)
            ):
                raise InputError(
                    f"shares are {self.shares!r}; they must be a tuple of a positive whole number "
                    f"for each of {len(policies)} policies"
                )
            policies = np.repeat(policies, self.shares, axis=0)
        return Plan(policies, Selection.SAMPLE, alternates=len(policies) > 1)


@strategies.register("uniform")
@dataclass(frozen=True)
class Uniform(Strategy):
    """Actions drawn evenly from those that a target policy takes; others teach nothing."""

    id: ClassVar[str] = "uniform"
    estimators: ClassVar[tuple[str, ...]] = FOR_SAMPLED

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:  # noqa: ARG002
        """Equal shares, for good."""
        support = (task.policy > 0).astype(np.float64)
        shares = support / support.sum(axis=1, keepdims=True).clip(min=1)
        return Plan(shares[None], Selection.SAMPLE)


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
