"""What the paper's strategies must show on the gridworld of Experiment 2, transitions unknown."""

import numpy as np
import pytest

from revar import estimation_variance, sampling_proportions
from revar.strategies import ReducedVariance
from tests.strategies.measured import Measured, predicted_mse, problem_of, scaled_mse, simulated

EPISODES = 2000
# K*MSE of behavior sampled from Algorithm 2's proportions (MATH, section 4.2).
ORACLE = 8.185
# As good as re-planning after every episode, and several times faster: see the first test.
SELDOM = ReducedVariance(replan_every=25)


@pytest.mark.parametrize("every", [10, 25])
def test_how_often_revar_plans_does_not_matter_here(every: int) -> None:
    grid = problem_of("gridworld")
    always, seldom = (
        predicted_mse(grid, simulated("gridworld", strategy, EPISODES, 200))
        for strategy in (ReducedVariance(), ReducedVariance(replan_every=every))
    )
    assert Measured(seldom.mean, float(np.hypot(always.error, seldom.error))).is_within(
        3, always.mean
    )
    assert always.error < 0.001 * always.mean


def test_the_oracle_reaches_its_theory() -> None:
    grid = problem_of("gridworld")
    behavior = sampling_proportions(grid.mdp, grid.policy).behavior
    assert estimation_variance(grid.mdp, grid.policy, behavior) == pytest.approx(ORACLE, abs=5e-4)
    measured = scaled_mse(simulated("gridworld", "oracle", EPISODES, 4000))
    assert measured.is_within(3, ORACLE)
    assert measured.error < 0.05 * ORACLE


def test_the_order_of_the_strategies() -> None:
    """Oracle, ReVar, on-policy, CB-Var: each better than the next by 2 standard errors."""
    oracle, revar, on_policy, cb_var = (
        scaled_mse(simulated("gridworld", strategy, EPISODES, runs))
        for strategy, runs in (
            ("oracle", 4000),
            (SELDOM, 4000),
            ("on-policy", 2000),
            ("cb-var", 500),
        )
    )
    assert oracle.lies_below(revar, 2)
    assert revar.lies_below(on_policy, 2)
    assert on_policy.lies_below(cb_var, 2)
    assert on_policy.is_within(3, 20.156)


def test_the_order_by_visits() -> None:
    """The same order from where the visits went, with standard errors a hundred times smaller."""
    grid = problem_of("gridworld")
    oracle, revar, on_policy = (
        predicted_mse(grid, simulated("gridworld", strategy, EPISODES, 200))
        for strategy in ("oracle", ReducedVariance(), "on-policy")
    )
    assert oracle.lies_below(revar, 20)
    assert revar.lies_below(on_policy, 20)
