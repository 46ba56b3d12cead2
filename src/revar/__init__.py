"""revar: data collection for policy evaluation.

Decide which actions to try so that a target policy's value is known with the smallest error,
collect the data, and report the value with a confidence interval. Public names are loaded when
they are first used, so that `import revar` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from revar.campaigns.campaign import Campaign as Campaign
    from revar.campaigns.storage import open_storage as open_storage
    from revar.client.asynchronous import connect_async as connect_async
    from revar.client.connection import connect as connect
    from revar.datasets.files import append_dataset as append_dataset
    from revar.datasets.files import load_dataset as load_dataset
    from revar.datasets.files import save_dataset as save_dataset
    from revar.datasets.minari import from_minari as from_minari
    from revar.datasets.minari import to_minari as to_minari
    from revar.environments.observations import Bins as Bins
    from revar.environments.opening import EnvironmentLike as EnvironmentLike
    from revar.environments.opening import to_gymnasium as to_gymnasium
    from revar.environments.tables import from_gymnasium as from_gymnasium
    from revar.evaluation.advice import advise as advise
    from revar.evaluation.aggregation import check_aggregation as check_aggregation
    from revar.evaluation.comparison import ComparisonResult as ComparisonResult
    from revar.evaluation.evaluate import compare as compare
    from revar.evaluation.evaluate import evaluate as evaluate
    from revar.evaluation.result import EvaluationResult as EvaluationResult
    from revar.evaluation.run import EvaluationError as EvaluationError
    from revar.evaluation.stored import evaluate_data as evaluate_data
    from revar.model.budget import Budget as Budget
    from revar.model.episodes import Episodes as Episodes
    from revar.model.files import load_mdp as load_mdp
    from revar.model.files import save_mdp as save_mdp
    from revar.model.limits import Limits as Limits
    from revar.model.mdp import TabularMDP as TabularMDP
    from revar.model.question import Best as Best
    from revar.model.question import Difference as Difference
    from revar.model.question import Question as Question
    from revar.model.question import Values as Values
    from revar.model.statistics import VisitStatistics as VisitStatistics
    from revar.model.task import Task as Task
    from revar.model.trajectory import Dataset as Dataset
    from revar.model.trajectory import Trajectory as Trajectory
    from revar.policies.continuous import DeterministicPolicy as DeterministicPolicy
    from revar.policies.continuous import GaussianPolicy as GaussianPolicy
    from revar.policies.forms import epsilon_greedy as epsilon_greedy
    from revar.policies.forms import policy_from_predictor as policy_from_predictor
    from revar.policies.forms import uniform_policy as uniform_policy
    from revar.policies.interface import PolicyLike as PolicyLike
    from revar.policies.stable_baselines import policy_from_sb3 as policy_from_sb3
    from revar.problems import find_problem as find_problem
    from revar.progress import progress_bar as progress_bar
    from revar.simulation.simulate import simulate as simulate
    from revar.strategies.strategy import StrategyLike as StrategyLike
    from revar.theory.costs import estimation_variance as estimation_variance
    from revar.theory.costs import one_step_costs as one_step_costs
    from revar.theory.flow import optimal_flow as optimal_flow
    from revar.theory.importance import doubly_robust_variance as doubly_robust_variance
    from revar.theory.importance import importance_sampling_gradient as importance_sampling_gradient
    from revar.theory.importance import importance_sampling_variance as importance_sampling_variance
    from revar.theory.importance import per_decision_variance as per_decision_variance
    from revar.theory.proportions import oracle_mse as oracle_mse
    from revar.theory.proportions import oracle_mse_bound as oracle_mse_bound
    from revar.theory.proportions import regret_bound as regret_bound
    from revar.theory.proportions import sampling_proportions as sampling_proportions
    from revar.theory.values import occupancy as occupancy
    from revar.theory.values import policy_value as policy_value
    from revar.theory.values import return_variance as return_variance
    from revar.theory.values import state_values as state_values

__version__ = "0.1.0"

_HOMES = {
    "Campaign": "revar.campaigns.campaign",
    "open_storage": "revar.campaigns.storage",
    "connect": "revar.client.connection",
    "connect_async": "revar.client.asynchronous",
    "append_dataset": "revar.datasets.files",
    "load_dataset": "revar.datasets.files",
    "save_dataset": "revar.datasets.files",
    "from_minari": "revar.datasets.minari",
    "to_minari": "revar.datasets.minari",
    "advise": "revar.evaluation.advice",
    "check_aggregation": "revar.evaluation.aggregation",
    "ComparisonResult": "revar.evaluation.comparison",
    "compare": "revar.evaluation.evaluate",
    "evaluate": "revar.evaluation.evaluate",
    "DeterministicPolicy": "revar.policies.continuous",
    "GaussianPolicy": "revar.policies.continuous",
    "epsilon_greedy": "revar.policies.forms",
    "policy_from_predictor": "revar.policies.forms",
    "uniform_policy": "revar.policies.forms",
    "EvaluationResult": "revar.evaluation.result",
    "EvaluationError": "revar.evaluation.run",
    "evaluate_data": "revar.evaluation.stored",
    "simulate": "revar.simulation.simulate",
    "Bins": "revar.environments.observations",
    "EnvironmentLike": "revar.environments.opening",
    "to_gymnasium": "revar.environments.opening",
    "from_gymnasium": "revar.environments.tables",
    "TabularMDP": "revar.model.mdp",
    "Budget": "revar.model.budget",
    "Limits": "revar.model.limits",
    "Episodes": "revar.model.episodes",
    "load_mdp": "revar.model.files",
    "save_mdp": "revar.model.files",
    "Best": "revar.model.question",
    "Difference": "revar.model.question",
    "Question": "revar.model.question",
    "Values": "revar.model.question",
    "VisitStatistics": "revar.model.statistics",
    "Task": "revar.model.task",
    "Dataset": "revar.model.trajectory",
    "Trajectory": "revar.model.trajectory",
    "PolicyLike": "revar.policies.interface",
    "policy_from_sb3": "revar.policies.stable_baselines",
    "find_problem": "revar.problems",
    "progress_bar": "revar.progress",
    "oracle_mse_bound": "revar.theory.proportions",
    "regret_bound": "revar.theory.proportions",
    "StrategyLike": "revar.strategies.strategy",
    "estimation_variance": "revar.theory.costs",
    "one_step_costs": "revar.theory.costs",
    "optimal_flow": "revar.theory.flow",
    "doubly_robust_variance": "revar.theory.importance",
    "importance_sampling_gradient": "revar.theory.importance",
    "importance_sampling_variance": "revar.theory.importance",
    "per_decision_variance": "revar.theory.importance",
    "oracle_mse": "revar.theory.proportions",
    "sampling_proportions": "revar.theory.proportions",
    "occupancy": "revar.theory.values",
    "policy_value": "revar.theory.values",
    "return_variance": "revar.theory.values",
    "state_values": "revar.theory.values",
}
_PACKAGES = ("strategies", "estimators", "problems")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _PACKAGES:
        value = importlib.import_module(f"revar.{name}")
    else:
        raise AttributeError(f"module 'revar' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_PACKAGES})
