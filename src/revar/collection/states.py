"""The states met so far, numbered in the order they appeared in, with the policy's rows."""

from collections.abc import Hashable
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

    def __init__(self, actions: int) -> None:
        self.actions = actions
        self._numbers: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._policy = np.full((16, actions), 1.0 / actions)  # [S or more, A]
        self._rows: list[Any] = []  # the object that gave the row; None while it is not known

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
        return self._policy[: len(self._keys)].copy()

    @property
    def room(self) -> FloatArray:
        """The table behind `policy`, with rows to spare; not to be written to."""
        return self._policy

    def number(self, key: Hashable) -> int:
        """The number of a state; one that was never met gets the next."""
        try:
            number = self._numbers.get(key)
        except TypeError:
            raise InputError(f"state {key!r} cannot be hashed; give it as a tuple") from None
        if number is None:
            if key is None:
                raise InputError("a state is None, which stands for the end of the episode")
            number = len(self._keys)
            self._numbers[key] = number
            self._keys.append(key)
            self._rows.append(None)
            if number == self._policy.shape[0]:
                spare = np.full(self._policy.shape, 1.0 / self.actions)
                self._policy = np.concatenate([self._policy, spare])
        return number

    @property
    def known(self) -> set[int]:
        """The states in which the target policy's row has been told."""
        return {number for number, row in enumerate(self._rows) if row is not None}

    def tell(self, number: int, probabilities: Any) -> None:
        """The target policy's probabilities in a state: checked, and the same as ever."""
        row = self._rows[number]
        if row is probabilities and row is not None:
            return
        table = self._checked(number, probabilities)
        if row is not None:
            if np.abs(table - self._policy[number]).max() > SUM_TOLERANCE:
                raise InputError(
                    f"the target policy gave state {self._keys[number]!r} the probabilities "
                    f"{self._policy[number].tolist()} before, and {table.tolist()} now"
                )
            return
        self._policy[number] = table
        self._rows[number] = probabilities

    def correct(self, number: int, probabilities: Any) -> None:
        """The same from a source that overrules what was told before."""
        self._policy[number] = self._checked(number, probabilities)
        self._rows[number] = probabilities

    def _checked(self, number: int, probabilities: Any) -> FloatArray:
        name = f"the target policy in state {self._keys[number]!r}"
        row = np.atleast_1d(as_floats(probabilities, f"what {name} gives"))
        if row.shape != (self.actions,):
            raise InputError(
                f"{name} gives probabilities of shape {np.shape(probabilities)}; there are "
                f"{self.actions} actions"
            )
        return checked_row(row, name)


def checked_row(row: Any, name: str) -> FloatArray:
    """Probabilities of one state's actions, [A]: finite, not negative, with the sum 1."""
    numbers = as_floats(row, f"what {name} gives")
    for action, number in enumerate(numbers.tolist()):
        if not np.isfinite(number) or number < 0.0:
            raise InputError(f"{name} gives action {action} the probability {number:g}")
    total = float(numbers.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(f"{name} gives probabilities that sum to {total:.12g}; they must sum to 1")
    return numbers
