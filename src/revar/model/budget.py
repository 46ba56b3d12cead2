"""Budget: what collection may spend, in episodes, in steps, or in whatever steps cost."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.validation import (
    LARGEST_REWARD,
    as_floats,
    check_count,
    check_half_width,
    pair_name,
    refuse_first,
)

UNITS = ("episodes", "steps", "cost")


@dataclass(frozen=True)
class Budget:
    """So much of a unit. An episode is begun as long as anything is left.

    Parameters
    ----------
    amount
        What may be spent.
    unit
        "episodes", "steps" or "cost".
    """

    amount: float
    unit: str = "episodes"  # one of UNITS

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InputError(f"a budget is in {self.unit!r}; it must be in one of {UNITS}")
        if self.unit == "cost":
            object.__setattr__(self, "amount", check_half_width(self.amount, "budget"))
        else:
            object.__setattr__(self, "amount", check_count(self.amount, self.unit))

    @property
    def by_episode(self) -> bool:
        """Whether an episode counts as one, however long it is."""
        return self.unit == "episodes"

    @property
    def episode_cost(self) -> float:
        """What an episode costs besides its steps."""
        return 1.0 if self.by_episode else 0.0

    def raised_by(self, amount: float) -> "Budget":
        """The budget, with so much more."""
        return replace(self, amount=self.amount + amount)

    def visit_cost(self, cost: FloatArray | None, states: int, actions: int) -> FloatArray:
        """What a visit takes from it, [S, A]; `cost` where that is not the same everywhere."""
        if self.unit == "cost" and cost is not None:
            return cost
        return np.full((states, actions), 1.0 if self.unit == "steps" else 0.0)

    def text(self, amount: float) -> str:
        """An amount with its unit, as tables have it."""
        if self.unit == "cost":
            return f"a cost of {amount:,.6g}"
        name = self.unit[:-1] if round(amount) == 1 else self.unit
        return f"{round(amount):,} {name}"


def as_budget(budget: "Budget | int | None") -> "Budget | None":
    """The budget; a number is one of episodes, and None stands for no end."""
    return budget if budget is None or isinstance(budget, Budget) else Budget(budget)


def check_budget(
    episodes: Any = None, steps: Any = None, budget: Any = None, cost: Any = None
) -> Budget:
    """The one budget that is given: episodes=, steps=, or budget= with cost=."""
    given = {"episodes": episodes, "steps": steps, "budget": budget}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        found = " and ".join(f"{name}=" for name in named) if named else "none"
        raise InputError(
            f"collection needs one budget: episodes=, steps=, or budget= with cost=; got {found}"
        )
    if isinstance(cost, str) and cost == "steps" and budget is not None:
        return Budget(budget, "steps")
    if (budget is None) != (cost is None):
        rule = "budget= says how much may be spent, cost= what a step costs; give both"
        raise InputError(f"{rule}, or episodes= or steps= alone")
    if budget is not None:
        return Budget(budget, "cost")
    return Budget(episodes) if steps is None else Budget(steps, "steps")


def check_visit_costs(cost: Any, states: int, actions: int) -> FloatArray:
    """What each visit costs, [S, A]: "steps" for 1 each, or an array of numbers >= 0."""
    if isinstance(cost, str):
        if cost != "steps":
            raise InputError(f'cost is {cost!r}; it must be "steps" or an array [states, actions]')
        return np.ones((states, actions))
    if callable(cost):
        raise InputError("cost is a function; on a model it must be an array [states, actions]")
    table = as_floats(cost, "cost")
    if table.shape != (states, actions):
        raise InputError(
            f"cost has shape {table.shape}; it must be [states, actions] = {(states, actions)}"
        )

    def place(index: int) -> str:
        return pair_name(index, actions)

    refuse_first(~np.isfinite(table), table, "cost", place, "must be finite")
    refuse_first(table < 0, table, "cost", place, "must not be negative")
    rule = f"must be at most {LARGEST_REWARD:g}"
    refuse_first(table > LARGEST_REWARD, table, "cost", place, rule)
    return np.ascontiguousarray(table)
