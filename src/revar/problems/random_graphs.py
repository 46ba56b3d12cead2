"""Random problems of every structure: trees, layered graphs and Garnet graphs."""

import numpy as np
from scipy import sparse

from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.problems import Problem, problems


@problems.register("garnet")
def garnet(
    states: int = 10,
    actions: int = 3,
    *,
    branching: int = 3,
    horizon: int = 10,
    ending: float = 0.0,
    discount: float = 1.0,
    seed: int = 0,
    reward_law: str = "normal",
) -> Problem:
    """A Garnet graph (Archibald, McKinnon and Thomas 1995): `branching` random successors a pair.

    Their probabilities are Dirichlet(1), less the probability `ending` that the episode ends;
    means are normal, standard deviations exponential, the target policy Dirichlet(1).
    """
    rng = np.random.default_rng(seed)
    pairs = states * actions
    branching = min(branching, states)
    successors = np.array([rng.choice(states, branching, replace=False) for _ in range(pairs)])
    chance = (1.0 - ending) * rng.dirichlet(np.ones(branching), size=pairs)
    transitions = sparse.csr_array(
        (chance.ravel(), (np.repeat(np.arange(pairs), branching), successors.ravel())),
        shape=(pairs, states),
    )
    initial = np.zeros(states)
    initial[0] = 1.0
    return _with_random_rewards(
        "garnet", transitions, initial, actions, horizon, discount, rng, reward_law
    )


@problems.register("random-tree")
def random_tree(
    depth: int = 3,
    actions: int = 2,
    *,
    branching: int = 2,
    discount: float = 1.0,
    seed: int = 0,
    reward_law: str = "normal",
) -> Problem:
    """A tree in which each pair has 1 to `branching` children with Dirichlet(1) probabilities."""
    rng = np.random.default_rng(seed)
    rows, columns, chances = [], [], []
    level, states = [0], 1
    for _ in range(depth - 1):
        children: list[int] = []
        for s in level:
            for a in range(actions):
                count = int(rng.integers(1, branching + 1))
                new = list(range(states, states + count))
                states += count
                rows += [s * actions + a] * count
                columns += new
                chances += rng.dirichlet(np.ones(count)).tolist()
                children += new
        level = children
    transitions = sparse.csr_array((chances, (rows, columns)), shape=(states * actions, states))
    initial = np.zeros(states)
    initial[0] = 1.0
    return _with_random_rewards(
        "random-tree", transitions, initial, actions, depth, discount, rng, reward_law
    )


@problems.register("layered")
def layered(
    depth: int = 4,
    actions: int = 2,
    *,
    width: int = 3,
    discount: float = 1.0,
    seed: int = 0,
    reward_law: str = "normal",
) -> Problem:
    """A layered graph (the paper's Definition 2): each layer leads anywhere in the next one."""
    rng = np.random.default_rng(seed)
    states = 1 + width * (depth - 1)
    dense = np.zeros((states, actions, states))
    before = np.array([0])
    for level in range(1, depth):
        layer = np.arange(1 + width * (level - 1), 1 + width * level)
        dense[before[:, None], :, layer] = np.moveaxis(
            rng.dirichlet(np.ones(width), size=(before.size, actions)), -1, 1
        )
        before = layer
    initial = np.zeros(states)
    initial[0] = 1.0
    transitions = sparse.csr_array(dense.reshape(-1, states))
    return _with_random_rewards(
        "layered", transitions, initial, actions, depth, discount, rng, reward_law
    )


def _with_random_rewards(
    name: str,
    transitions: sparse.csr_array,
    initial: FloatArray,
    actions: int,
    horizon: int,
    discount: float,
    rng: np.random.Generator,
    reward_law: str,
) -> Problem:
    states = initial.size
    means = rng.normal(size=(states, actions))
    deviations = rng.exponential(size=(states, actions))
    policy = rng.dirichlet(np.ones(actions), size=states)
    mdp = TabularMDP(
        transitions, means, deviations, initial, horizon, discount, reward_law=reward_law
    )
    return Problem(name, mdp, policy)
