"""A definition made from what a person writes, and checked."""

import dataclasses
import secrets
from typing import Any

import msgspec
import numpy as np

from revar.campaigns.definition import (
    CONFIDENCE,
    LARGEST_COST,
    LARGEST_SEED,
    LEASE,
    LONGEST_LEASE,
    MOST_ACTIONS,
    MOST_EPISODES,
    MOST_STEPS,
    MOST_STEPS_IN_ALL,
    Definition,
    StrategyRecord,
    check_size,
    make_strategy,
    new_collection,
)
from revar.campaigns.limits import check_table, read_limits
from revar.campaigns.policies import read_table, read_tables, rows_by_state
from revar.errors import InputError
from revar.model.budget import UNITS, Budget
from revar.model.validation import check_confidence, check_half_width
from revar.strategies.strategy import Strategy, strategies

DRAWN_SEEDS = 2**53  # a seed that is drawn lies below: JavaScript reads larger numbers as others


def define(
    *,
    policy: Any = None,
    policies: Any = None,
    question: str | None = None,
    actions: int | None = None,
    horizon: int,
    discount: float = 1.0,
    episodes: int | None = None,
    steps: int | None = None,
    budget: float | None = None,
    limits: Any = None,
    strategy: str | Strategy | StrategyRecord = "flow",
    seed: int | None = None,
    lease: float = LEASE,
    half_width: float | None = None,
    confidence: float = CONFIDENCE,
) -> Definition:
    """A definition from what a person writes; everything is checked here."""
    if policy is not None and policies is not None:
        raise InputError("a campaign has a policy or several policies; both are given")
    if question is not None and policies is None:
        raise InputError(f"question is {question!r}, which is asked of several policies")
    if half_width is not None and policies is not None:
        raise InputError(
            f"half_width is {half_width!r}, which is of one policy's value; there are several"
        )
    rows = None if policy is None else read_table(policy)
    tables = None if policies is None else read_tables(policies)
    table = rows if tables is None else next(iter(tables.values()))
    if table:
        width = len(table[0].probabilities)
        if actions not in (None, width):
            raise InputError(f"actions is {actions}, but the policy has {width} actions")
        actions = width
    if actions is None:
        raise InputError("without a policy table the number of actions must be given")
    chosen = make_strategy(strategy)
    if seed is None:
        seed = secrets.randbelow(DRAWN_SEEDS)
    _check_range("seed", seed, 0, LARGEST_SEED)
    _check_range("actions", actions, 1, MOST_ACTIONS)
    check_budget(episodes, steps, budget)
    _check_range("horizon", horizon, 1, MOST_STEPS)
    check_size(horizon, actions, len(table or (1,)), len(tables or (1,)))
    if not 0.0 < lease <= LONGEST_LEASE:
        raise InputError(f"lease is {lease} seconds; it must lie in (0, {LONGEST_LEASE:.0f}]")
    definition = Definition(
        horizon=int(horizon),
        discount=float(discount),
        episodes=None if episodes is None else int(episodes),
        actions=int(actions),
        strategy=record_strategy(chosen),
        seed=int(seed),
        lease=float(lease),
        policy=rows,
        policies=tables,
        question=question or ("best" if tables else None),
        steps=None if steps is None else int(steps),
        budget=None if budget is None else float(budget),
        limits=read_limits(limits, int(actions)),
        half_width=None if half_width is None else check_half_width(half_width),
        confidence=check_confidence(confidence),
    )
    if definition.has_table:
        known = rows_by_state(definition.tables)
        check_table(definition.all_limits(), definition.names, known)
    collection = new_collection(definition)  # refuses what a collection cannot be made of
    if definition.strategy.parameters:
        collection.plan_due()  # and parameters that do not suit the question
    return definition


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


def check_budget(episodes: Any, steps: Any, budget: Any) -> Budget:
    """The one budget that is given; it is not too large."""
    given = {"episodes": episodes, "steps": steps, "budget": budget}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        found = " and ".join(named) if named else "none"
        raise InputError(f"a campaign has one budget: episodes, steps or budget; got {found}")
    if episodes is not None:
        _check_range("episodes", episodes, 1, MOST_EPISODES)
    elif steps is not None:
        _check_range("steps", steps, 1, MOST_STEPS_IN_ALL)
    elif Budget(budget, "cost").amount > LARGEST_COST:
        raise InputError(f"budget is {budget!r}; it must be at most {LARGEST_COST:g}")
    return next(
        Budget(given[name], unit)
        for name, unit in zip(given, UNITS, strict=True)
        if given[name] is not None
    )


def _check_range(name: str, value: Any, low: int, high: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        raise InputError(f"{name} is {value!r}; it must be a whole number from {low} to {high}")
