"""Target policies in the forms that users have them in: tables, functions, trained models."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revar.environments.opening import import_object
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.records import in_a_line
from revar.model.validation import as_floats, check_count, check_share
from revar.policies.interface import (
    ask_all,
    check_predictor,
    is_batched,
    no_row,
    predict_best,
    refuse_class,
    row_of_action,
    stack,
)
from revar.policies.saved_models import load_model
from revar.policies.stable_baselines import read_tensor

# From an observation to the probability of every action.
ObservationPolicy = Callable[[Any], Any]


# The policies made below are records, not closures, so that they can be sent to workers.


@dataclass(frozen=True, eq=False, repr=False)
class Constant:
    """The same probabilities whatever is observed."""

    row: FloatArray  # [A]

    __repr__ = in_a_line

    def __call__(self, observation: Any) -> FloatArray:
        """The row."""
        del observation
        return self.row


@dataclass(frozen=True, eq=False)
class _EpsilonGreedy:
    policy: ObservationPolicy
    epsilon: float
    actions: int

    def __call__(self, observation: Any) -> FloatArray:
        answer = as_floats(self.policy(observation), "what the policy answers")
        if answer.shape != (self.actions,):
            if answer.size != 1:
                raise InputError(
                    f"the policy gives {answer.size} numbers at observation {observation!r}; there "
                    f"are {self.actions} actions"
                )
            answer = answer.reshape(())
        if np.isnan(answer).any():
            raise InputError(f"the policy gives NaN at observation {observation!r}")
        return _soften(answer, answer.ndim == 1, self.epsilon, self.actions)


@dataclass(frozen=True, eq=False, repr=False)
class SoftTable:
    """What `epsilon_greedy` makes of an array; indexed like one."""

    table: FloatArray  # [*observations, A]

    __repr__ = in_a_line

    def __call__(self, observation: Any) -> FloatArray:
        """The row of an observation that is its own index."""
        return np.asarray(self.table[observation])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.table, dtype=dtype, copy=copy)


@dataclass(frozen=True, eq=False)
class OrAction:
    """A user's function: it gives probabilities, or an action, which is then certain."""

    function: ObservationPolicy
    actions: int
    first: int = 0  # what the first action is called

    def __call__(self, observation: Any) -> Any:
        """The probabilities."""
        answer = self.function(observation)
        row = row_of_action(answer, self.actions, self.first, observation)
        if row is None and (isinstance(answer, str) or not hasattr(answer, "__len__")):
            raise no_row(answer, observation)
        return answer if row is None else row


@dataclass(frozen=True, eq=False)
class _OneByOne:
    """A policy that takes observations side by side, at a single one."""

    policy: Any

    def __call__(self, observation: Any) -> Any:
        return ask_all(self.policy, [observation])[0]


def ask_one_by_one(policy: ObservationPolicy) -> ObservationPolicy:
    """The same as a function of a single observation."""
    return _OneByOne(policy) if is_batched(policy) else policy


@dataclass(frozen=True, eq=False)
class _Predicted:
    model: Any

    def __call__(self, observation: Any) -> int:
        seen = stack([observation]) if is_batched(self.model) else observation
        return int(np.asarray(predict_best(self.model, seen)).ravel()[0])


@dataclass(frozen=True, eq=False)
class _Distribution:
    model: Any
    epsilon: float

    def __call__(self, observation: Any) -> FloatArray:
        tensor, _ = self.model.policy.obs_to_tensor(observation)
        chances = self.model.policy.get_distribution(tensor).distribution.probs
        row = read_tensor(chances).ravel()
        row = row / row.sum()  # single precision sums to 1 only nearly
        return np.asarray((1.0 - self.epsilon) * row + self.epsilon / row.size)


def _soften(found: FloatArray, by_row: bool, epsilon: float, actions: int) -> FloatArray:
    """Probabilities from actions, or from values whose largest in the last axis is best."""
    best = np.asarray(np.argmax(found, axis=-1) if by_row else found)
    none = ~((best >= 0) & (best < actions) & (best == np.floor(best)))
    if none.any():
        raise InputError(f"the greedy action is {best[none][0]:g}; there are {actions} actions")
    return np.asarray((1.0 - epsilon) * np.eye(actions)[best.astype(int)] + epsilon / actions)


def uniform_policy(actions: int) -> ObservationPolicy:
    """Every action equally often, whatever is observed.

    Parameters
    ----------
    actions
        How many there are.
    """
    return Constant(np.full(check_count(actions, "actions"), 1.0 / actions))


def epsilon_greedy(policy: Any, epsilon: float, actions: int) -> ObservationPolicy:
    """The policy's best action with probability 1 - epsilon, otherwise any action.

    Parameters
    ----------
    policy
        A function from an observation to an action's number, or to probabilities or values of all
        actions, of which the largest is taken; or an array of them: `[*observations, actions]`, or
        `[*observations]` of numbers.
    epsilon
        How often any action is taken.
    actions
        How many there are.
    """
    share, count = check_share(epsilon, "epsilon"), check_count(actions, "actions")
    if callable(policy):
        return _EpsilonGreedy(ask_one_by_one(policy), share, count)
    table = as_floats(policy, "policy")
    for place in np.argwhere(np.isnan(table)).tolist():
        raise InputError(f"policy{place} is NaN")
    return SoftTable(_soften(table, table.ndim > 1 and table.shape[-1] == count, share, count))


def policy_from_predictor(
    model: Any, actions: int, *, epsilon: float = 0.0, deterministic: bool = True
) -> ObservationPolicy:
    """A trained model with `predict`, as Stable-Baselines3 has it, as a target policy.

    Parameters
    ----------
    model
        `model.predict(observation, deterministic=True)` gives (action, state).
    actions
        How many there are.
    epsilon
        How often any action is taken in the place of the model's.
    deterministic
        False takes the model's own action probabilities, which are read from
        `model.policy.get_distribution(...)`.
    """
    check_predictor(model)
    if not deterministic:
        return _Distribution(model, check_share(epsilon, "epsilon"))
    return epsilon_greedy(_Predicted(model), epsilon, actions)


def load_policy(name: str, epsilon: float | None = None, actions: int | None = None) -> Any:
    """A policy by name: uniform, a .npy or .npz file, a model's .zip, or module:function."""
    policy: Any
    if name == "uniform":
        policy = name
    elif Path(name).suffix in (".npy", ".npz"):
        policy = _table_of(name)
    elif Path(name).suffix == ".zip":
        policy = load_model(name)
    elif ":" in name:
        policy = import_object(name, "policy")
    else:
        raise InputError(
            f"policy {name!r} is not known; give 'uniform', a .npy or .npz file, the .zip of a "
            f"Stable-Baselines3 model, or 'module:function'"
        )
    if epsilon is None:
        return policy
    if actions is None or isinstance(policy, str):
        raise InputError("epsilon= needs a policy that prefers an action")
    if callable(getattr(policy, "predict", None)):
        return policy_from_predictor(policy, actions, epsilon=epsilon)
    return epsilon_greedy(policy, epsilon, actions)


def _table_of(name: str) -> FloatArray:
    try:
        content = np.load(name, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{name}: no such file") from None
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{name} holds no array ({error})") from None
    if isinstance(content, np.ndarray):
        return content
    with content:
        names = content.files
        if "policy" not in names and len(names) != 1:
            raise InputError(f"{name} has arrays {names}; the policy must be called 'policy'")
        return np.asarray(content["policy" if "policy" in names else names[0]])


def fit_table(
    policy: Any, table: FloatArray, shape: tuple[int, ...], actions: int, first: int = 0
) -> FloatArray:
    """The probabilities of an array policy over observations of that shape, [*shape, A].

    An array [*shape] of actions, which count from `first`, takes them for certain.
    """
    wanted = (*shape, actions)
    if table.shape == wanted:
        return table
    if table.shape != shape:
        raise InputError(
            f"policy has shape {table.shape}; for these observations it is {wanted}, or {shape} of "
            f"actions"
        )
    if np.asarray(policy).dtype.kind not in "biu":
        raise InputError(
            f"policy has shape {shape}, one number for each observation, and they are no actions, "
            f"which are whole numbers; probabilities have shape {wanted}, and "
            f"revar.epsilon_greedy makes them"
        )
    places = table.astype(np.int64) - first
    outside = (places < 0) | (places >= actions)
    if outside.any():
        raise InputError(
            f"policy has the action {table[outside][0]:g}; actions are {first} to "
            f"{first + actions - 1}"
        )
    return np.asarray(np.eye(actions)[places])


def resolve_policy(policy: Any, actions: int, first: int = 0) -> Any:
    """A policy in any form as a function of the observation or, if it is a table, as it is.

    A function may answer with one of the actions, which count from `first`.
    """
    if isinstance(policy, str | Path):
        policy = load_policy(str(policy))
    if isinstance(policy, str):
        policy = uniform_policy(actions)
    refuse_class(policy)
    if callable(getattr(policy, "predict", None)):
        policy = policy_from_predictor(policy, actions)
    if isinstance(policy, SoftTable):
        return policy.table
    if not callable(policy):
        return policy
    single = ask_one_by_one(policy)
    ours = isinstance(policy, Constant | _EpsilonGreedy | _Distribution)
    return single if ours else OrAction(single, actions, first)
