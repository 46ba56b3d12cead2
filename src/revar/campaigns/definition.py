"""Definition: what a campaign asks and how it collects; fixed when the campaign is created."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from revar.campaigns.events import Sent
from revar.campaigns.limits import LimitsRecord
from revar.campaigns.policies import PolicyRow, Rows, Tables
from revar.collection import Collection
from revar.errors import InputError
from revar.model.amounts import COST, check_amount
from revar.model.budget import UNITS, Budget
from revar.model.limits import Limits
from revar.model.question import combinations_of
from revar.model.validation import check_reward
from revar.strategies.strategy import Strategy, find_strategy, strategies

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_ACTIONS = 10_000
MOST_EPISODES = 10**9
MOST_STEPS = 10**6  # of an episode
MOST_STEPS_IN_ALL = 10**12
LARGEST_COST = 1e15  # of a budget
MOST_CELLS = 50_000_000  # combinations of step, state and action: 400 MB for a plan
LARGEST_SEED = 2**63 - 1
CONFIDENCE = 0.95
LEASE = 900.0  # seconds
LONGEST_LEASE = 30 * 86_400.0


class StrategyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A strategy by its id, with the parameters that are not left at their defaults."""

    id: str
    parameters: dict[str, Any] = {}


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything a campaign is asked, as it is stored. `policy` is None where callers send it.

    Several target policies are in `policies`, and `question` is what is asked of their values.
    The budget is one of `episodes`, `steps` and `budget`, which is of what rewards say steps cost.
    """

    horizon: int
    discount: float
    episodes: int | None
    actions: int
    strategy: StrategyRecord
    seed: int
    lease: float  # seconds that an episode may stay silent
    policy: list[PolicyRow] | None = None
    policies: Tables | None = None
    question: str | None = None  # one of `KINDS`; None of a single policy
    steps: int | None = None
    budget: float | None = None
    limits: LimitsRecord | None = None
    half_width: float | None = None  # of the interval at which it is enough
    confidence: float = CONFIDENCE  # of that interval

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the target policies; one alone has none."""
        return tuple(self.tables)

    @property
    def has_table(self) -> bool:
        """Whether target policies are tables; otherwise every act brings the probabilities."""
        return None not in self.tables.values()

    @property
    def tables(self) -> Tables:
        """The target policies by name, also one that has none."""
        return {"": self.policy} if self.policies is None else self.policies

    @property
    def allowance(self) -> Budget:
        """The budget with its unit."""
        given = dict(zip(UNITS, (self.episodes, self.steps, self.budget), strict=True))
        for unit, amount in given.items():
            if amount is not None:
                return Budget(amount, unit)
        raise InputError("the campaign has no budget")

    @property
    def limited_sums(self) -> tuple[str, ...]:
        """The names of amounts that every reward brings, besides a cost."""
        return () if self.limits is None else tuple(self.limits.max_sums)

    @property
    def amount_names(self) -> tuple[str, ...]:
        """The names of all that every reward brings besides itself, as the collection has them."""
        return (() if self.budget is None else (COST,)) + self.limited_sums

    def all_limits(self) -> Limits:
        """The limits, with states in their canonical form; where there are none, empty ones."""
        return Limits() if self.limits is None else self.limits.limits()

    def amounts(self, cost: Any, told: Any) -> tuple[float, ...]:
        """What a step cost and added to limited sums, checked, as the collection names them."""
        names, paid = self.limited_sums, self.budget is not None
        if paid and cost is None:
            raise InputError("the budget is of cost: a reward needs the cost of its step")
        if cost is not None and not paid:
            unit = self.allowance.unit
            raise InputError(f"the budget is in {unit}: a reward takes no cost, and has {cost!r}")
        if told and not names:
            raise InputError("no sum is limited: a reward takes no amounts")
        given = told or {}
        if not isinstance(given, Mapping) or set(given) != set(names):
            wanted = ", ".join(map(repr, names))
            found = ", ".join(map(repr, given)) if isinstance(given, Mapping) else repr(given)
            raise InputError(f"a reward needs the amounts {wanted}; it has {found or 'none'}")
        numbers = {**given, COST: cost}
        return tuple(
            check_reward(check_amount(numbers[name], name, "a step"), f"the {name} of a step is")
            for name in self.amount_names
        )

    def rows(self, sent: Sent) -> Rows:
        """What target policies do in a state, from the probabilities that came with an act."""
        if isinstance(sent, dict):
            return tuple(tuple(sent[name]) for name in self.names)
        return (tuple(sent),)

    def asks(self) -> tuple[object, ...]:
        """What two campaigns must have in common to be about the same values."""
        rows = {
            name: sorted((bytes(row.state), tuple(row.probabilities)) for row in table or ())
            for name, table in self.tables.items()
        }
        return self.horizon, self.discount, self.actions, self.has_table, rows

    def keeps(self) -> tuple[object, ...]:
        """What two campaigns must have in common beyond that to be merged."""
        return self.allowance.unit, self.limits


def check_name(name: Any) -> str:
    """A campaign's name: it is part of addresses and of file names."""
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise InputError(
            f"the name of a campaign is {name!r}; it must be 1 to 100 letters, digits, dots, "
            f"dashes or underscores, and begin with a letter or digit"
        )
    return name


def check_size(horizon: int, actions: int, states: int, policies: int = 1) -> None:
    """Refuse what does not fit into memory: plans have a number for each step, state and action."""
    if horizon * actions * states * policies > MOST_CELLS:
        several = f", {policies:,} policies" if policies > 1 else ""
        raise InputError(
            f"horizon {horizon:,}, {actions:,} actions{several} and {states:,} states make more "
            f"than {MOST_CELLS:,} combinations, which is the most that a campaign plans for"
        )


def new_collection(definition: Definition) -> Collection:
    """An empty collection of this definition; policies are told state by state, as they appear."""
    names, question = definition.names, definition.question
    return Collection(
        make_strategy(definition.strategy),
        horizon=definition.horizon,
        discount=definition.discount,
        budget=definition.allowance,
        limits=definition.all_limits(),
        seed=definition.seed,
        actions=definition.actions,
        keep_episodes=False,
        names=names,
        combinations=None if question is None else combinations_of(question, len(names)),
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
