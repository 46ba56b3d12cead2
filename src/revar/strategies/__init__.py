"""How data is collected: one file a strategy, each deciding from statistics alone."""

from revar.strategies.bandit import BanditReducedVariance
from revar.strategies.bpg import BehaviorPolicyGradient
from revar.strategies.cb_var import ConfidenceBoundVariance
from revar.strategies.dopt import DoublyOptimal
from revar.strategies.flow import Flow
from revar.strategies.flow_oracle import FlowOracle
from revar.strategies.odi import OfflineDataInformed
from revar.strategies.on_policy import OnPolicy
from revar.strategies.oracle import Oracle
from revar.strategies.reduced_variance import ReducedVariance
from revar.strategies.ros import RobustOnPolicy
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, find_strategy, strategies
from revar.strategies.uniform import Uniform

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
