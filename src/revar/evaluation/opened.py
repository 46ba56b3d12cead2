"""What an evaluation asks of an environment: one or several, its horizon, actions and states."""

from typing import Any

from revar.environments.bins import Bins
from revar.environments.observations import observations_of
from revar.environments.opening import (
    horizon_of,
    is_environment,
    open_environment,
    refused_opening,
)
from revar.errors import InputError, require_extra
from revar.evaluation.policies import TargetPolicy
from revar.model.mdp import TabularMDP
from revar.problems import Problem, find_problem, problems


def own_policy(env: Any, options: dict[str, Any] | None) -> Any:
    """The target policy that a built-in problem brings along."""
    problem = _built_in(env, options)
    if not isinstance(problem, Problem):
        raise InputError("no policy is given, and only built-in problems bring their own")
    return problem.policy


def own_discount(env: Any, options: dict[str, Any] | None) -> float:
    """The discount of a built-in problem or a model; 1 for an environment, which has none."""
    problem = _built_in(env, options)
    model = problem.mdp if isinstance(problem, Problem) else problem
    return model.discount if isinstance(model, TabularMDP) else 1.0


def _built_in(env: Any, options: dict[str, Any] | None) -> Any:
    if isinstance(env, str) and env in problems.ids():
        return find_problem(env, **(options or {}))
    return env


def opened_for(env: Any, options: dict[str, Any] | None, environments: int) -> Any:
    """The environment, or so many of them side by side."""
    if environments == 1 or hasattr(env, "num_envs"):
        return open_environment(env, options)
    gymnasium = require_extra("gymnasium", "gym")
    if isinstance(env, str) and env in gymnasium.registry:
        try:
            return gymnasium.make_vec(
                env, num_envs=environments, vectorization_mode="sync", **(options or {})
            )
        except Exception as error:
            raise refused_opening(env, error) from error
    if is_environment(env):
        raise InputError("several environments are made from an id, a factory or a model")
    return gymnasium.vector.SyncVectorEnv(
        [lambda: open_environment(env, options) for _ in range(environments)]
    )


def horizon_for(opened: Any, horizon: int | None) -> int:
    """The horizon that is given, or that of the environment or of its sub-environments."""
    return horizon_of(getattr(opened, "envs", [opened])[0], horizon)


def action_count(opened: Any) -> int:
    """How many actions there are; anything but Discrete is refused."""
    spaces = require_extra("gymnasium.spaces", "gym")
    space = getattr(opened, "single_action_space", None) or opened.action_space
    if not isinstance(space, spaces.Discrete):
        raise InputError(f"actions are {space}; they must be Discrete")
    return int(space.n)


def target_for(opened: Any, policy: Any, bins: Bins | None) -> TargetPolicy:
    """The target policy by the environment's states."""
    space = getattr(opened, "single_observation_space", None) or opened.observation_space
    return TargetPolicy(policy, observations_of(space, bins), action_count(opened))
