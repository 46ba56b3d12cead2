"""The paper's Experiment 1: a deterministic tree in which the rare action is the noisy one."""

import numpy as np
from scipy import sparse

from revar.model.mdp import TabularMDP
from revar.model.validation import checked_count, checked_share
from revar.problems.problem import Problem, problems


@problems.register("tree")
def tree(
    depth: int = 4,
    *,
    low_variance: float = 0.01,
    high_variance: float = 20.0,
    common: float = 0.95,
    discount: float = 1.0,
    means_seed: int = 0,
    reward_law: str = "normal",
) -> Problem:
    """A binary tree of `depth` levels: state s leads to 2s+1 (action 0) and 2s+2 (action 1).

    Action 0 has variance 0.01 and target probability 0.95, action 1 variance 20 and 0.05 (the
    paper prints both variances for action 1). Assumed, because the paper does not say: normal
    rewards, standard normal means, no discount.
    """
    checked_count(depth, "depth")
    checked_share(common, "common")
    states = 2**depth - 1
    inner = 2 ** (depth - 1) - 1
    successors = np.arange(1, states)
    transitions = sparse.csr_array(
        (np.ones(states - 1), (np.arange(2 * inner), successors)), shape=(2 * states, states)
    )
    means = np.random.default_rng(means_seed).normal(size=(states, 2))
    deviations = np.tile(np.sqrt([low_variance, high_variance]), (states, 1))
    initial = np.zeros(states)
    initial[0] = 1.0
    mdp = TabularMDP(
        transitions, means, deviations, initial, depth, discount, reward_law=reward_law
    )
    return Problem("tree", mdp, np.tile([common, 1.0 - common], (states, 1)))
