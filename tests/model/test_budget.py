"""Budgets: one of episodes, steps or cost, and the sentence that refuses each mistake."""

from typing import Any

import numpy as np
import pytest

from revar import Task
from revar.errors import InputError
from revar.model.budget import Budget, check_budget, check_visit_costs


@pytest.mark.parametrize(
    ("given", "amount", "unit"),
    [
        ({"episodes": 10}, 10, "episodes"),
        ({"episodes": np.int64(10)}, 10, "episodes"),
        ({"steps": 2000}, 2000, "steps"),
        ({"budget": 2000, "cost": "steps"}, 2000, "steps"),
        ({"budget": 0.5, "cost": "seconds"}, 0.5, "cost"),
        ({"budget": 3, "cost": np.ones((2, 2))}, 3.0, "cost"),
    ],
)
def test_the_one_budget_that_is_given(given: dict[str, Any], amount: float, unit: str) -> None:
    found = check_budget(**given)
    assert (found.amount, found.unit) == (amount, unit)
    assert found.by_episode == (unit == "episodes")
    assert found.episode_cost == (1.0 if unit == "episodes" else 0.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "collection needs one budget: .*; got none"),
        ({"episodes": 5, "steps": 5}, "one budget: .*; got episodes= and steps="),
        ({"steps": 5, "budget": 5, "cost": "x"}, "one budget: .*; got steps= and budget="),
        ({"budget": 5}, "budget= says how much may be spent, cost= what a step costs; give both"),
        ({"steps": 5, "cost": "steps"}, "give both, or episodes= or steps= alone"),
        ({"episodes": 0}, "episodes is 0; it must be a whole number of at least 1"),
        ({"episodes": True}, "episodes is True; it must be a whole number of at least 1"),
        ({"steps": 2.5}, "steps is 2.5; it must be a whole number of at least 1"),
        ({"steps": -1}, "steps is -1; it must be a whole number of at least 1"),
        ({"budget": 0, "cost": "x"}, "budget is 0; it must be positive"),
        ({"budget": -2.0, "cost": "x"}, "budget is -2.0; it must be positive"),
        ({"budget": float("nan"), "cost": "x"}, "budget is nan; it must be positive"),
        ({"budget": float("inf"), "cost": "x"}, "budget is inf; it must be positive"),
        ({"budget": "5", "cost": "x"}, "budget is '5'; it must be positive"),
        ({"budget": True, "cost": "x"}, "budget is True; it must be positive"),
        ({"budget": 0, "cost": "steps"}, "steps is 0; it must be a whole number of at least 1"),
    ],
)
def test_anything_else_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_budget(**given)


def test_units() -> None:
    with pytest.raises(InputError, match="a budget is in 'hours'; it must be in one of"):
        Budget(5, "hours")
    assert Budget(5, "steps").raised_by(3) == Budget(8, "steps")
    table = np.arange(6.0).reshape(3, 2)
    assert Budget(5).visit_cost(table, 3, 2).tolist() == np.zeros((3, 2)).tolist()
    assert Budget(5, "steps").visit_cost(table, 3, 2).tolist() == np.ones((3, 2)).tolist()
    assert Budget(5, "cost").visit_cost(table, 3, 2) is table


@pytest.mark.parametrize(
    ("budget", "amount", "text"),
    [
        (Budget(5), 1, "1 episode"),
        (Budget(5), 1200, "1,200 episodes"),
        (Budget(5, "steps"), 1.0, "1 step"),
        (Budget(5, "steps"), 48123.0, "48,123 steps"),
        (Budget(5, "cost"), 1234.5, "a cost of 1,234.5"),
        (Budget(5, "cost"), 0.25, "a cost of 0.25"),
    ],
)
def test_amounts_as_tables_have_them(budget: Budget, amount: float, text: str) -> None:
    assert budget.text(amount) == text


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("seconds", "cost is 'seconds'; it must be \"steps\" or an array"),
        (np.ones(3), r"cost has shape \(3,\); it must be \[states, actions\] = \(3, 2\)"),
        ([[0, 1], [1, -2], [0, 0]], "cost of state 1, action 1 is -2; it must not be negative"),
        ([[0, 1], [np.nan, 2], [0, 0]], "cost of state 1, action 0 is nan; it must be finite"),
        ([[0, 1], [1, 2], [0, np.inf]], "cost of state 2, action 1 is inf; it must be finite"),
        ([["a", "b"]], "cost is not an array of numbers"),
        (lambda state, action: 1.0, "cost is a function; on a model it must be an array"),
    ],
)
def test_costs_that_are_none(cost: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_visit_costs(cost, 3, 2)


def test_what_a_task_makes_of_a_budget() -> None:
    policy = np.full((3, 2), 0.5)
    counted = Task(policy, 4, budget=7)  # type: ignore[arg-type]
    assert counted.budget == Budget(7)
    assert counted.episodes == 7
    assert counted.visit_cost.tolist() == np.zeros((3, 2)).tolist()
    stepped = Task(policy, 4, budget=Budget(7, "steps"))
    assert stepped.episodes is None
    assert stepped.visit_cost.tolist() == np.ones((3, 2)).tolist()
    cost = np.arange(6.0).reshape(3, 2)
    paid = Task(policy, 4, budget=Budget(7.5, "cost"), cost=cost)
    assert paid.visit_cost.tolist() == cost.tolist()
    assert Task(policy, 4).episodes is None
    with pytest.raises(InputError, match="cost of state 0, action 0 is -1; it must not be"):
        Task(policy, 4, budget=Budget(7.5, "cost"), cost=cost - 1.0)
