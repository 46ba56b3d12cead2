"""ReVar's regret on the tree falls at least like n^(-3/2) (Theorem 2).

Regret is taken from the visits, sum w^2 sigma^2 / T - B^2 / K. What is lost is of second order in
the deviation from the best proportions, so that the paper's rate is an upper bound.
"""

import numpy as np
import pytest

from revar import occupancy, oracle_mse, simulate
from revar.strategies import ReducedVariance
from tests.strategies.measured import problem_of

EPISODES = [1_500, 3_000, 6_000, 12_500, 25_000, 50_000]
RUNS = 60


@pytest.mark.parametrize(("scale", "steepest"), [(1.0, -1.4), (0.1, -1.6), (0.0, -1.6)])
def test_regret_falls_at_least_that_fast(scale: float, steepest: float) -> None:
    tree = problem_of("tree")
    costs = (occupancy(tree.mdp, tree.policy).sum(axis=0) * tree.mdp.reward_std) ** 2
    regrets = np.empty((len(EPISODES), RUNS))
    for i, episodes in enumerate(EPISODES):
        result = simulate(
            tree.mdp,
            tree.policy,
            ReducedVariance(confidence_scale=scale),
            episodes=episodes,
            runs=RUNS,
            checkpoints=[episodes],
        )
        made = (costs / result.visits).sum(axis=(1, 2))
        regrets[i] = made - oracle_mse(tree.mdp, tree.policy, episodes)
    mean = regrets.mean(axis=1)
    # Tracking the best proportions exactly is the minimum, up to whole visits.
    assert np.all(mean > 0)
    # Least squares of log regret on log K, and its error from the spread between runs.
    axis = np.log(EPISODES) - np.log(EPISODES).mean()
    slope = float(axis @ np.log(mean) / (axis @ axis))
    relative = regrets.std(axis=1, ddof=1) / np.sqrt(RUNS) / mean
    error = float(np.sqrt((axis**2) @ relative**2) / (axis @ axis))
    assert slope + 3 * error <= steepest
