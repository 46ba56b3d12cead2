"""What collection may not do: forbidden actions, a largest ratio, limits on expected sums."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from revar.errors import InputError
from revar.model.arrays import BoolArray, FloatArray
from revar.model.validation import LARGEST_REWARD, as_floats, check_confidence

CONFIDENCE = 0.9  # with which plans keep limits on sums, unless another is given

Forbidden: TypeAlias = tuple[int | tuple[Hashable, int], ...]  # actions, or states with actions


@dataclass(frozen=True, eq=False)
class SumLimit:
    """The amounts of an episode's visits, not discounted, sum to at most `most` in expectation."""

    name: str
    amounts: Any  # [S, A]; in an environment also a function, or the name of what `info` reports
    most: float
    variance: FloatArray | None = None  # [S, A] of the amounts of one visit, where they vary

    def table(self, states: int, actions: int) -> FloatArray:
        """The amounts on a model, [S, A]."""
        if not isinstance(self.amounts, np.ndarray):
            kind = "a name" if isinstance(self.amounts, str) else "a function"
            raise InputError(
                f"amounts of {self.name} are given by {kind}; on a model they must be an array "
                f"[states, actions]"
            )
        if self.amounts.shape != (states, actions):
            raise InputError(
                f"amounts of {self.name} have shape {self.amounts.shape}; they must be "
                f"[states, actions] = {(states, actions)}"
            )
        return self.amounts


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits that every behavior which collects data must keep.

    Parameters
    ----------
    forbidden
        What is never done: a bool array [S, A], or a list of (state, action) pairs and of actions,
        which are forbidden everywhere. In an environment states are observations.
    max_ratio
        No action is taken more than so many times as often as the target policy takes it, in any
        state and at any step; of several policies, their mean.
    min_return
        The least expected return of an episode that collects: a number, or a share of the target
        policy's value such as "95%", which is v - 0.05 |v|; of several policies, of the mean of
        their values. Returns are discounted as the value is.
    max_sums
        Pairs (amounts, most): the amounts of an episode's visits, not discounted, sum to at most so
        much in expectation. Amounts are an array [S, A]; in an environment also a function of
        observation and action, or the name under which `info` reports them.
    confidence
        Where the model is not known, every plan keeps min_return and max_sums with it, as far as
        the data tells; until there is enough data the target policy collects.
    """

    forbidden: Any = None  # BoolArray | Forbidden | None once it is checked
    max_ratio: float | None = None
    min_return: float | str | None = None
    max_sums: Any = ()  # tuple[SumLimit, ...] once it is checked
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "forbidden": _check_forbidden(self.forbidden),
            "max_ratio": _check_ratio(self.max_ratio),
            "min_return": _check_floor(self.min_return),
            "max_sums": _check_sums(self.max_sums),
            "confidence": check_confidence(self.confidence, "confidence of limits"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def none(self) -> bool:
        """Whether nothing is limited."""
        return not (self.has_caps or self.has_sums)

    @property
    def sums(self) -> tuple[SumLimit, ...]:
        """All of `max_sums`."""
        return tuple(self.max_sums)

    @property
    def has_caps(self) -> bool:
        """Whether the shares of actions are limited."""
        given = self.forbidden is not None and len(self.forbidden) > 0
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
            known = isinstance(state, int) and 0 <= state < states
            if not known or action >= actions:
                what = f"the pair {entry}" if isinstance(entry, tuple) else f"action {entry}"
                raise InputError(
                    f"forbidden names {what}; there are {states} states and {actions} actions"
                )
            table[state if isinstance(entry, tuple) else slice(None), action] = True
        return table

    def forbidden_in(self, state: Hashable, actions: int) -> BoolArray:
        """Which actions are forbidden in a state that is known by its key, [A]."""
        row = np.zeros(actions, dtype=bool)
        if isinstance(self.forbidden, np.ndarray):
            if not isinstance(state, int) or not 0 <= state < len(self.forbidden):
                raise InputError(
                    f"forbidden is an array of {len(self.forbidden)} states, and has no row for "
                    f"state {state!r}; give pairs (state, action)"
                )
            return np.array(self.forbidden[state])
        for entry in self.forbidden or ():
            where, action = entry if isinstance(entry, tuple) else (state, entry)
            if where == state:
                row[action] = True
        return row

    def check_actions(self, actions: int) -> None:
        """Refuse what is forbidden of actions that there are not."""
        if isinstance(self.forbidden, np.ndarray):
            if self.forbidden.ndim != 2 or self.forbidden.shape[1] != actions:
                raise InputError(
                    f"forbidden has shape {self.forbidden.shape}; it must be [states, actions], "
                    f"and there are {actions} actions"
                )
            return
        for entry in self.forbidden or ():
            action = entry[1] if isinstance(entry, tuple) else entry
            if action >= actions:
                raise InputError(f"forbidden names action {action}; there are {actions} actions")

    def caps(self, policy: FloatArray) -> FloatArray:
        """The largest share that each action may have, [S, A], where `policy` is the target.

        A row that sums to 0 says that the policy never enters the state.
        """
        caps = np.ones(policy.shape)
        if self.max_ratio is not None:
            total = policy.sum(axis=1, keepdims=True)
            caps = np.minimum(1.0, self.max_ratio * policy / np.where(total > 0, total, 1.0))
        caps[self.forbidden_pairs(*policy.shape)] = 0.0
        return caps

    @property
    def share_of_value(self) -> float:
        """The floor on the return as a share of the target policy's value."""
        return _share(str(self.min_return))

    def least_return(self, value: float) -> float | None:
        """The floor on the return, where the target policy's value is `value`."""
        if isinstance(self.min_return, str):
            return value - (1.0 - self.share_of_value) * abs(value)
        return self.min_return


def check_limits(limits: Any) -> Limits:
    """The limits, or those that forbid nothing where there are none."""
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        raise InputError(f"limits is {limits!r}; it must be a revar.Limits, or None")
    return limits


def _check_forbidden(forbidden: Any) -> BoolArray | Forbidden | None:
    if forbidden is None:
        return None
    if isinstance(forbidden, np.ndarray) and forbidden.dtype == bool and forbidden.ndim > 1:
        return np.array(forbidden)
    if isinstance(forbidden, Iterable) and not isinstance(forbidden, str | bytes | Mapping):
        entries = list(forbidden)
        if all(_is_action(entry) or _is_pair(entry) for entry in entries):
            return tuple(
                int(entry) if _is_action(entry) else (_hashable(entry[0]), int(entry[1]))
                for entry in entries
            )
        rows = np.asarray(entries) if all(np.ndim(entry) == 1 for entry in entries) else None
        if rows is not None and rows.dtype == bool and rows.ndim == 2:
            return np.array(rows)
    raise InputError(
        f"forbidden is {forbidden!r}; it must be a bool array [states, actions], a list of pairs "
        f"(state, action), or a list of actions"
    )


def _is_action(entry: Any) -> bool:
    return type(entry) is not bool and isinstance(entry, int | np.integer) and int(entry) >= 0


def _is_pair(entry: Any) -> bool:
    sized = isinstance(entry, tuple | list | np.ndarray) and len(entry) == 2
    return sized and _is_action(entry[1]) and not isinstance(entry[0], bool | np.bool_)


def _hashable(state: Any) -> Hashable:
    """A state as a key: a number of NumPy's as Python's, a list as a tuple."""
    if isinstance(state, np.generic | np.ndarray):
        state = state.tolist()
    return tuple(_hashable(part) for part in state) if isinstance(state, list) else state


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
            known = floor.strip().endswith("%") and 0.0 <= _share(floor) < inf
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
    return float(text.strip().removesuffix("%")) / 100.0


def _check_sums(sums: Any) -> tuple[SumLimit, ...]:
    rule = "max_sums must be a sequence of pairs (amounts [states, actions], most)"
    if isinstance(sums, str) or not isinstance(sums, Iterable):
        raise InputError(rule)
    checked: list[SumLimit] = []
    for number, entry in enumerate(sums):
        if isinstance(entry, SumLimit):
            checked.append(entry)
            continue
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise InputError(rule)
        amounts, most = entry
        name = f"max_sums {number}"
        if isinstance(amounts, str):
            name = amounts
        elif not callable(amounts):
            table = as_floats(amounts, f"amounts of {name}")
            if table.ndim < 2:
                raise InputError(
                    f"amounts of {name} have shape {table.shape}; they must be [states, actions]"
                )
            bad = ~(np.abs(table) <= LARGEST_REWARD)  # true of NaN, too
            if bad.any():
                place = tuple(int(index) for index in np.argwhere(bad)[0])
                raise InputError(
                    f"amounts of {name} at {place} are {table[place]}; they must be finite, and at "
                    f"most {LARGEST_REWARD:g}"
                )
            amounts = np.ascontiguousarray(table)
        if not _is_number(most):
            raise InputError(f"{name} is at most {most!r}; it must be a finite number")
        if name == "cost":
            raise InputError("max_sums names 'cost', which is what a budget is spent on")
        if name in [other.name for other in checked]:
            raise InputError(f"max_sums names {name!r} twice")
        checked.append(SumLimit(name, amounts, float(most)))
    return tuple(checked)


def _is_number(value: Any) -> bool:
    number = isinstance(value, Real | Integral) and not isinstance(value, bool)
    return number and isfinite(float(value))
