"""How data is collected: strategies, each deciding from statistics alone."""

from revar.strategies.bandit import BanditReducedVariance, ConfidenceBoundVariance
from revar.strategies.bpg import BehaviorPolicyGradient
from revar.strategies.fixed_plans import OnPolicy, Oracle, RobustOnPolicy, Uniform
from revar.strategies.flow import Flow, FlowOracle
from revar.strategies.model_based import DoublyOptimal, OfflineDataInformed
from revar.strategies.revar import ReducedVariance
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, find_strategy, strategies

__all__ = [
    "BanditReducedVariance",
    "BehaviorPolicyGradient",
    "ConfidenceBoundVariance",
    "DoublyOptimal",
    "Flow",
    "FlowOracle",
    "OfflineDataInformed",
    "OnPolicy",
    "Oracle",
    "Plan",
    "ReducedVariance",
    "RobustOnPolicy",
    "Selection",
    "Strategy",
    "Uniform",
    "find_strategy",
    "strategies",
]
