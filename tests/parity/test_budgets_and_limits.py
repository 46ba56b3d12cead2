"""Budgets of steps and cost, and limits: the compiled loop against the plain one, bit for bit."""

from typing import Any

import numpy as np
import pytest

from revar import Best, Difference, Limits, simulate
from revar.simulation.result import SimulationResult
from revar.strategies import find_strategy
from revar.testing.contracts import expect_same_results, identical
from tests.parity.models import PROBLEMS
from tests.parity.test_questions import question_of

NAMES = ("tree", "gridworld", "crossroads", "general-bernoulli")


def costs_on(name: str) -> Any:
    """Costs that add up with rounding, and differ by a factor of a hundred."""
    mdp = PROBLEMS[name].mdp
    draws = np.random.default_rng(11).random((mdp.states, mdp.actions))
    return 0.05 + 5.0 * draws**3


def played(name: str, strategy: Any, asked: Any = None, **options: Any) -> SimulationResult:
    problem = PROBLEMS[name]
    settings = {"runs": 3, "seed": 5, "keep_episodes": True, **options}
    return simulate(problem.mdp, problem.policy if asked is None else asked, strategy, **settings)


def expect_same(name: str, strategy: Any, asked: Any = None, **options: Any) -> SimulationResult:
    compiled, plain = (
        played(name, strategy, asked, compiled=compiled, **options) for compiled in (None, False)
    )
    expect_same_results(compiled, plain, f"{strategy} on {name} with {options}")
    for field in ("episodes", "spent", "steps"):
        assert identical(getattr(compiled, field), getattr(plain, field)), field
    assert compiled.unit == plain.unit
    return compiled


def expect_spent(result: SimulationResult, budget: float, visit_cost: Any) -> None:
    """At least the budget, and less than an episode over."""
    for run, data in enumerate(result.datasets):
        costs = visit_cost[data.states, data.actions]
        spent = np.cumsum(costs)[data.start[1:] - 1]
        assert result.spent[run] == spent[-1] >= budget
        assert len(spent) == 1 or spent[-2] < budget
        assert result.episodes[run] == len(data)
        assert result.steps[run] == data.states.size


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "strategy", ["flow", "flow-oracle", "on-policy", "uniform", "revar", "cb-var", "bpg", "ros"]
)
def test_steps(strategy: str, name: str) -> None:
    result = expect_same(name, strategy, steps=130)
    assert result.unit == "steps"
    assert np.array_equal(result.spent, result.steps)
    expect_spent(result, 130, np.ones(PROBLEMS[name].policy.shape))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("strategy", ["flow", "flow-oracle", "on-policy", "uniform", "bpg"])
def test_cost(strategy: str, name: str) -> None:
    cost = costs_on(name)
    result = expect_same(name, strategy, budget=90.5, cost=cost)
    assert result.unit == "cost"
    expect_spent(result, 90.5, cost)


def test_a_cost_of_one_for_every_step_is_a_budget_of_steps() -> None:
    problem = PROBLEMS["gridworld"]
    steps = played("gridworld", "flow", steps=200)
    named = played("gridworld", "flow", budget=200, cost="steps")
    ones = played("gridworld", "flow", budget=200.0, cost=np.ones(problem.policy.shape),
                  checkpoints=steps.checkpoints)  # fmt: skip
    expect_same_results(steps, named, "cost='steps'")
    expect_same_results(steps, ones, "a cost of ones")
    assert (steps.unit, named.unit, ones.unit) == ("steps", "steps", "cost")


def limits_on(name: str) -> dict[str, Limits]:
    problem = PROBLEMS[name]
    amounts = np.random.default_rng(3).random(problem.policy.shape)
    return {
        "ratio": Limits(max_ratio=1.7),
        "floor": Limits(min_return="80%"),
        "sum": Limits(max_sums=[(amounts, 0.8 * problem.mdp.horizon)], confidence=0.8),
        "all": Limits(
            max_ratio=2.5, min_return=-100.0, max_sums=[(amounts, problem.mdp.horizon)],
            forbidden=[(state, 2) for state in range(2) if name == "crossroads"],
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["ratio", "floor", "sum", "all"])
@pytest.mark.parametrize("strategy", ["flow", "flow-oracle", "on-policy"])
def test_limits(strategy: str, kind: str, name: str) -> None:
    assert find_strategy(strategy).keeps_limits
    expect_same(name, strategy, episodes=25, limits=limits_on(name)[kind])


@pytest.mark.parametrize("name", ["gridworld", "crossroads"])
@pytest.mark.parametrize("kind", ["ratio", "all"])
def test_limits_with_other_budgets(kind: str, name: str) -> None:
    limits = limits_on(name)[kind]
    expect_same(name, "flow", steps=150, limits=limits)
    expect_same(name, "flow", budget=120.0, cost=costs_on(name), limits=limits)


@pytest.mark.parametrize("kind", ["difference", "values", "best"])
def test_several_policies(kind: str) -> None:
    asked = question_of(PROBLEMS["gridworld"], kind)
    assert isinstance(asked, Difference | Best) or kind == "values"
    expect_same("gridworld", "flow", asked, steps=300)
    expect_same("gridworld", "flow", asked, steps=300, limits=Limits(max_ratio=2))
    expect_same("gridworld", "flow", asked, episodes=30, limits=Limits(min_return="90%"))
    expect_same("gridworld", "on-policy", asked, steps=300)


def test_revisions_of_revar_in_a_budget_of_steps() -> None:
    from revar.strategies import ReducedVariance

    expect_same("gridworld", ReducedVariance(replan_every=4), steps=300)


@pytest.mark.parametrize("strategy", ["flow", "on-policy"])
def test_threads_and_parts_change_nothing(strategy: str) -> None:
    cost = costs_on("gridworld")
    whole = played("gridworld", strategy, budget=150.0, cost=cost, runs=5, threads=1)
    threads = played("gridworld", strategy, budget=150.0, cost=cost, runs=5, threads=3)
    expect_same_results(whole, threads, strategy)
    assert identical(whole.spent, threads.spent)
    parts = [
        played("gridworld", strategy, budget=150.0, cost=cost, runs=count, first_run=first)
        for first, count in ((0, 2), (2, 3))
    ]
    for field in ("estimates", "visits", "spent", "episodes"):
        assert identical(np.concatenate([getattr(p, field) for p in parts]), getattr(whole, field))


@pytest.mark.parametrize(
    "estimator", ["importance-sampling", "per-decision-importance-sampling", "doubly-robust"]
)
@pytest.mark.parametrize("unit", ["steps", "cost"])
def test_estimators_of_whole_episodes(unit: str, estimator: str) -> None:
    budget: dict[str, Any] = {"steps": 200}
    if unit == "cost":
        budget = {"budget": 150.0, "cost": costs_on("crossroads")}
    result = expect_same("crossroads", "on-policy", estimator=estimator, **budget)
    assert np.isfinite(result.estimates[:, -1]).all()
