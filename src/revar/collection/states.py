"""The states met so far, numbered in the order they appeared in, with the target policy's rows."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.validation import SUM_TOLERANCE, as_floats


class States:
    """Key <-> number, and what the target policy does in each state.

    A state may be met (as a successor) before the target policy is asked about it. Until then its
    row in `policy` holds equal probabilities: no action has been tried there, so that every row
    gives the same estimate.
    """

    def __init__(self, actions: int, keys: Iterable[Hashable] = ()) -> None:
        self.actions = actions
        self._numbers: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._rows: list[FloatArray | None] = []  # [1, A]; None until it is set
        self._given: list[Any] = []  # the object that each row was made of
        for key in keys:
            self.number(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._numbers

    def __getitem__(self, number: int) -> Hashable:
        return self._keys[number]

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """Every state, by number."""
        return tuple(self._keys)

    @property
    def policy(self) -> FloatArray:
        """The target policy over the states met so far, [S, A]."""
        return self.policy_with(None, None)

    @property
    def with_rows(self) -> frozenset[int]:
        """The states in which the target policy's row is known."""
        return frozenset(number for number, row in enumerate(self._rows) if row is not None)

    def find(self, key: Hashable) -> int | None:
        """The number of a state, None if it was never met."""
        try:
            return self._numbers.get(key)
        except TypeError:
            raise InputError(f"state {key!r} cannot be hashed; give it as a tuple") from None

    def number(self, key: Hashable) -> int:
        """The number of a state; one that was never met gets the next."""
        try:
            number = self._numbers.get(key)
        except TypeError:
            number = self.find(key)  # says what is wrong
        if number is None:
            if key is None:
                raise InputError("a state is None, which stands for the end of the episode")
            number = len(self._keys)
            self._numbers[key] = number
            self._keys.append(key)
            self._rows.append(None)
            self._given.append(None)
        return number

    def enter(self, key: Hashable, probabilities: Any) -> tuple[int, FloatArray]:
        """`number` and `set_row` in one: this happens before every action."""
        try:
            number = self._numbers.get(key)
        except TypeError:
            number = None
        if number is None or self._given[number] is not probabilities:
            self.check(key, self.find(key), probabilities)  # before anything is remembered
            number = self.number(key)
            return number, self.set_row(number, probabilities)
        row = self._rows[number]
        assert row is not None
        return number, row

    def set_row(self, number: int, probabilities: Any) -> FloatArray:
        """Set the target policy's row of a state; it is checked, and must not change."""
        row = self._rows[number]
        if row is not None and self._given[number] is probabilities:
            return row
        row = self.check(self._keys[number], number, probabilities)
        if self._rows[number] is None:
            self._rows[number], self._given[number] = row, probabilities
        return row

    def check(self, key: Hashable, number: int | None, probabilities: Any) -> FloatArray:
        """The row that `set_row` would set, [1, A]; nothing is remembered."""
        name = f"the target policy in state {key!r}"
        row = np.atleast_1d(as_floats(probabilities, f"what {name} gives"))
        if row.shape != (self.actions,):
            raise InputError(
                f"{name} gives probabilities of shape {np.shape(probabilities)}; there are "
                f"{self.actions} actions"
            )
        row = np.array(check_row(row, name)).reshape(1, -1)
        before = None if number is None else self._rows[number]
        if before is None:
            return row
        if np.abs(row - before).max() > SUM_TOLERANCE:
            raise InputError(
                f"the target policy gave state {key!r} the probabilities "
                f"{before[0].tolist()} before, and {row[0].tolist()} now"
            )
        return before

    def policy_with(self, number: int | None, row: FloatArray | None) -> FloatArray:
        """The policy, as if `row` were set for state `number`, or for the next one, [S, A]."""
        rows = list(self._rows)
        if row is not None:
            place = len(rows) if number is None else number
            rows[place : place + 1] = [row]
        equal = np.full((1, self.actions), 1.0 / self.actions)
        known = [equal if told is None else told for told in rows]
        return np.concatenate(known) if known else np.zeros((0, self.actions))

    def forget_after(self, count: int) -> None:
        """Keep the first `count` states alone."""
        for key in self._keys[count:]:
            del self._numbers[key]
        del self._keys[count:], self._rows[count:], self._given[count:]


def check_row(row: Any, name: str) -> FloatArray:
    """Probabilities of one state's actions, [A]: finite, not negative, with the sum 1."""
    numbers = as_floats(row, f"what {name} gives")
    for action, number in enumerate(numbers.tolist()):
        if not np.isfinite(number) or number < 0.0:
            raise InputError(f"{name} gives action {action} the probability {number:g}")
    total = float(numbers.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(f"{name} gives probabilities that sum to {total:.12g}; they must sum to 1")
    return numbers
