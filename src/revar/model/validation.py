"""Checks that several inputs share; each refusal names the first offending entry."""

from collections.abc import Callable
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray

# Sums of probabilities this close to 1 are taken for 1: single precision leaves as much.
SUM_TOLERANCE = 1e-6
# Statistics keep fourth powers of rewards, which must stay within floating point.
LARGEST_REWARD = 1e75
LONGEST_NAME = 60  # of a policy
# Of intervals. The tail beyond it is still known to four digits, and may be shared by many.
LARGEST_CONFIDENCE = 0.999999999999


def pair_name(pair: int, actions: int) -> str:
    """How messages name the pair state * actions + action."""
    return f"state {pair // actions}, action {pair % actions}"


def refuse_first(bad: Any, values: Any, name: str, place: Callable[[int], str], rule: str) -> None:
    """Raise for the first offending entry, naming its place and value."""
    flags = np.ravel(bad)
    if flags.any():
        index = int(np.argmax(flags))
        raise InputError(f"{name} of {place(index)} is {np.ravel(values)[index]:.12g}; it {rule}")


def as_floats(values: Any, name: str) -> FloatArray:
    """A copy of the values as floats."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from None


def check_reward(number: float, name: str) -> float:
    """A reward that statistics can hold; `name` ends with the verb before the number."""
    if not abs(number) <= LARGEST_REWARD:
        limit = f"its size must be at most {LARGEST_REWARD:g}"
        rule = limit if isfinite(number) else "it must be finite"
        raise InputError(f"{name} {number}; {rule}")
    return number


def check_policy_name(name: Any, what: str = "policy") -> str:
    """A name that can be shown in a table."""
    good = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
    if not good or not name.isprintable() or name != name.strip():
        raise InputError(
            f"the name of a {what} is {name!r}; it must be 1 to {LONGEST_NAME} characters that can "
            f"be seen, without blanks at its ends"
        )
    return str(name)


def check_confidence(confidence: Any, name: str = "confidence") -> float:
    """A number strictly between 0 and 1, and not so near to 1 that no interval has it."""
    if not (isinstance(confidence, Real) and 0.0 < float(confidence) < 1.0):
        raise InputError(f"{name} is {confidence!r}; it must lie between 0 and 1")
    if float(confidence) > LARGEST_CONFIDENCE:
        raise InputError(f"{name} is {confidence!r}; it must be at most {LARGEST_CONFIDENCE}")
    return float(confidence)


def check_half_width(half_width: Any, name: str = "half_width") -> float:
    """A positive number."""
    number = isinstance(half_width, Real) and not isinstance(half_width, bool)
    if not (number and 0.0 < float(half_width) < inf):
        raise InputError(f"{name} is {half_width!r}; it must be positive and finite")
    return float(half_width)


def check_horizon(horizon: Any) -> int:
    """A whole number of steps, at least 1."""
    return check_count(horizon, "horizon")


def check_episodes(episodes: Any) -> int:
    """A whole number of episodes, at least 1."""
    return check_count(episodes, "episodes")


def check_discount(discount: Any) -> float:
    """A discount in [0, 1]; 1 is allowed because episodes are finite."""
    return check_share(discount, "discount")


def check_count(value: Any, name: str) -> int:
    """A whole number of at least 1."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 1 <= value < inf and int(value) == value):
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least 1")
    return int(value)


def check_whole(value: Any, name: str) -> int:
    """A whole number of at least 0."""
    if not isinstance(value, Integral) or int(value) < 0:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least 0")
    return int(value)


def check_share(value: Any, name: str) -> float:
    """A number in [0, 1]."""
    if not (isinstance(value, Real) and 0.0 <= float(value) <= 1.0):
        raise InputError(f"{name} is {value!r}; it must lie in [0, 1]")
    return float(value)
