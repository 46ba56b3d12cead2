"""Inputs of critics as numbers of one size, and random features of them."""

from dataclasses import dataclass

import numpy as np

from revar.critics.interface import Numbers
from revar.model.arrays import FloatArray

MOST_INPUTS = 100  # more inputs than these are projected at random
PROJECTED = 64
LARGEST = 6.0  # standard deviations; an input farther out counts as being there


@dataclass(frozen=True, eq=False)
class Scaling:
    """Inputs less their mean, over their standard deviation."""

    shift: FloatArray  # [D]
    scale: FloatArray  # [D] 0 where an input does not vary
    matrix: FloatArray | None = None  # [inputs, D] applied first

    @classmethod
    def fit(cls, inputs: FloatArray, rng: np.random.Generator) -> "Scaling":
        """From the inputs of some steps."""
        shift, scale = _moments(inputs)
        if inputs.shape[1] <= MOST_INPUTS:
            return cls(shift, scale)
        directions = rng.standard_normal((inputs.shape[1], PROJECTED))
        matrix = scale[:, None] * directions / np.sqrt(inputs.shape[1])
        return cls(*_moments(inputs @ matrix), matrix)

    @property
    def inputs(self) -> int:
        """How many numbers it takes."""
        return int(self.shift.size if self.matrix is None else self.matrix.shape[0])

    def __call__(self, inputs: FloatArray) -> Numbers:
        """[n, D]"""
        used = inputs if self.matrix is None else inputs @ self.matrix
        scaled = np.clip((used - self.shift) * self.scale, -LARGEST, LARGEST)
        return np.asarray(scaled, dtype=np.float32)


def _moments(inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means, and what to multiply deviations with."""
    deviation = inputs.std(axis=0)
    varies = deviation > 1e-9 * np.maximum(np.abs(inputs).max(axis=0), 1e-300)
    return inputs.mean(axis=0), np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class Features:
    """1, inputs z, time left, their product, and random Fourier features of both."""

    directions: Numbers  # [D + 1, features]; the last row is that of time
    phases: Numbers  # [features]

    @classmethod
    def draw(
        cls, inputs: int, count: int, bandwidth: float, rng: np.random.Generator
    ) -> "Features":
        """Features as smooth as a Gaussian kernel of the bandwidth, times the root of inputs."""
        directions = rng.standard_normal((inputs + 1, count))
        directions[:-1] /= bandwidth * np.sqrt(max(inputs, 1))
        phases = rng.uniform(0.0, 2 * np.pi, count)
        return cls(directions.astype(np.float32), phases.astype(np.float32))

    def __call__(self, scaled: Numbers, elapsed: Numbers) -> Numbers:
        """[n, 3 + 2 D + features]"""
        left = (1.0 - elapsed.astype(np.float32))[:, None]
        angles = scaled @ self.directions[:-1]
        angles += left * self.directions[-1]
        angles += self.phases
        np.cos(angles, out=angles)
        angles *= np.float32(np.sqrt(2.0))
        one = np.ones_like(left)
        return np.concatenate([one, scaled, left, left**2, scaled * left, angles], axis=1)
