"""Bins: a discretiser for continuous observations, given explicitly."""

from bisect import bisect_right
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.validation import as_floats, checked_count


@dataclass(frozen=True)
class Bins:
    """Cuts every number of an observation at inner edges; n edges make n + 1 bins.

    Observations that share all bins become one state. That state is Markov only by luck, so
    that certainty equivalence can be biased: see `check_aggregation`. The target policy is asked
    at the centre of each state's bins, and what is evaluated is the policy that acts so.

    >>> Bins([[0.0], [-1.0, 1.0]]).state([0.5, -3.0])
    (1, 0)
    """

    edges: tuple[tuple[float, ...], ...]  # for each number of the observation, ascending

    def __init__(self, edges: Any) -> None:
        checked = tuple(
            tuple(_checked_edges(part, number).tolist()) for number, part in enumerate(edges)
        )
        if not checked:
            raise InputError("Bins needs the edges of at least one number")
        object.__setattr__(self, "edges", checked)

    @classmethod
    def uniform(cls, low: Any, high: Any, counts: Any) -> "Bins":
        """Bins of equal width between `low` and `high`; the outermost reach to infinity."""
        lows, highs = (np.atleast_1d(as_floats(end, "ends of bins")) for end in (low, high))
        numbers = [checked_count(count, "a number of bins") for count in np.atleast_1d(counts)]
        if not lows.shape == highs.shape == (len(numbers),):
            raise InputError(
                f"low, high and counts of bins have lengths {lows.size}, {highs.size} and "
                f"{len(numbers)}; they must be the same"
            )
        if not np.all(np.isfinite(lows) & np.isfinite(highs) & (lows < highs)):
            raise InputError("low and high of bins must be finite, and low below high")
        return cls(
            [
                np.linspace(first, last, count + 1)[1:-1]
                for first, last, count in zip(lows, highs, numbers, strict=True)
            ]
        )

    @property
    def counts(self) -> tuple[int, ...]:
        """How many bins each number has."""
        return tuple(len(part) + 1 for part in self.edges)

    def state(self, observation: Any) -> tuple[int, ...]:
        """The bin of every number of an observation."""
        numbers = np.asarray(observation, dtype=np.float64).ravel().tolist()
        if len(numbers) != len(self.edges):
            raise InputError(
                f"an observation has {len(numbers)} numbers; bins are given for {len(self.edges)}"
            )
        for place, number in enumerate(numbers):
            if isnan(number):
                raise InputError(f"number {place} of an observation is nan; it fits no bin")
        return tuple(map(bisect_right, self.edges, numbers))

    def centre(self, state: tuple[int, ...]) -> FloatArray:
        """The observation in the middle of the bins; outermost bins count as wide as the next."""
        return np.array([_centre(part, i) for part, i in zip(self.edges, state, strict=True)])


def _centre(edges: tuple[float, ...], place: int) -> float:
    if not edges:
        return 0.0
    if 0 < place < len(edges):
        return 0.5 * (edges[place - 1] + edges[place])
    width = abs(edges[0]) if len(edges) == 1 else edges[1] - edges[0]
    if place == 0:
        return edges[0] - 0.5 * (width or 1.0)
    width = width if len(edges) == 1 else edges[-1] - edges[-2]
    return edges[-1] + 0.5 * (width or 1.0)


def _checked_edges(edges: Any, number: int) -> FloatArray:
    values = np.atleast_1d(as_floats(edges, f"edges of number {number}"))
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(np.diff(values) <= 0):
        raise InputError(f"edges of number {number} are {values.tolist()}; they must ascend")
    return values
