"""A bandit: one state, one step, arms of different noise (Proposition 1)."""

import numpy as np
from numpy.typing import ArrayLike

from revar.model.mdp import TabularMDP
from revar.problems.problem import Problem, problems


@problems.register("bandit")
def bandit(
    policy: ArrayLike = (0.6, 0.2, 0.1, 0.05, 0.05),
    deviations: ArrayLike = (0.1, 0.5, 1.0, 3.0, 6.0),
    *,
    means_seed: int = 0,
    reward_law: str = "normal",
) -> Problem:
    """Arms whose noise grows as the target policy's use of them falls; standard normal means."""
    target = np.atleast_2d(np.asarray(policy, dtype=np.float64))
    arms = target.shape[1]
    means = np.random.default_rng(means_seed).normal(size=(1, arms))
    mdp = TabularMDP(
        np.zeros((1, arms, 1)),
        means,
        np.reshape(deviations, (1, arms)),
        [1.0],
        1,
        reward_law=reward_law,
    )
    return Problem("bandit", mdp, target)
