"""What episodes ask of a policy: actions, with the noise that they were drawn from."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from revar.environments.opening import first_line
from revar.environments.spaces import Layout
from revar.errors import InputError
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


class PolicyWithPredict(Protocol):
    """A trained model, as Stable-Baselines3 has it."""

    def predict(self, observation: Any, *, deterministic: bool = ...) -> Any:
        """An action, and the model's state."""


# What users may give as a policy: a name or file, an array or lists of probabilities or of actions,
# a function of the observation, one of revar's policies, or a trained model.
PolicyLike: TypeAlias = (
    str
    | Path
    | NDArray[Any]
    | Sequence[Any]
    | Callable[[Any], Any]
    | PolicyOfSpaces
    | SampledPolicy
    | PolicyWithSample
    | PolicyWithPredict
)


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
