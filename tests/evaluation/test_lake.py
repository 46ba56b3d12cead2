"""FrozenLake, simulated and real: small versions of benchmarks/lake_study.py."""

import numpy as np
import pytest
from benchmarks.lake_study import LAKES, lake_model, real_estimates, simulated, soft_policy, stopped
from scipy.stats import ks_2samp

import revar
from revar.theory.costs import variance_of_visits


def within(share: float, runs: int) -> bool:
    """Consistent with 95%, within four standard errors of that many runs."""
    return bool(abs(share - 0.95) < 4 * np.sqrt(0.95 * 0.05 / runs))


@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_intervals_hold_and_visits_go_where_they_should(epsilon: float) -> None:
    """Without the covariance of reward and successor the visits are 35% above the limit."""
    mdp, policy = lake_model(4), soft_policy(4, epsilon)
    result = simulated(mdp, policy, "flow", 2000, 150)
    assert within(float(result.coverage()[0]), 150)
    costs = revar.one_step_costs(mdp, policy)
    limit = revar.optimal_flow(mdp, policy, tolerance=1e-3).limit
    reached = [variance_of_visits(costs, visits / 2000) for visits in result.visits]
    assert np.median(reached) < 1.25 * limit


def test_the_real_environment_and_the_engine_agree() -> None:
    """Two samples of estimates, one through env.step; a bias of one deviation has p < 2e-4."""
    policy = soft_policy(4, 0.2)
    twin = simulated(lake_model(4), policy, "flow", 75, 500)
    estimates, held = real_estimates(4, policy, float(twin.true_value), 40, episodes=75)
    assert ks_2samp(estimates, twin.estimates[:, 0]).pvalue > 0.001
    assert abs(held.mean() - twin.coverage()[0]) < 4 * np.sqrt(0.1 * 0.9 / 40)


def test_stopping_at_a_half_width_keeps_its_promise() -> None:
    """With the usual quantile, 1.96, four in five of these intervals hold."""
    case = stopped("lake", lake_model(4), soft_policy(4, 0.5), 0.01, 150)
    assert case.reached > 0.9
    assert case.coverage > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 150)
    assert case.naive_coverage < case.coverage


def test_the_lake_of_the_study_is_gymnasiums() -> None:
    for size, name in LAKES.items():
        built_in = revar.find_problem("frozenlake", size=size).mdp
        mdp = revar.from_gymnasium(name, discount=0.99)
        policy = soft_policy(size, 0.2)
        assert revar.policy_value(mdp, policy) == pytest.approx(
            revar.policy_value(built_in, policy), rel=1e-9
        )
