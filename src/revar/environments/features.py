"""What a user's function makes of observations, for critics to look at."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from revar.environments.opening import first_line
from revar.environments.spaces import Layout, layout_of
from revar.errors import InputError, kind_of
from revar.model.arrays import FloatArray


def observation_layout(env: Any, features: bool = False) -> Layout:
    """Of the observations of an environment, or of several side by side.

    With features any space will do.
    """
    space = getattr(env, "single_observation_space", None) or env.observation_space
    try:
        return layout_of(space)
    except InputError as error:
        if not features:
            raise InputError(
                f"{error}; or give features, a function that makes them numbers"
            ) from None
        return FeaturesOnly(space)


NOT_STEADY = "the features function does not give the same numbers twice at an observation"


def same_numbers(first: FloatArray, again: FloatArray) -> bool:
    """Whether features are the same but for rounding."""
    return bool(np.allclose(first, again, rtol=1e-6, atol=1e-9))


class Features:
    """What a user's function makes of observations: each time as many finite numbers."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        if not callable(function):
            raise InputError(f"features is {kind_of(function)}; it must be a function")
        self._function = function
        self.width: int | None = None  # not known before it was asked

    def row(self, observation: Any) -> FloatArray:
        """The numbers at an observation, [width]."""
        try:
            answer = self._function(observation)
        except Exception as error:
            raise InputError(
                f"the features function raised {type(error).__name__}: {first_line(error)}"
            ) from error
        try:
            row = np.array([] if answer is None else answer, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            row = np.zeros(0)
        if not row.size:
            raise InputError(f"the features function gives {answer!r}; it must give numbers")
        if self.width is None:
            self.width = row.size
        if row.size != self.width:
            raise InputError(
                f"there are {row.size} features of an observation, and were {self.width} before"
            )
        if not np.isfinite(row).all():
            number = int(np.argmin(np.isfinite(row)))
            raise InputError(f"feature {number} of an observation is {row[number]}")
        return row

    def steady_row(self, observation: Any) -> FloatArray:
        """The same, asked for twice; others the second time are refused."""
        row = self.row(observation)
        if not same_numbers(row, self.row(observation)):
            raise InputError(NOT_STEADY)
        return row


class FeaturesOnly:
    """Observations that are no numbers: nothing of them is kept besides their features."""

    width = 0
    dtype: np.dtype[Any] = np.dtype(np.uint8)

    def __init__(self, space: Any) -> None:
        self.space = space

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Of nothing."""
        return np.zeros(0), np.zeros(0)

    def row(self, value: Any) -> NDArray[Any]:
        """Nothing."""
        del value
        return np.zeros(0, dtype=self.dtype)

    def value(self, row: Any) -> Any:
        """Refused: there is nothing to make it of."""
        del row
        raise InputError(f"observations of {self.space} are not kept")

    def inputs(self, rows: NDArray[Any]) -> FloatArray:
        """Nothing: critics look at features."""
        return np.zeros((len(rows), 0))
