"""Environments opened from what a user names; their horizon, actions and misbehaviour."""

import importlib
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from revar.environments.simulated import ModelEnvironment
from revar.environments.stand_ins import known_spaces
from revar.errors import InputError, MissingExtraError, kind_of, require_extra
from revar.model.mdp import TabularMDP
from revar.model.validation import check_horizon, check_reward
from revar.problems import Problem, find_problem, problems

# Environments without a time limit that end by themselves, and after how many steps at most.
# Blackjack: two cards count at least 2, every further one adds at least 1, and 22 is too many.
KNOWN_HORIZONS = {"Blackjack-v1": 20}
SEEDS = 2**31  # every environment takes seeds below


class OpenEnvironment(Protocol):
    """An environment as Gymnasium has it, single or a vector of several."""

    def reset(self, *, seed: int | None = ...) -> Any:
        """Begin an episode: the first observation, and `info`."""

    def step(self, action: Any, /) -> Any:
        """Take an action: observation, reward, terminated, truncated, and `info`."""


EnvironmentLike: TypeAlias = str | TabularMDP | Problem | Callable[..., Any] | OpenEnvironment
"""What users may give as an environment: an id, 'module:factory' or the name of a built-in problem,
a model, a function that makes an environment, or an environment.
"""


def open_environment(env: Any, options: dict[str, Any] | None = None) -> Any:
    """Open the Gymnasium environment that is meant; an object is returned as it is."""
    model = built_in_model(env, options)
    if model is not None:
        return ModelEnvironment(model)
    if isinstance(env, str):
        return _by_name(env, options or {})
    _refuse_foreign(env)
    if is_environment(env):
        if options:
            raise InputError("options are for environments that are opened by name")
        return env
    if callable(env):
        return _make(env, getattr(env, "__name__", type(env).__name__), options or {})
    raise InputError(
        f"env is {kind_of(env)}; it must be a Gymnasium environment or its id, "
        f"'module:factory', a function that makes one, a built-in problem or a TabularMDP"
    )


def to_gymnasium(mdp: Any) -> Any:
    """The model as a Gymnasium environment.

    Observations are the states' numbers; the observation after the end is the last state again.
    Episodes are truncated at the horizon.

    Parameters
    ----------
    mdp
        The model.
    """
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp is {kind_of(mdp)}; it must be a TabularMDP")
    require_extra("gymnasium", "gym")
    return ModelEnvironment(mdp)


def open_environments(env: Any, options: dict[str, Any] | None, count: int) -> Any:
    """The environment, or `count` of them side by side."""
    if count == 1 or hasattr(env, "single_observation_space"):
        return open_environment(env, options)
    _refuse_foreign(env)
    gymnasium = require_extra("gymnasium", "gym")
    if isinstance(env, str) and env in gymnasium.registry:
        try:
            return gymnasium.make_vec(
                env, num_envs=count, vectorization_mode="sync", **(options or {})
            )
        except Exception as error:
            raise opening_error(env, error) from error
    if is_environment(env):
        raise InputError("several environments are made from an id, a factory or a model")
    return gymnasium.vector.SyncVectorEnv(
        [lambda: open_environment(env, options) for _ in range(count)]
    )


def built_in_policy(env: Any, options: dict[str, Any] | None) -> Any:
    """The target policy of a built-in problem."""
    problem = _built_in(env, options)
    if not isinstance(problem, Problem):
        raise InputError(
            "no policy is given; give one, such as 'uniform': only built-in problems bring "
            "their own"
        )
    return problem.policy


def built_in_model(env: Any, options: dict[str, Any] | None) -> TabularMDP | None:
    """The model of a built-in problem, or the one that is given; None for an environment."""
    problem = _built_in(env, options)
    model = problem.mdp if isinstance(problem, Problem) else problem
    return model if isinstance(model, TabularMDP) else None


def built_in_discount(env: Any, options: dict[str, Any] | None) -> float:
    """The discount of a built-in problem or a model; 1 for an environment, which has none."""
    model = built_in_model(env, options)
    return 1.0 if model is None else model.discount


def _built_in(env: Any, options: dict[str, Any] | None) -> Any:
    if isinstance(env, str) and env in problems.ids():
        return find_problem(env, **(options or {}))
    return env


def _refuse_foreign(env: Any) -> None:
    """Refuse environments of other libraries, and say what to give instead."""
    kind = kind_of(env)
    if hasattr(env, "num_envs") and not hasattr(env, "single_observation_space"):
        raise InputError(
            f"env is {kind}, several environments as Stable-Baselines3 has them; give the id or "
            f"the function that makes one of them, and environments={env.num_envs} to play them "
            f"side by side"
        )
    if hasattr(env, "possible_agents"):
        raise InputError(
            f"env is {kind}, an environment of several agents as PettingZoo has them; revar "
            f"plays one, so give a Gymnasium environment in which the moves of the others are part "
            f"of a step"
        )


def is_environment(env: Any) -> bool:
    """Whether this is an environment itself, and not a class or function that makes one."""
    methods = (getattr(env, name, None) for name in ("reset", "step"))
    return all(map(callable, methods)) and not isinstance(env, type)


def is_opened_by_id(env: Any) -> bool:
    """Whether this is a simulator that is known by its id or as a model, and not handed in."""
    if isinstance(env, str):
        return not _names_factory(env)
    return isinstance(env, TabularMDP | Problem)


def _names_factory(name: str) -> bool:
    """Whether this is 'module:factory'; Gymnasium has ids of its own like 'module:Name-v0'."""
    return ":" in name and name.partition(":")[2].isidentifier()


def horizon_of(env: Any, horizon: int | None) -> int:
    """The horizon that is given, or else the time limit of the environment (or of its first)."""
    if horizon is not None:
        return check_horizon(horizon)
    env = getattr(env, "envs", [env])[0]
    base = getattr(env, "unwrapped", env)
    spec = getattr(env, "spec", None)
    limit = getattr(spec, "max_episode_steps", None) or _time_limit(env)
    limit = limit or getattr(base, "horizon", None)
    if limit is None and spec is not None:
        limit = KNOWN_HORIZONS.get(spec.id)
    if limit is None:
        name = type(base).__name__ if spec is None else spec.id
        raise InputError(
            f"{name} has no time limit, so that an episode need not end; give horizon="
        )
    return check_horizon(limit)


def action_count(env: Any) -> int:
    """How many actions there are; anything but Discrete is refused."""
    spaces = known_spaces()
    space = getattr(env, "single_action_space", None) or env.action_space
    if not isinstance(space, spaces.Discrete):
        raise InputError(f"actions are {space}; they must be Discrete")
    return int(space.n)


def first_action(env: Any) -> int:
    """What the first of Discrete actions is called."""
    return int((getattr(env, "single_action_space", None) or env.action_space).start)


def check_actions(env: Any, expected: Any) -> None:
    """Refuse an environment whose actions are no longer what they were."""
    actions = env.action_space
    if actions is not expected and actions != expected:
        raise InputError(f"the environment changed its actions from {expected} to {actions}")


def environment_seed(seed: int, episode: int) -> int:
    """What the environment is seeded with for an episode; no two of a run have the same."""
    first = int(np.random.SeedSequence(seed).generate_state(1)[0])
    return (first + episode) % SEEDS


def read_reward(reward: Any) -> float:
    """A reward as a number that statistics can hold."""
    try:
        number = float(reward)
    except (TypeError, ValueError):
        raise InputError(f"the environment gave the reward {reward!r}, not a number") from None
    return check_reward(number, "the environment gave the reward")


def blame_environment(error: Exception, call: str) -> InputError:
    """The sentence about an environment that raised."""
    return InputError(
        f"the environment raised {type(error).__name__} in {call}: {first_line(error)}"
    )


def first_line(error: Exception) -> str:
    """What an error of foreign code says, in a line."""
    return str(error).strip().partition("\n")[0]


def _time_limit(env: Any) -> int | None:
    """What a TimeLimit wrapper says, around an environment that was not made by id."""
    while env is not None:
        limit = getattr(env, "_max_episode_steps", None)
        if limit is not None:
            return int(limit)
        env = getattr(env, "env", None)
    return None


def import_object(path: str, what: str) -> Any:
    """What 'module:name' stands for."""
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise InputError(f"{what} {path!r} is not of the form 'module:name'")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a module may raise whatever it likes while it is imported
        raise InputError(
            f"{what} {path!r}: cannot import {module_name!r} ({describe_error(error)})"
        ) from error
    if not hasattr(module, name):
        raise InputError(f"{what} {path!r}: module {module_name!r} has no {name!r}")
    return getattr(module, name)


def _by_name(name: str, options: dict[str, Any]) -> Any:
    if _names_factory(name):
        made = import_object(name, "environment")
        if not callable(made):
            raise InputError(f"environment {name!r} is {kind_of(made)}, no factory")
        return _make(made, name, options)
    gymnasium = require_extra("gymnasium", "gym")
    try:
        return gymnasium.make(name, **options)
    except Exception as error:
        raise opening_error(name, error) from error


def opening_error(name: str, error: Exception) -> InputError:
    """The sentence about an environment that cannot be made by its name."""
    known = ", ".join(problems.ids())
    return InputError(
        f"environment {name!r} cannot be opened ({describe_error(error)}); besides Gymnasium ids "
        f"and 'module:factory' there are the built-in problems {known}"
    )


def _make(factory: Any, name: str, options: dict[str, Any]) -> Any:
    try:
        env = factory(**options)
    except (InputError, MissingExtraError):
        raise
    except Exception as error:
        raise InputError(
            f"environment {name!r} cannot be made ({describe_error(error)})"
        ) from error
    _refuse_foreign(env)
    if not is_environment(env):
        raise InputError(f"{name!r} made {kind_of(env)}, which is no environment")
    return env


def describe_error(error: Exception) -> str:
    """An error of foreign code with its kind, in a line."""
    text = first_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
