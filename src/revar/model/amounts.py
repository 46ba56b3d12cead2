"""What steps cost, or add to a sum that is limited, as far as it was observed."""

from collections.abc import Sequence
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray
from revar.model.trajectory import Dataset
from revar.model.validation import LARGEST_REWARD

COST = "cost"  # the name of what a budget is spent on
RETURN = "return"
STEPS = "steps"


class AmountStatistics:
    """Means and variances of every amount by pair, and the totals; `names` says which there are.

    Every step has a number for each. Grows when new states appear.
    """

    def __init__(self, names: Sequence[str], actions: int) -> None:
        self.names = tuple(names)
        self.actions = actions
        self._count: IntArray = np.zeros((0, actions), dtype=np.int64)
        self._sum = np.zeros((len(self.names), 0, actions))
        self._squares = np.zeros((len(self.names), 0, actions))

    def record(self, state: int, action: int, amounts: Sequence[float]) -> None:
        """A step had these amounts, in the order of the names."""
        self._reserve(state + 1)
        self._count[state, action] += 1
        for number, amount in enumerate(amounts):
            self._sum[number, state, action] += amount
            self._squares[number, state, action] += amount * amount

    def record_many(self, episodes: Dataset) -> None:
        """The steps of episodes in their order; those that lack an amount are left out."""
        if not self.names or any(name not in episodes.amounts for name in self.names):
            return
        self._reserve(1 + int(episodes.states.max(initial=-1)))
        place = episodes.states, episodes.actions
        np.add.at(self._count, place, 1)
        for number, name in enumerate(self.names):
            np.add.at(self._sum[number], place, episodes.amounts[name])
            np.add.at(self._squares[number], place, episodes.amounts[name] ** 2)

    def means(self, states: int) -> FloatArray:
        """The mean of each amount, [amount, S, A]; of pairs without data, that of all steps."""
        count = self._counts(states)
        total = max(1, int(self._count.sum()))
        # Of as many rows as were met: how many are reserved would change the last bit.
        met = 1 + int(np.flatnonzero(self._count.any(axis=1)).max(initial=-1))
        usual = self._sum[:, :met].sum(axis=(1, 2), keepdims=True) / total
        sums = self._padded(self._sum, states)
        return np.asarray(np.where(count > 0, sums / count.clip(min=1), usual))

    def variances(self, states: int) -> FloatArray:
        """The variance of each amount within pairs, [amount, S, A], without correction."""
        count = self._counts(states).clip(min=1)
        mean = self._padded(self._sum, states) / count
        squares = self._padded(self._squares, states) / count
        return np.asarray(np.maximum(squares - mean**2, 0.0))

    def arrays(self) -> dict[str, Any]:
        """All that is known, as arrays: `from_arrays` makes equal statistics of them."""
        return {"count": self._count, "sum": self._sum, "squares": self._squares}

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: dict[str, Any]) -> "AmountStatistics":
        """What `arrays` described."""
        made = cls(names, arrays["count"].shape[1])
        made._count, made._sum = arrays["count"], arrays["sum"]
        made._squares = arrays["squares"]
        return made

    def _counts(self, states: int) -> IntArray:
        return np.pad(self._count[:states], ((0, max(0, states - len(self._count))), (0, 0)))

    def _padded(self, table: FloatArray, states: int) -> FloatArray:
        missing = max(0, states - table.shape[1])
        return np.pad(table[:, :states], ((0, 0), (0, missing), (0, 0)))

    def _reserve(self, states: int) -> None:
        if states > len(self._count):
            capacity = max(states, 2 * len(self._count))
            self._sum = self._padded(self._sum, capacity)
            self._squares = self._padded(self._squares, capacity)
            self._count = self._counts(capacity)


class EpisodeTotals:
    """Sums of finished episodes: their mean, its standard error, and the largest."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.episodes = 0
        self.sums = np.zeros(len(self.names))
        self.squares = np.zeros(len(self.names))
        self.largest = np.full(len(self.names), -inf)

    def add(self, totals: FloatArray) -> None:
        """Episodes had these totals, [episode, name]."""
        self.episodes += len(totals)
        self.sums += totals.sum(axis=0)
        self.squares += (totals * totals).sum(axis=0)
        self.largest = np.maximum(self.largest, totals.max(axis=0, initial=-inf))

    def add_one(self, totals: Sequence[float]) -> None:
        """An episode had these totals, in the order of the names."""
        self.episodes += 1
        for place, total in enumerate(totals):
            self.sums[place] += total
            self.squares[place] += total * total
            self.largest[place] = max(self.largest[place], total)

    def mean(self, name: str) -> tuple[float, float]:
        """The mean of all episodes, and its standard error: infinite below two episodes."""
        place, count = self.names.index(name), self.episodes
        mean = float(self.sums[place]) / max(1, count)
        if count < 2:
            return mean, inf
        variance = max(0.0, float(self.squares[place]) / count - mean**2)
        return mean, sqrt(variance / (count - 1))


def check_amount(amount: Any, name: str, where: str) -> float:
    """A finite number; a cost must not be negative."""
    try:
        number = float(amount)
    except (TypeError, ValueError):
        raise InputError(f"the {name} of {where} is {amount!r}, which is no number") from None
    if not isfinite(number):
        raise InputError(f"the {name} of {where} is {number}; it must be finite")
    if abs(number) > LARGEST_REWARD:
        raise InputError(
            f"the {name} of {where} is {number:g}; its size must be at most {LARGEST_REWARD:g}"
        )
    if name == COST and number < 0.0:
        raise InputError(f"the cost of {where} is {number:g}; it must not be negative")
    return number
