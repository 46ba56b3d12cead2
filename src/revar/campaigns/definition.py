"""Definition: what a campaign asks and how it collects; fixed when the campaign is created."""

import dataclasses
import re
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from revar.campaigns.events import encode_state
from revar.collection import Collection
from revar.collection.states import check_row
from revar.errors import InputError
from revar.strategies.strategy import Strategy, find_strategy, strategies

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_ACTIONS = 10_000
MOST_EPISODES = 10**9
MOST_STEPS = 10**6  # of an episode
MOST_CELLS = 50_000_000  # combinations of step, state and action: 400 MB for a plan
LARGEST_SEED = 2**63 - 1  # JSON's readers agree on whole numbers up to here
LEASE = 900.0  # seconds
LONGEST_LEASE = 30 * 86_400.0


class StrategyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A strategy by its id, with the parameters that are not left at their defaults."""

    id: str
    parameters: dict[str, Any] = {}


class PolicyRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The target policy in one state, in its canonical form."""

    state: msgspec.Raw
    probabilities: list[float]


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a campaign is asked, as it is stored. `policy` is None where callers send it."""

    horizon: int
    discount: float
    episodes: int
    actions: int
    strategy: StrategyRecord
    seed: int
    lease: float  # seconds that an episode may stay silent
    policy: list[PolicyRow] | None = None

    def question(self) -> tuple[object, ...]:
        """What two campaigns must have in common to be about the same value."""
        rows = sorted((bytes(row.state), tuple(row.probabilities)) for row in self.policy or ())
        return self.horizon, self.discount, self.actions, self.policy is None, rows


def check_name(name: Any) -> str:
    """A campaign's name: it is part of addresses and of file names."""
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise InputError(
            f"the name of a campaign is {name!r}; it must be 1 to 100 letters, digits, dots, "
            f"dashes or underscores, and begin with a letter or digit"
        )
    return name


def define(
    *,
    policy: Any = None,
    actions: int | None = None,
    horizon: int,
    discount: float = 1.0,
    episodes: int,
    strategy: str | Strategy | StrategyRecord = "flow",
    seed: int | None = None,
    lease: float = LEASE,
) -> Definition:
    """A definition from what a person writes; everything is checked here."""
    rows = None if policy is None else _policy_rows(policy)
    if rows:
        width = len(rows[0].probabilities)
        if actions not in (None, width):
            raise InputError(f"actions is {actions}, but the policy has {width} actions")
        actions = width
    if actions is None:
        raise InputError("without a policy table the number of actions must be given")
    chosen = make_strategy(strategy)
    if seed is None:
        seed = secrets.randbelow(LARGEST_SEED)
    _check_range("seed", seed, 0, LARGEST_SEED)
    _check_range("actions", actions, 1, MOST_ACTIONS)
    _check_range("episodes", episodes, 1, MOST_EPISODES)
    _check_range("horizon", horizon, 1, MOST_STEPS)
    check_size(horizon, actions, 1 if rows is None else len(rows))
    if not 0.0 < lease <= LONGEST_LEASE:
        raise InputError(f"lease is {lease} seconds; it must lie in (0, {LONGEST_LEASE:.0f}]")
    definition = Definition(
        horizon=int(horizon),
        discount=float(discount),
        episodes=int(episodes),
        actions=int(actions),
        strategy=record_strategy(chosen),
        seed=int(seed),
        lease=float(lease),
        policy=rows,
    )
    new_collection(definition)  # refuses what a collection cannot be made of
    return definition


def check_size(horizon: int, actions: int, states: int) -> None:
    """Refuse what does not fit into memory: plans have a number for each step, state and action."""
    if horizon * actions * states > MOST_CELLS:
        raise InputError(
            f"horizon {horizon:,}, {actions:,} actions and {states:,} states make more than "
            f"{MOST_CELLS:,} combinations, which is the most that a campaign plans for"
        )


def new_collection(definition: Definition) -> Collection:
    """An empty collection of this definition; the policy is told state by state, as they appear."""
    return Collection(
        make_strategy(definition.strategy),
        horizon=definition.horizon,
        discount=definition.discount,
        episodes=definition.episodes,
        seed=definition.seed,
        actions=definition.actions,
        keep_episodes=False,
    )


def make_strategy(strategy: str | Strategy | StrategyRecord) -> Strategy:
    """The strategy that an id, an object or a record stands for."""
    if not isinstance(strategy, StrategyRecord):
        return find_strategy(strategy)
    kind = strategies.find(strategy.id)
    # Strategies are dataclasses, which a registry of classes does not say.
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(strategy.parameters) - known)
    if unknown:
        raise InputError(f"strategy {strategy.id!r} has no parameter {unknown[0]!r}")
    try:
        made: Strategy = msgspec.convert(strategy.parameters, kind)
        return made
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(f"parameters of strategy {strategy.id!r}: {error}") from None


def record_strategy(strategy: Strategy) -> StrategyRecord:
    """The record from which `make_strategy` makes the strategy again."""
    kind: Any = type(strategy)
    if not dataclasses.is_dataclass(kind) or strategy.id not in strategies.ids():
        raise InputError(
            f"strategy {strategy.id!r} cannot be stored: it must be a registered dataclass"
        )
    parameters = {
        field.name: msgspec.to_builtins(getattr(strategy, field.name))
        for field in dataclasses.fields(kind)
        if getattr(strategy, field.name) != field.default
    }
    return StrategyRecord(strategy.id, parameters)


def _policy_rows(policy: Any) -> list[PolicyRow]:
    """From {state: probabilities}, pairs of them, or an array [S, A] over states 0, 1, ..."""
    if isinstance(policy, Mapping):
        pairs = list(policy.items())
    elif isinstance(policy, np.ndarray):
        if policy.ndim != 2:
            raise InputError(f"policy has shape {policy.shape}; it must be [states, actions]")
        pairs = list(enumerate(policy.tolist()))
    else:
        pairs = [_pair(row, i) for i, row in enumerate(policy)]
    if not pairs:
        raise InputError("the policy table is empty")
    rows: dict[bytes, PolicyRow] = {}
    for state, probabilities in pairs:
        key = encode_state(state, "a state of the policy")
        if key in rows:
            raise InputError(f"the policy has state {key.decode()} twice")
        name = f"the policy of state {key.decode()}"
        row = PolicyRow(msgspec.Raw(key), check_row(list(probabilities), name).tolist())
        rows[key] = row
    widths = {len(row.probabilities) for row in rows.values()}
    if len(widths) > 1:
        raise InputError(f"the policy has rows of {sorted(widths)} actions; all must be equal")
    return list(rows.values())


def _pair(row: Any, place: int) -> tuple[Any, Any]:
    if isinstance(row, PolicyRow):
        return msgspec.json.decode(row.state), row.probabilities
    if isinstance(row, list | tuple) and len(row) == 2:
        return row[0], row[1]
    raise InputError(f"row {place} of the policy is {row!r}; it must be a state and probabilities")


def _check_range(name: str, value: Any, low: int, high: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        raise InputError(f"{name} is {value!r}; it must be a whole number from {low} to {high}")
