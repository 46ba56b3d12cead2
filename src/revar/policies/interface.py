"""What episodes ask of a policy: actions, with the noise that they were drawn from."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

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
