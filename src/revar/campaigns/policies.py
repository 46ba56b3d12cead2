"""Target policies as callers give them: tables over states, names of several, rows of an act."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np

from revar.campaigns.events import Sent, encode_state
from revar.collection.states import check_row
from revar.errors import InputError
from revar.model.validation import check_policy_name

MOST_POLICIES = 50
ONE = ("",)  # the names where there is a single target policy

# What target policies do in a state, one row for each: [J, A].
Rows: TypeAlias = tuple[tuple[float, ...], ...]


class PolicyRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The target policy in one state, in its canonical form."""

    state: msgspec.Raw
    probabilities: list[float]


# By name, in the order of the names; None for all where callers send them.
Tables: TypeAlias = dict[str, list[PolicyRow] | None]


def read_table(policy: Any, name: str = "the policy") -> list[PolicyRow]:
    """From {state: probabilities}, pairs of them, or an array [S, A] over states 0, 1, ..."""
    if isinstance(policy, Mapping):
        pairs = list(policy.items())
    elif isinstance(policy, np.ndarray):
        if policy.ndim != 2:
            raise InputError(f"{name} has shape {policy.shape}; it must be [states, actions]")
        pairs = list(enumerate(policy.tolist()))
    elif isinstance(policy, Iterable):
        pairs = [_pair(row, i, name) for i, row in enumerate(policy)]
    else:
        raise InputError(f"{name} is {policy!r}; it must be a table over states")
    if not pairs:
        raise InputError(f"{name} table is empty")
    rows: dict[bytes, PolicyRow] = {}
    for state, probabilities in pairs:
        key = encode_state(state, f"a state of {name}")
        if key in rows:
            raise InputError(f"{name} has state {key.decode()} twice")
        row = _check_row(probabilities, f"{name} of state {key.decode()}")
        rows[key] = PolicyRow(msgspec.Raw(key), row)
    widths = {len(row.probabilities) for row in rows.values()}
    if len(widths) > 1:
        raise InputError(f"{name} has rows of {sorted(widths)} actions; all must be equal")
    return list(rows.values())


def read_tables(policies: Any) -> Tables:
    """From {name: table}, pairs of them, or names alone where every act brings the rows."""
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise InputError(f"policies is {policies!r}; it must be names, or tables by name")
    pairs = policies.items() if isinstance(policies, Mapping) else policies
    given = [pair if isinstance(pair, tuple) and len(pair) == 2 else (pair, None) for pair in pairs]
    if len(given) > MOST_POLICIES:
        raise InputError(f"there are {len(given)} policies; at most {MOST_POLICIES} are compared")
    tables: Tables = {}
    for name, table in given:
        if check_policy_name(name) in tables:
            raise InputError(f"two policies have the name {name!r}; each needs its own")
        tables[name] = None if table is None else read_table(table, f"policy {name!r}")
    if len(tables) < 2:
        raise InputError(
            f"policies names {len(tables)}; a comparison needs at least two, and one is given as "
            f"policy"
        )
    _check_alike(tables)
    return tables


def rows_by_state(tables: Tables) -> dict[bytes, Rows]:
    """The rows of each state that the tables have."""
    columns = [
        {bytes(row.state): tuple(row.probabilities) for row in rows or ()}
        for rows in tables.values()
    ]
    return {state: tuple(column[state] for column in columns) for state in columns[0]}


def told(rows: Rows) -> Any:
    """The rows as a collection is told of them: of one policy, its row alone."""
    return rows[0] if len(rows) == 1 else rows


def check_sent(names: tuple[str, ...], actions: int, probabilities: Any) -> Sent:
    """Probabilities that come with an act, checked; those of several in the order of `names`."""
    if names == ONE:
        if isinstance(probabilities, Mapping):
            raise InputError(misnamed(names, list(probabilities)))
        return _check_width(probabilities, "the target policy in this state", actions)
    if not isinstance(probabilities, Mapping) or set(probabilities) != set(names):
        keys = list(probabilities) if isinstance(probabilities, Mapping) else None
        raise InputError(misnamed(names, keys))
    return {
        name: _check_width(probabilities[name], f"target policy {name!r} in this state", actions)
        for name in names
    }


def misnamed(names: tuple[str, ...], found: list[Any] | None) -> str:
    """What to say of probabilities under other names than the policies', or under none."""
    if names == ONE:
        return "probabilities come by name, but this campaign has one target policy"
    wanted = ", ".join(map(repr, names))
    if found is None:
        return f"probabilities must come by name, for each of the target policies {wanted}"
    given = ", ".join(map(repr, found)) or "no policy"
    return f"probabilities are for {given}; the target policies are {wanted}"


def _check_alike(tables: Tables) -> None:
    """Policies that are compared act in the same states with the same actions."""
    (first, expected), *others = tables.items()
    for name, rows in others:
        if rows is None or expected is None:
            if rows is expected:
                continue
            lacking, having = (name, first) if rows is None else (first, name)
            raise InputError(
                f"policy {having!r} has a table and policy {lacking!r} has none; either all have "
                f"one, or every act brings the probabilities of all"
            )
        width, other = len(expected[0].probabilities), len(rows[0].probabilities)
        if width != other:
            raise InputError(
                f"policy {first!r} has {width} actions and policy {name!r} has {other}; policies "
                f"that are compared have the same actions"
            )
        states, found = ({bytes(row.state) for row in table} for table in (expected, rows))
        if states != found:
            state = min(states ^ found)
            lacking, having = (name, first) if state in states else (first, name)
            raise InputError(
                f"policy {having!r} has state {state.decode()} and policy {lacking!r} has not; "
                f"tables that are compared cover the same states"
            )


def _pair(row: Any, place: int, name: str) -> tuple[Any, Any]:
    if isinstance(row, PolicyRow):
        return msgspec.json.decode(row.state), row.probabilities
    if isinstance(row, list | tuple) and len(row) == 2:
        return row[0], row[1]
    raise InputError(f"row {place} of {name} is {row!r}; it must be a state and probabilities")


def _check_row(probabilities: Any, name: str) -> list[float]:
    if not isinstance(probabilities, Iterable) or isinstance(probabilities, str | Mapping):
        raise InputError(f"{name} is {probabilities!r}; it must be a list of probabilities")
    row: list[float] = check_row(list(probabilities), name).tolist()
    return row


def _check_width(probabilities: Any, name: str, actions: int) -> list[float]:
    row = _check_row(probabilities, name)
    if len(row) != actions:
        raise InputError(f"{name} has {len(row)} probabilities; there are {actions} actions")
    return row
