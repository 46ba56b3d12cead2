"""A network that has learned: plain arrays, evaluated in NumPy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from revar.critics.features import Scaling
from revar.critics.interface import Numbers
from revar.model.arrays import FloatArray
from revar.model.records import in_a_line

Parameters: TypeAlias = tuple[Any, ...]  # weights and shifts of three layers, in NumPy or JAX

CHUNK = 16_384  # steps that are evaluated at a time


def forward(parameters: Parameters, inputs: Any, tanh: Callable[[Any], Any]) -> Any:
    """A value and the coefficients of scores, [n, 1 + m], of inputs [n, D]: two SiLU layers."""
    first, first_shift, second, second_shift, last, last_shift = parameters
    hidden = _silu(inputs @ first + first_shift, tanh)
    hidden = _silu(hidden @ second + second_shift, tanh)
    return hidden @ last + last_shift


def _silu(x: Any, tanh: Callable[[Any], Any]) -> Any:
    return x * (0.5 + 0.5 * tanh(0.5 * x))


@dataclass(frozen=True, eq=False)
class InputScaling:
    """Inputs and elapsed time as a network reads them."""

    inputs: Scaling
    elapsed: Scaling

    @classmethod
    def fit(
        cls, inputs: FloatArray, elapsed: FloatArray, rng: np.random.Generator
    ) -> "InputScaling":
        """From some steps."""
        return cls(Scaling.fit(inputs, rng), Scaling.fit(elapsed[:, None], rng))

    @property
    def width(self) -> int:
        """How many numbers a network reads."""
        return int(self.inputs.shift.size) + 1

    def __call__(self, inputs: FloatArray, elapsed: FloatArray) -> Numbers:
        """[n, width]"""
        return np.concatenate([self.inputs(inputs), self.elapsed(elapsed[:, None])], axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class NetworkCritic:
    """Values and advantages by one network."""

    scaling: InputScaling
    parameters: Parameters
    center: float  # of the targets that it was taught
    spread: float

    __repr__ = in_a_line

    @property
    def widths(self) -> tuple[int, int]:
        """How many inputs it looks at, and for how many scores it has coefficients."""
        return self.scaling.inputs.inputs, int(self.parameters[-1].size) - 1

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        """Expected return from here on, [n]."""
        return self.outputs(inputs, elapsed)[:, 0]

    def coefficients(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        """What each score adds to the return, [n, m]."""
        return self.outputs(inputs, elapsed)[:, 1:]

    def outputs(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        """The value and the coefficients, [n, 1 + m]."""
        found = np.zeros((elapsed.size, self.parameters[-1].size))
        for first in range(0, elapsed.size, CHUNK):
            rows = slice(first, first + CHUNK)
            scaled = self.scaling(inputs[rows], elapsed[rows])
            found[rows] = forward(self.parameters, scaled, np.tanh)
        found *= self.spread
        found[:, 0] += self.center
        return found

    def to_arrays(self) -> dict[str, Any]:
        """All that makes the critic, as plain arrays by name."""
        arrays: dict[str, Any] = {
            "family": np.array("network"),
            "center": np.array(self.center),
            "spread": np.array(self.spread),
        }
        arrays |= {f"layer_{i}": array for i, array in enumerate(self.parameters)}
        for name, scaling in (("inputs", self.scaling.inputs), ("elapsed", self.scaling.elapsed)):
            arrays |= {f"{name}_shift": scaling.shift, f"{name}_scale": scaling.scale}
            if scaling.matrix is not None:
                arrays[f"{name}_matrix"] = scaling.matrix
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> "NetworkCritic":
        """The critic that `to_arrays` wrote."""
        inputs, elapsed = (
            Scaling(arrays[f"{name}_shift"], arrays[f"{name}_scale"], arrays.get(f"{name}_matrix"))
            for name in ("inputs", "elapsed")
        )
        parameters = tuple(arrays[f"layer_{i}"] for i in range(6))
        return cls(
            InputScaling(inputs, elapsed),
            parameters,
            float(arrays["center"]),
            float(arrays["spread"]),
        )
