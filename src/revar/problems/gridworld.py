"""The paper's Experiment 2: a grid on which the rare moves, left and up, are the noisy ones."""

import numpy as np
from scipy import sparse

from revar.errors import InputError
from revar.model.mdp import TabularMDP
from revar.model.validation import checked_count, checked_share
from revar.problems.problem import Problem, problems

MOVES = ((0, -1), (0, 1), (1, 0), (-1, 0))  # left, right, down, up as (row, column) steps


@problems.register("gridworld")
def gridworld(
    size: int = 4,
    *,
    slip: float = 0.1,
    low_variance: float = 0.01,
    high_variance: float = 20.0,
    common: float = 0.45,
    horizon: int | None = None,
    discount: float = 1.0,
    means_seed: int = 0,
    reward_law: str = "normal",
) -> Problem:
    """A `size` x `size` grid from the top-left corner to the bottom-right one, which ends it.

    Actions are left, right, down, up; the target policy goes right or down with probability 0.45
    each. With probability `slip` the move is drawn uniformly from the four; moves off the grid
    stay. The paper prints variance 0.01 for left and up; as in Experiment 1 they get 20. Assumed,
    because the paper does not say: slip 0.1, horizon 3 * size, normal rewards, standard normal
    means, no discount.
    """
    if checked_count(size, "size") == 1:
        raise InputError("size is 1; a grid whose start is its goal has no episodes")
    checked_share(slip, "slip")
    checked_share(2.0 * common, "2 * common")
    states = size * size
    cells = np.arange(states)
    landing = np.empty((states, 4), dtype=np.int64)
    for action, (down, right) in enumerate(MOVES):
        rows = np.clip(cells // size + down, 0, size - 1)
        columns = np.clip(cells % size + right, 0, size - 1)
        landing[:, action] = rows * size + columns
    goal = states - 1
    chance = np.full((4, 4), slip / 4) + (1.0 - slip) * np.eye(4)  # [action, move]
    going = np.delete(cells, goal)
    pairs = np.repeat(going[:, None] * 4 + np.arange(4), 4, axis=1).ravel()
    transitions = sparse.coo_array(
        (
            np.tile(chance.ravel(), going.size),
            (pairs, np.tile(landing[going], (1, 4)).ravel()),
        ),
        shape=(states * 4, states),
    ).tocsr()
    # Reaching the goal ends the episode, so that no action is ever taken there.
    transitions = transitions @ sparse.diags_array((cells != goal).astype(np.float64))
    means = np.random.default_rng(means_seed).normal(size=(states, 4))
    means[goal] = 0.0
    deviations = np.tile(
        np.sqrt([high_variance, low_variance, low_variance, high_variance]), (states, 1)
    )
    initial = np.zeros(states)
    initial[0] = 1.0
    mdp = TabularMDP(
        transitions,
        means,
        deviations,
        initial,
        horizon or 3 * size,
        discount,
        reward_law=reward_law,
    )
    rare = 0.5 - common
    policy = np.tile([rare, common, common, rare], (states, 1))
    return Problem("gridworld", mdp, policy, MOVES)
