"""What episodes ask of a policy: actions, with the noise that they were drawn from."""

import inspect
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from revar.environments.opening import first_line
from revar.environments.spaces import Layout, NumbersLayout, PartsLayout
from revar.errors import InputError, kind_of
from revar.model.arrays import FloatArray
from revar.model.law import Law

Row = Any  # a row of numbers: a list or an array


class Draw(NamedTuple):
    """What a policy does at n observations."""

    actions: list[Any]  # [n] as the environment takes them
    rows: Sequence[Row]  # [n, A] the same as numbers, see environments/spaces.py
    noise: Sequence[Row]  # [n, W] as the law of the policy reads it


class SampledPolicy(Protocol):
    """A policy whose actions are drawn from noise of a known law."""

    @property
    def law(self) -> Law:
        """The law; some policies tell it only once they have been asked."""

    def draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        """Draw an action at each observation from its own generator; asked once for all."""


class PolicyOfSpaces(Protocol):
    """A policy as a user states it, which has to know the spaces before it can act."""

    def for_spaces(self, observations: Layout, actions: Layout) -> SampledPolicy:
        """The policy in an environment with these observations and actions."""


class PolicyWithSample(Protocol):
    """A policy that tells its noise: see `evaluate`."""

    def sample(self, observation: Any, rng: np.random.Generator, /) -> Any:
        """An action, and the standard normal noise that it was made of."""


class PolicyWithSampleBatch(Protocol):
    """The same for observations side by side."""

    def sample_batch(self, observations: Any, rngs: list[np.random.Generator], /) -> Any:
        """Actions, and the noise of each."""


class PolicyWithPredict(Protocol):
    """A trained model, as Stable-Baselines3 has it."""

    def predict(self, observation: Any, *, deterministic: bool = ...) -> Any:
        """An action, and the model's state."""


PolicyLike: TypeAlias = (
    str
    | Path
    | NDArray[Any]
    | Sequence[Any]
    | Callable[[Any], Any]
    | PolicyOfSpaces
    | SampledPolicy
    | PolicyWithSample
    | PolicyWithSampleBatch
    | PolicyWithPredict
)
"""What users may give as a policy: a name or file, an array or lists of probabilities or of
actions, a function of the observation, one of revar's policies, an object that draws actions
(`sample`), or a trained model (`predict`).
"""


def refuse_class(policy: Any) -> None:
    """Refuse a class in the place of an object: calling it would make one."""
    if isinstance(policy, type):
        raise InputError(f"policy is the class {policy.__name__}; give an object of it")


def ask_policy(policy: Any, observation: Any, *more: Any) -> Any:
    """What a policy answers to an observation."""
    try:
        return policy(observation, *more)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the policy raised {type(error).__name__} at observation {observation!r}: "
            f"{first_line(error)}"
        ) from error


def row_of_action(answer: Any, count: int, first: int, observation: Any) -> list[float] | None:
    """The probabilities of a policy that answers with an action: 1 for it, and 0 for all others.

    The first of `count` actions is called `first`. None where the answer is no whole number.
    """
    try:
        number = np.asarray(answer)
    except ValueError:  # lists of different lengths
        return None
    if number.size != 1 or number.dtype.kind not in "biu" or (number.ndim == 1 and count == 1):
        return None
    place = int(number.item()) - first
    if not 0 <= place < count:
        raise InputError(
            f"the policy gives the action {number.item()} at observation {observation!r}; actions "
            f"are {first} to {first + count - 1}"
        )
    return [float(place == other) for other in range(count)]


def no_row(answer: Any, observation: Any) -> InputError:
    """The sentence about a policy that gives neither probabilities nor an action."""
    return InputError(
        f"the policy gives {answer!r} at observation {observation!r}, which is no row of "
        f"probabilities and no action"
    )


def is_batched(policy: Any) -> bool:
    """Whether it takes observations side by side: it says so by an attribute `batched`."""
    return getattr(policy, "batched", False) is True


def ask_all(policy: Any, observations: list[Any], what: str = "the policy") -> Any:
    """What a batched policy answers to all of them: as many rows."""
    answer = ask_policy(policy, stack(observations))
    check_rows(answer, len(observations), what)
    return answer


def check_rows(answer: Any, count: int, what: str) -> None:
    """Refuse what has not a row for each observation."""
    rows = len(answer) if hasattr(answer, "__len__") else None
    if rows != count:
        given = f"{answer!r}" if rows is None else f"{rows} rows"
        raise InputError(f"{what} gives {given} for {count} observations side by side")


def split_batch(answer: Any, actions: Layout, count: int, parts: bool = False) -> list[Any]:
    """Actions side by side, one by one; with `parts`, probabilities of them.

    Those of a Tuple or Dict are side by side part by part, and so are the probabilities of a
    MultiDiscrete; but its actions are the rows of an array.
    """
    if isinstance(actions, PartsLayout):
        inner = [
            split_batch(each, part, count, parts)
            for each, part in zip(split(answer, actions.keys, actions), actions.parts, strict=True)
        ]
        rows = zip(*inner, strict=True)
        named = hasattr(actions.space, "keys")
        return [dict(zip(actions.keys, row, strict=True)) if named else row for row in rows]
    numbers = isinstance(actions, NumbersLayout) and not actions.binary
    if parts and numbers and not _are_actions(answer, actions, count):
        inner = split(answer, range(actions.width), actions)
        for each in inner:
            check_rows(each, count, "the policy")
        return [list(row) for row in zip(*inner, strict=True)]
    check_rows(answer, count, "the policy")
    return [answer[i] for i in range(count)]


def _are_actions(answer: Any, actions: Layout, count: int) -> bool:
    """Whether an answer to `count` observations is actions of a MultiDiscrete, by rows.

    Lists are refused: with as many observations as parts they could be read either way.
    """
    try:
        found = np.asarray(answer)
    except ValueError:  # parts of different lengths
        return False
    shape = (count, *actions.space.shape)
    if found.dtype.kind not in "biu" or found.ndim > len(shape):
        return False
    if found.shape != shape or isinstance(answer, list | tuple):
        kind = type(answer).__name__
        raise InputError(
            f"the policy gives a {kind} of whole numbers of shape {found.shape} for {count} "
            f"observations side by side; actions of {actions.space} are an array of shape {shape}"
        )
    return True


def split(answer: Any, keys: Collection[Any], actions: Layout, where: str = "") -> list[Any]:
    """The parts of an answer, one for each key."""
    try:
        answers = [answer[key] for key in keys]
    except (TypeError, LookupError):
        answers = []
    if not answers or len(answer) != len(keys):
        raise InputError(
            f"the policy gives {answer!r}{where}; for {actions.space} it must have {len(keys)} "
            f"parts"
        )
    return answers


def has_any(policy: Any, *methods: str) -> bool:
    """Whether it has one of these methods."""
    return any(callable(getattr(policy, name, None)) for name in methods)


def tells_no_probabilities(policy: Any) -> bool:
    """Whether a policy can only be played: a table of its probabilities cannot be made."""
    played = has_any(policy, "for_spaces", "sample", "sample_batch")
    return played and not callable(policy) and not has_any(policy, "predict")


def read_table(policy: Any) -> FloatArray:
    """A policy that is no function and no model, as an array of probabilities."""
    if tells_no_probabilities(policy):
        raise InputError(
            f"policy is {kind_of(policy)}, which tells no probabilities; a table needs "
            f"them, and method 'critic' does not"
        )
    try:
        table = np.asarray(policy, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.zeros(())
    if not table.ndim:
        raise InputError(
            f"policy is {kind_of(policy)}; it must be a function from an observation to "
            f"probabilities, an array of them, a policy of revar's, or an object with predict or "
            f"sample"
        )
    return table


def check_predictor(model: Any) -> Any:
    """The model, if its `predict` is called as that of Stable-Baselines3 is."""
    name = type(model).__name__
    if not callable(getattr(model, "predict", None)):
        raise InputError(f"{name} has no method predict")
    try:
        inspect.signature(model.predict).bind(None, deterministic=True)
    except TypeError:
        raise InputError(
            f"predict of {name} does not take (observation, deterministic=True), as that of "
            f"Stable-Baselines3 does; give a function of the observation that calls it"
        ) from None
    except ValueError:  # its signature is not known
        pass
    return model


def predict_best(model: Any, observation: Any) -> Any:
    """The action that a model with `predict` holds best; one that keeps a state is refused."""
    answer = model.predict(observation, deterministic=True)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InputError(
            f"predict of {type(model).__name__} gives {answer!r} at observation {observation!r}; "
            f"it must be an action and a state, as Stable-Baselines3 gives them"
        )
    if answer[1] is not None:
        raise InputError(
            f"predict of {type(model).__name__} gives {kind_of(answer[1])} as its state: "
            f"it is recurrent, and its actions depend on more than the observation"
        )
    return answer[0]


def read_action(answer: Any, actions: Layout, observation: Any) -> NDArray[Any]:
    """An action that a policy gave, as a row; what is none is refused."""
    try:
        row = actions.row(answer)
    except InputError as error:
        raise InputError(f"the policy at observation {observation!r}: {error}") from None
    if row.dtype.kind == "f" and not np.isfinite(row).all():
        raise InputError(f"the policy gives the action {answer!r} at observation {observation!r}")
    return row


def stack(observations: list[Any]) -> Any:
    """Observations side by side: along a new first axis, part by part where they have parts."""
    first = observations[0]
    if isinstance(first, dict):
        return {key: stack([seen[key] for seen in observations]) for key in first}
    if isinstance(first, tuple):
        return tuple(stack(list(parts)) for parts in zip(*observations, strict=True))
    return np.stack(observations)
