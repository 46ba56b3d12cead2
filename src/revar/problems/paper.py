"""Problems of the paper: a bandit, Examples 1 and 2, the tree and the grid of its experiments."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.validation import check_count, check_share
from revar.problems import Problem, problems


@problems.register("bandit")
def bandit(
    policy: ArrayLike = (0.6, 0.2, 0.1, 0.05, 0.05),
    deviations: ArrayLike = (0.1, 0.5, 1.0, 3.0, 6.0),
    *,
    means_seed: int = 0,
    reward_law: str = "normal",
) -> Problem:
    """Proposition 1: arms that are the noisier, the less the target policy uses them.

    Means are standard normal.
    """
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


@problems.register("example-1")
def example_1(*, reward_law: str = "normal") -> Problem:
    """Child variance matters: the quieter root action leads to the noisier child.

    The root (state 0) leads to state 1 by action 0 and to state 2 by action 1; the target policy
    is uniform. The paper's prose calls the sub-tree of the first action the right one. Assumed:
    means of zero, normal rewards.
    """
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    variances = np.array([[400.0, 600.0], [400.0, 400.0], [4.0, 4.0]])
    mdp = TabularMDP(
        transitions, 0.0, np.sqrt(variances), [1.0, 0.0, 0.0], 2, reward_law=reward_law
    )
    return Problem("example-1", mdp, np.full((3, 2), 0.5))


@problems.register("example-2")
def example_2(likely: float = 0.9, *, spread: float = 10.0, reward_law: str = "normal") -> Problem:
    """The transition model matters: noise behind an unlikely transition counts for little.

    Action 0 leads to state 1 with probability `likely`, else to state 2; action 1 to state 3,
    else to state 4. The paper leaves the variances open; here the likely child of action 0 and
    the unlikely child of action 1 are the noisy ones, with standard deviation `spread` against 1,
    so that the two actions differ by the transition model alone.
    """
    transitions = np.zeros((5, 2, 5))
    transitions[0, 0, 1], transitions[0, 0, 2] = likely, 1.0 - likely
    transitions[0, 1, 3], transitions[0, 1, 4] = likely, 1.0 - likely
    deviations = np.ones((5, 2))
    deviations[[1, 4]] = spread
    mdp = TabularMDP(
        transitions, 0.0, deviations, [1.0, 0.0, 0.0, 0.0, 0.0], 2, reward_law=reward_law
    )
    return Problem("example-2", mdp, np.full((5, 2), 0.5))


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
    check_count(depth, "depth")
    check_share(common, "common")
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


MOVES = ((0, -1), (0, 1), (1, 0), (-1, 0))  # left, right, down, up as (row, column) steps


@problems.register("gridworld")
def gridworld(
    size: int = 4,
    *,
    slip: float = 0.1,
    low_variance: float = 0.01,
    high_variance: float = 20.0,
    common: float = 0.45,
    against: float | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
    means_seed: int = 0,
    reward_law: str = "normal",
) -> Problem:
    """Experiment 2: a `size` x `size` grid on which the rare moves are the noisy ones.

    From the top-left corner to the bottom-right one, which ends the episode.

    Actions are left, right, down, up; the target policy goes right or down with probability 0.45
    each. With probability `slip` the move is drawn uniformly from the four; moves off the grid
    stay. The paper prints variance 0.01 for left and up; as in Experiment 1 they get 20. Assumed,
    because the paper does not say: slip 0.1, horizon 3 * size, normal rewards, standard normal
    means, no discount.

    With `against` the question is by how much the policy exceeds the one that goes right or down
    with that probability each.
    """
    if check_count(size, "size") == 1:
        raise InputError("size is 1; a grid whose start is its goal has no episodes")
    check_share(slip, "slip")
    policy = _grid_policy(size, common, "common")
    other = None if against is None else _grid_policy(size, against, "against")
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
    return Problem("gridworld", mdp, policy, MOVES, other)


def _grid_policy(size: int, common: float, name: str) -> FloatArray:
    """Right and down with probability `common` each, left and up with the rest."""
    check_share(2.0 * common, f"2 * {name}")
    rare = 0.5 - common
    return np.tile([rare, common, common, rare], (size * size, 1))
