"""What collection may not do: forbidden actions, a largest ratio, limits on expected sums."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from revar.errors import InputError
from revar.model.arrays import BoolArray, FloatArray
from revar.model.validation import as_floats, pair_name, refuse_first

Pairs: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits that every behavior which collects data must keep.

    forbidden: what is never done: a bool array [S, A], a list of (state, action) pairs, or a list
        of actions, which then are forbidden everywhere.
    max_ratio: no action is taken more than so many times as often as the target policy takes it,
        in any state and at any step; of several policies, their mean.
    min_return: the least expected return of an episode that collects: a number, or a share of the
        target policy's value such as "95%", which is v - 0.05 |v|; of several policies, of the
        mean of their values. Returns are discounted as the value is.
    max_sums: pairs (amounts [S, A], most): the amounts of an episode's visits, not discounted,
        sum to at most so much in expectation.
    """

    forbidden: Any = None  # BoolArray | Pairs | tuple[int, ...] | None once it is checked
    max_ratio: float | None = None
    min_return: float | str | None = None
    max_sums: Sequence[tuple[FloatArray, float]] = ()

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "forbidden": _check_forbidden(self.forbidden),
            "max_ratio": _check_ratio(self.max_ratio),
            "min_return": _check_floor(self.min_return),
            "max_sums": _check_sums(self.max_sums),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def none(self) -> bool:
        """Whether nothing is limited."""
        return not (self.has_caps or self.has_sums)

    @property
    def has_caps(self) -> bool:
        """Whether the shares of actions are limited."""
        given = self.forbidden is not None and np.size(self.forbidden) > 0
        return given or self.max_ratio is not None

    @property
    def has_sums(self) -> bool:
        """Whether an expected sum is limited."""
        return self.min_return is not None or len(self.max_sums) > 0

    def forbidden_pairs(self, states: int, actions: int) -> BoolArray:
        """Which pairs are forbidden, [S, A]."""
        table = np.zeros((states, actions), dtype=bool)
        if isinstance(self.forbidden, np.ndarray):
            if self.forbidden.shape != table.shape:
                raise InputError(
                    f"forbidden has shape {self.forbidden.shape}; it must be [states, actions] = "
                    f"{table.shape}"
                )
            return np.array(self.forbidden)
        for entry in self.forbidden or ():
            state, action = entry if isinstance(entry, tuple) else (0, entry)
            if state >= states or action >= actions:
                what = f"the pair {entry}" if isinstance(entry, tuple) else f"action {entry}"
                raise InputError(
                    f"forbidden names {what}; there are {states} states and {actions} actions"
                )
            table[state if isinstance(entry, tuple) else slice(None), action] = True
        return table

    def caps(self, policy: FloatArray) -> FloatArray:
        """The largest share that each action may have, [S, A], where `policy` is the target.

        Its rows sum to 1: who calls this says what the policy does in states it never enters.
        """
        caps = np.ones(policy.shape)
        if self.max_ratio is not None:
            caps = np.minimum(1.0, self.max_ratio * policy / policy.sum(axis=1, keepdims=True))
        caps[self.forbidden_pairs(*policy.shape)] = 0.0
        return caps

    def least_return(self, value: float) -> float | None:
        """The floor on the return, where the target policy's value is `value`."""
        if isinstance(self.min_return, str):
            return value - (1.0 - _share(self.min_return)) * abs(value)
        return self.min_return

    def amounts(self, states: int, actions: int) -> FloatArray:
        """The amounts of all `max_sums`, [sums, S, A]."""
        for number, (table, _) in enumerate(self.max_sums):
            if table.shape != (states, actions):
                raise InputError(
                    f"amounts of max_sums {number} have shape {table.shape}; they must be "
                    f"[states, actions] = {(states, actions)}"
                )
        return np.array([table for table, _ in self.max_sums]).reshape(-1, states, actions)


def check_limits(limits: Any) -> Limits:
    """The limits, or those that forbid nothing where there are none."""
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        raise InputError(f"limits is {limits!r}; it must be a revar.Limits, or None")
    return limits


def check_visit_costs(cost: Any, states: int, actions: int) -> FloatArray:
    """What each visit costs, [S, A]: "steps" for 1 each, or an array of numbers >= 0."""
    if isinstance(cost, str):
        if cost != "steps":
            raise InputError(f'cost is {cost!r}; it must be "steps" or an array [states, actions]')
        return np.ones((states, actions))
    table = as_floats(cost, "cost")
    if table.shape != (states, actions):
        raise InputError(
            f"cost has shape {table.shape}; it must be [states, actions] = {(states, actions)}"
        )

    def place(index: int) -> str:
        return pair_name(index, actions)

    refuse_first(~np.isfinite(table), table, "cost", place, "must be finite")
    refuse_first(table < 0, table, "cost", place, "must not be negative")
    return np.ascontiguousarray(table)


def _check_forbidden(forbidden: Any) -> BoolArray | Pairs | tuple[int, ...] | None:
    if forbidden is None:
        return None
    if isinstance(forbidden, Iterable) and not isinstance(forbidden, np.ndarray | str):
        forbidden = list(forbidden)
    try:
        table = np.asarray(forbidden)
    except ValueError:
        table = np.array(None)
    if table.dtype == bool and table.ndim == 2:
        return np.array(table)
    whole = table.dtype.kind in "iu" or table.size == 0
    if whole and table.ndim == 2 and table.shape[1] == 2 and (table >= 0).all():
        return tuple((int(state), int(action)) for state, action in table)
    if whole and table.ndim == 1 and (table >= 0).all():
        return tuple(int(action) for action in table)
    raise InputError(
        f"forbidden is {forbidden!r}; it must be a bool array [states, actions], a list of pairs "
        f"(state, action), or a list of actions"
    )


def _check_ratio(ratio: Any) -> float | None:
    if ratio is None:
        return None
    if not (_is_number(ratio) and float(ratio) >= 1.0):
        raise InputError(f"max_ratio is {ratio!r}; it must be a finite number of at least 1")
    return float(ratio)


def _check_floor(floor: Any) -> float | str | None:
    if floor is None:
        return None
    if isinstance(floor, str):
        try:
            known = floor.strip().endswith("%") and isfinite(_share(floor))
        except ValueError:
            known = False
        if known:
            return floor.strip()
    elif _is_number(floor):
        return float(floor)
    raise InputError(
        f"min_return is {floor!r}; it must be a number, or a share of the target policy's value "
        f'such as "95%"'
    )


def _share(text: str) -> float:
    return float(text.strip().rstrip("%")) / 100.0


def _check_sums(sums: Any) -> tuple[tuple[FloatArray, float], ...]:
    checked = []
    try:
        entries = [(amounts, most) for amounts, most in sums]
    except (TypeError, ValueError):
        raise InputError(
            "max_sums must be a sequence of pairs (amounts [states, actions], most)"
        ) from None
    for number, (amounts, most) in enumerate(entries):
        table = as_floats(amounts, f"amounts of max_sums {number}")
        if table.ndim != 2 or not np.isfinite(table).all():
            raise InputError(
                f"amounts of max_sums {number} have shape {table.shape}; they must be finite "
                f"numbers, [states, actions]"
            )
        if not _is_number(most):
            raise InputError(f"max_sums {number} is at most {most!r}; it must be a finite number")
        checked.append((np.ascontiguousarray(table), float(most)))
    return tuple(checked)


def _is_number(value: Any) -> bool:
    number = isinstance(value, Real | Integral) and not isinstance(value, bool)
    return number and isfinite(float(value))
