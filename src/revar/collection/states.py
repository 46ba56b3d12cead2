"""The states met so far, numbered in the order they appeared in, with the target policies' rows."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.limits import Limits
from revar.model.validation import SUM_TOLERANCE, as_floats


class States:
    """Key <-> number, and what the target policy, or each of several, does in each state.

    A state may be met (as a successor) before the target policy is asked about it. Until then its
    row in `policies` holds equal probabilities: no action has been tried there, so that every row
    gives the same estimate. Policies that take what `limits` forbid are refused.
    """

    def __init__(
        self,
        actions: int,
        names: tuple[str, ...] = ("",),
        keys: Iterable[Hashable] = (),
        limits: Limits | None = None,
    ) -> None:
        self.actions = actions
        self.names = names  # of the target policies, where there are several
        self.limits = limits or Limits()
        self._numbers: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._rows: list[FloatArray | None] = []  # [J, A]; None until they are set
        self._given: list[Any] = []  # the object that they were made of
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
    def policies(self) -> FloatArray:
        """The target policies over the states met so far, [J, S, A]."""
        return self.policies_with(None, None)

    @property
    def with_rows(self) -> frozenset[int]:
        """The states in which the target policies' rows are known."""
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
        """Set the target policies' rows of a state, [J, A]; checked, they must not change."""
        row = self.check(self._keys[number], number, probabilities)
        if self._rows[number] is None:
            self._rows[number], self._given[number] = row, probabilities
        return row

    def check(self, key: Hashable, number: int | None, probabilities: Any) -> FloatArray:
        """The rows that `set_row` would set, [J, A]; nothing is remembered."""
        known = None if number is None else self._rows[number]
        if number is not None and known is not None and self._given[number] is probabilities:
            return known
        given = [probabilities]
        if len(self.names) > 1:
            given = list(probabilities) if isinstance(probabilities, Iterable) else []
            if len(given) != len(self.names):
                raise InputError(
                    f"state {key!r} needs a row of probabilities for each of the "
                    f"{len(self.names)} target policies {', '.join(self.names)}"
                )
        rows = np.stack(
            [self._check_row(key, *named) for named in zip(self.names, given, strict=True)]
        )
        if known is None:
            self._refuse_forbidden(key, rows)
            return rows
        for name, old, new in zip(self.names, known, rows, strict=True):
            if np.abs(new - old).max() > SUM_TOLERANCE:
                raise InputError(
                    f"{_policy(name)} gave state {key!r} the probabilities {old.tolist()} before, "
                    f"and {new.tolist()} now"
                )
        return known

    def _refuse_forbidden(self, key: Hashable, rows: FloatArray) -> None:
        needed = self.limits.forbidden_in(key, self.actions) & (rows > 0)  # [J, A]
        if needed.any():
            policy, action = (int(place) for place in np.argwhere(needed)[0])
            raise InputError(
                f"limits forbid action {action} in state {key!r}, which "
                f"{_policy(self.names[policy])} takes there with probability "
                f"{rows[policy, action]:.3g}; the estimate cannot do without it"
            )

    def _check_row(self, key: Hashable, policy: str, probabilities: Any) -> FloatArray:
        name = f"{_policy(policy)} in state {key!r}"
        row = np.atleast_1d(as_floats(probabilities, f"what {name} gives"))
        if row.shape != (self.actions,):
            raise InputError(
                f"{name} gives probabilities of shape {np.shape(probabilities)}; there are "
                f"{self.actions} actions"
            )
        return check_row(row, name)

    def policies_with(self, number: int | None, row: FloatArray | None) -> FloatArray:
        """The policies, as if `row` [J, A] were set for state `number`, or for the next one."""
        rows = list(self._rows)
        if row is not None:
            place = len(rows) if number is None else number
            rows[place : place + 1] = [row]
        shape = (len(self.names), self.actions)
        equal = np.full(shape, 1.0 / self.actions)
        known = [equal if told is None else told for told in rows]
        return np.stack(known, axis=1) if known else np.zeros((shape[0], 0, shape[1]))

    def forget_after(self, count: int) -> None:
        """Keep the first `count` states alone."""
        for key in self._keys[count:]:
            del self._numbers[key]
        del self._keys[count:], self._rows[count:], self._given[count:]


def _policy(name: str) -> str:
    """What messages call a target policy."""
    return f"target policy {name!r}" if name else "the target policy"


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
