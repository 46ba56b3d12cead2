"""Limits of a campaign: as callers write them, as they are stored, and what they forbid."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec
import numpy as np

from revar.campaigns.events import encode_state
from revar.campaigns.policies import Rows
from revar.campaigns.text import number, quoted
from revar.errors import InputError
from revar.model.amounts import RETURN, STEPS, EpisodeTotals
from revar.model.limits import Limits
from revar.model.validation import check_policy_name

FIELDS = ("forbidden", "max_ratio", "min_return", "max_sums", "confidence")
MOST_FORBIDDEN = 12  # shown


class ForbiddenPair(msgspec.Struct, frozen=True, array_like=True):
    """An action that is never taken in one state, in its canonical form."""

    state: msgspec.Raw
    action: int

    @property
    def key(self) -> bytes:
        """The state as a collection knows it."""
        return bytes(self.state)

    def __str__(self) -> str:
        return f"action {self.action} in state {quoted(self.key)}"


class LimitsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """See `revar.Limits`; every reward tells the amounts of `max_sums`, by their names."""

    confidence: float
    forbidden: tuple[int | ForbiddenPair, ...] = ()
    max_ratio: float | None = None
    min_return: float | str | None = None
    max_sums: dict[str, float] = {}

    @property
    def rules(self) -> tuple[str, ...]:
        """What no plan does, in words; sums are reported with what was collected."""
        found = []
        if self.max_ratio is not None:
            often = f"{number(self.max_ratio)} times as often as the target policy takes it"
            found.append(f"no action is taken more than {often}")
        if self.forbidden:
            names = [
                str(entry) if isinstance(entry, ForbiddenPair) else f"action {entry}"
                for entry in self.forbidden[:MOST_FORBIDDEN]
            ]
            more = len(self.forbidden) - len(names)
            found.append(f"never: {', '.join(names)}{f', and {more} more' if more else ''}")
        return tuple(found)

    def limits(self) -> Limits:
        """The limits, with states as a campaign's collection knows them."""
        return Limits(
            forbidden=[
                (entry.key, entry.action) if isinstance(entry, ForbiddenPair) else entry
                for entry in self.forbidden
            ],
            max_ratio=self.max_ratio,
            min_return=self.min_return,
            max_sums=list(self.max_sums.items()),
            confidence=self.confidence,
        )


class LimitReport(msgspec.Struct, frozen=True):
    """A limit on an expected sum, and the mean of the sums of finished episodes."""

    name: str  # "return", or that of the sum
    least: float | None  # of a return; null while a share of the value is not known
    most: float | None  # of any other sum
    mean: float | None  # null before the first episode is finished
    standard_error: float | None  # null before the second
    broken: bool  # beyond the limit by more than two standard errors

    @property
    def left(self) -> float | None:
        """How far the mean is from the limit; negative beyond it, None while one is not known."""
        if self.mean is None:
            return None
        if self.most is not None:
            return self.most - self.mean
        return None if self.least is None else self.mean - self.least

    def __str__(self) -> str:
        bound = f"at most {number(self.most)}"
        if self.name == RETURN:
            bound = (
                "at least a share of the value"
                if self.least is None
                else (f"at least {number(self.least)}")
            )
        found = "no episode is finished" if self.mean is None else number(self.mean)
        error = "" if self.standard_error is None else f" ± {self.standard_error:.2g}"
        return f"{self.name} of collecting episodes: {found}{error}, to be {bound}"


def report_limits(
    limits: Limits, totals: EpisodeTotals, value: float | None
) -> tuple[LimitReport, ...]:
    """Each limit on a sum against what was collected; `value` is the target policy's, if known."""
    found: list[LimitReport] = []
    if limits.min_return is not None:
        known = value is not None or not isinstance(limits.min_return, str)
        least = limits.least_return(value or 0.0) if known else None
        found.append(_report(RETURN, totals, least=least))
    found += [_report(limit.name, totals, most=limit.most) for limit in limits.sums]
    return tuple(found)


def _report(
    name: str, totals: EpisodeTotals, *, least: float | None = None, most: float | None = None
) -> LimitReport:
    if totals.episodes == 0:
        return LimitReport(name, least, most, None, None, broken=False)
    mean, error = totals.mean(name)
    short = least is not None and mean < least - 2.0 * error
    over = most is not None and mean > most + 2.0 * error
    known = error if isfinite(error) else None
    return LimitReport(name, least, most, mean, known, broken=short or over)


def read_limits(given: Any, actions: int) -> LimitsRecord | None:
    """From a `revar.Limits`, or a mapping of its arguments; None where nothing is limited."""
    if given is None:
        return None
    if not isinstance(given, Limits | Mapping):
        raise InputError(f"limits is {given!r}; it must be a revar.Limits, or a mapping")
    fields = _fields(given) if isinstance(given, Limits) else dict(given)
    unknown = next((name for name in fields if name not in FIELDS), None)
    if unknown is not None:
        raise InputError(f"limits has no {unknown!r}; it has {', '.join(FIELDS)}")
    forbidden = _read_forbidden(fields.pop("forbidden", None), actions)
    sums = _read_sums(fields.pop("max_sums", {}))
    checked = Limits(max_sums=list(sums.items()), **fields)
    if checked.none and not forbidden:
        return None
    return LimitsRecord(
        checked.confidence,
        forbidden,
        max_ratio=checked.max_ratio,
        min_return=checked.min_return,
        max_sums={limit.name: limit.most for limit in checked.sums},
    )


def refuse_forbidden(
    limits: Limits, state: bytes, names: tuple[str, ...], rows: Rows, actions: int
) -> None:
    """Refuse target policies that take a forbidden action in that state."""
    forbidden = limits.forbidden_in(state, actions)
    for name, row in zip(names, rows, strict=True):
        for action in np.flatnonzero(forbidden & (np.array(row) > 0)).tolist():
            policy = f"target policy {name!r}" if name else "the target policy"
            raise InputError(
                f"limits forbid action {action} in state {quoted(state)}, which {policy} takes "
                f"there with probability {row[action]:.3g}; the estimate cannot do without it"
            )


def check_table(limits: Limits, names: tuple[str, ...], table: Mapping[bytes, Rows]) -> None:
    """Refuse what is forbidden in states that the tables lack, or needed in those they have."""
    for entry in limits.forbidden or ():
        if isinstance(entry, tuple) and entry[0] not in table:
            raise InputError(
                f"forbidden names state {quoted(entry[0])}, which the target policy's table has not"
            )
    for state, rows in table.items():
        refuse_forbidden(limits, state, names, rows, len(rows[0]))


def _fields(limits: Limits) -> dict[str, Any]:
    """The arguments that limits were made of."""
    forbidden = limits.forbidden
    if isinstance(forbidden, np.ndarray):  # over states 0, 1, ...
        forbidden = [tuple(pair) for pair in np.argwhere(forbidden).tolist()]
    sums: dict[Any, float] = {}
    for limit in limits.sums:
        if not isinstance(limit.amounts, str):
            raise InputError(
                f"amounts of {limit.name} are no name; in a campaign every reward tells the "
                f"amounts of a limited sum, by its name"
            )
        sums[limit.amounts] = limit.most
    kept = {name: getattr(limits, name) for name in ("max_ratio", "min_return", "confidence")}
    return {**kept, "forbidden": forbidden, "max_sums": sums}


def _read_forbidden(given: Any, actions: int) -> tuple[int | ForbiddenPair, ...]:
    if given is None:
        return ()
    if isinstance(given, np.ndarray):
        given = _fields(Limits(forbidden=given))["forbidden"]
    rule = "it must be a list of actions, or of pairs [state, action]"
    if not isinstance(given, list | tuple):
        raise InputError(f"forbidden is {given!r}; {rule}")
    numbers: set[int] = set()
    pairs: set[tuple[bytes, int]] = set()
    for entry in given:
        pair = isinstance(entry, list | tuple) and len(entry) == 2
        action = entry[1] if pair else entry
        if type(action) is bool or not isinstance(action, int | np.integer):
            raise InputError(f"forbidden has {entry!r}; {rule}")
        if not 0 <= action < actions:
            raise InputError(f"forbidden names action {action}; there are {actions} actions")
        if pair:
            pairs.add((encode_state(entry[0], "a state of forbidden"), int(action)))
        else:
            numbers.add(int(action))
    if numbers and pairs:
        raise InputError(f"forbidden has actions and pairs; {rule}")
    found = tuple(ForbiddenPair(msgspec.Raw(state), action) for state, action in sorted(pairs))
    return found or tuple(sorted(numbers))


def _read_sums(given: Any) -> dict[str, float]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"max_sums is {given!r}; it must be a mapping from names to the most")
    for name in given:
        if check_policy_name(name, "limited sum") in (RETURN, STEPS):
            raise InputError(f"max_sums names {name!r}, which is the name of something else")
    return dict(given)
