"""Flow plans for what is left of its budget, in the budget's unit, and within caps."""

import numpy as np
import pytest

import revar
from revar.model.budget import Budget
from revar.model.limits import Limits
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.problems import Problem, find_problem
from revar.simulation.result import SimulationResult
from revar.strategies.flow import Flow
from revar.theory.costs import one_step_costs, variance_of_visits
from revar.theory.values import occupancy

LAKE = find_problem("frozenlake", epsilon=0.5)
GRID = find_problem("gridworld")


def on_policy_steps(problem: Problem) -> float:
    return float(occupancy(problem.mdp, problem.policy).sum())


def by_visits(problem: Problem, result: SimulationResult) -> np.ndarray:
    """The variance that the visits of each run leave, [run]: the error without its luck."""
    costs = one_step_costs(problem.mdp, problem.policy)
    return np.array([variance_of_visits(costs, visits) for visits in result.visits])


def test_by_the_step_episodes_are_short_and_the_error_is_near_its_limit() -> None:
    steps = round(2000 * on_policy_steps(LAKE))
    limit = revar.optimal_flow(LAKE.mdp, LAKE.policy, cost="steps").limit
    result = revar.simulate(LAKE.mdp, LAKE.policy, "flow", steps=steps, runs=20, seed=1)
    per_episode = revar.simulate(LAKE.mdp, LAKE.policy, "flow", episodes=2000, runs=4, seed=1)
    lengths = result.steps / result.episodes
    assert lengths.max() < 0.6 * (per_episode.steps / 2000).min()
    errors = by_visits(LAKE, result) * result.spent / limit
    spread = errors.std(ddof=1) / np.sqrt(len(errors))
    assert errors.mean() - 3 * spread < 1.10
    assert errors.mean() + 3 * spread > 1.0  # visits may be lucky, but not on average
    on_policy = revar.simulate(LAKE.mdp, LAKE.policy, "on-policy", steps=steps, runs=20, seed=2)
    assert errors.mean() < 0.85 * np.mean(by_visits(LAKE, on_policy) * on_policy.spent / limit)


def test_a_cost_is_avoided_as_the_optimal_flow_avoids_it() -> None:
    cost = np.ones((GRID.mdp.states, GRID.mdp.actions))
    cost[5:] = 10.0  # far from the start
    limit = revar.optimal_flow(GRID.mdp, GRID.policy, cost=cost)
    budget = 1000 * limit.cost
    result = revar.simulate(
        GRID.mdp, GRID.policy, "flow", budget=budget, cost=cost, runs=20, seed=3
    )
    np.testing.assert_allclose(np.einsum("rsa,sa->r", result.visits, cost), result.spent)
    errors = by_visits(GRID, result) * result.spent / limit.limit
    assert errors.min() > 0.99
    assert errors.mean() < 1.10
    blind = revar.simulate(GRID.mdp, GRID.policy, "flow", steps=2000 * 12, runs=4, seed=3)
    paid = np.einsum("rsa,sa->r", blind.visits, cost)
    assert errors.mean() < np.mean(by_visits(GRID, blind) * paid / limit.limit)


def test_steps_that_cost_one_are_steps() -> None:
    ones = np.ones((LAKE.mdp.states, LAKE.mdp.actions))
    runs = [
        revar.simulate(LAKE.mdp, LAKE.policy, "flow", runs=2, seed=5, **budget)
        for budget in ({"steps": 3000}, {"budget": 3000.0, "cost": ones})
    ]
    np.testing.assert_array_equal(runs[0].visits, runs[1].visits)
    assert [run.unit for run in runs] == ["steps", "cost"]


def test_steps_that_were_free_so_far_leave_the_first_plan() -> None:
    task = Task.of(
        LAKE.mdp, LAKE.policy, budget=Budget(5.0, "cost"), cost=np.zeros((16, 4))
    ).without_model()
    result = revar.simulate(LAKE.mdp, LAKE.policy, "flow", episodes=9, runs=1, keep_episodes=True)
    statistics = VisitStatistics.for_model(LAKE.mdp)
    statistics.record_many(result.datasets[0])
    scores = Flow().plan(task, statistics).scores
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores.sum(axis=2), LAKE.policy.sum(axis=1)[None].repeat(100, 0))


@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0])
def test_no_plan_exceeds_the_largest_ratio(ratio: float) -> None:
    limits = Limits(max_ratio=ratio)
    result = revar.simulate(
        GRID.mdp, GRID.policy, "flow", episodes=300, runs=3, limits=limits, keep_episodes=True
    )
    for dataset in result.datasets:
        for count in (0, 1, 7, 40, 300):
            statistics = VisitStatistics.for_model(GRID.mdp)
            statistics.record_many(dataset.head(count))
            task = Task.of(GRID.mdp, GRID.policy, budget=300, limits=limits).without_model()
            plan = Flow().plan(task, statistics)
            assert plan.visits_first == 0
            assert (plan.scores <= ratio * GRID.policy + 1e-12).all()


def test_within_a_largest_ratio_the_error_is_near_its_limit() -> None:
    limits = Limits(max_ratio=3.0)
    limit = revar.optimal_flow(GRID.mdp, GRID.policy, limits=limits).limit
    assert limit == pytest.approx(6.377, rel=2e-4)
    result = revar.simulate(
        GRID.mdp, GRID.policy, "flow", episodes=2000, runs=100, seed=4, limits=limits
    )
    errors = by_visits(GRID, result) * 2000 / limit
    assert errors.min() > 0.99
    assert errors.mean() < 1.05
    mse, spread = 2000 * result.mse[-1], 2000 * result.mse_standard_error[-1]
    assert abs(mse - 1.1 * limit) < 3 * spread + 0.1 * limit


def test_the_oracle_follows_the_flow_for_its_budget_and_limits() -> None:
    limits = Limits(max_ratio=2.0)
    result = revar.simulate(
        GRID.mdp, GRID.policy, "flow-oracle", steps=20_000, runs=20, seed=6, limits=limits
    )
    limit = revar.optimal_flow(GRID.mdp, GRID.policy, cost="steps", limits=limits).limit
    errors = by_visits(GRID, result) * result.spent / limit
    assert errors.mean() == pytest.approx(1.0, abs=0.02)


def test_where_little_is_known_episodes_are_not_taken_to_be_short() -> None:
    """Ten steps lead to the end; whatever the policy avoids loses 10 and leads back.

    A plan that tries all of it makes episodes several times as long, which a table of a few of them
    does not show. With such plans the error was 9 times that of the mean return.
    """
    states = 100
    good = np.random.default_rng(1).integers(4, size=states)
    transitions, rewards = np.zeros((states, 4, states)), np.full((states, 4), -10.0)
    for s in range(states):
        for a in range(4):
            if a != good[s]:
                transitions[s, a, s - s % 10] = 1.0
            elif s % 10 != 9:
                transitions[s, a, s + 1] = 1.0
        rewards[s, good[s]] = -1.0
    policy = np.full((states, 4), 0.02)
    policy[np.arange(states), good] = 0.94
    mdp = revar.TabularMDP(transitions, rewards, 0.0, np.full(states, 1 / states), 100)
    steps = round(100 * float(occupancy(mdp, policy).sum()))
    result = revar.simulate(mdp, policy, "flow", steps=steps, runs=60, seed=1, checkpoints=[steps])
    assert result.mse[0] < 3.0 * revar.return_variance(mdp, policy) / 100
    assert result.coverage()[0] > 0.83  # 0.93 of 60, less three standard errors
