"""Small models as plain dense arrays, independent of the library's own layout.

Outcome `states` (the last column) is the end of the episode, as in MATH's convention that the
missing mass of a row ends the episode.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from revar import TabularMDP

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlainModel:
    """A model and a target policy, everything given outcome by outcome."""

    chance: Floats  # [S, A, S+1], rows sum to 1
    mean: Floats  # [S, A, S+1]
    std: Floats  # [S, A, S+1]
    initial: Floats  # [S]
    horizon: int
    discount: float
    policy: Floats  # [S, A]

    @property
    def states(self) -> int:
        return int(self.chance.shape[0])

    @property
    def actions(self) -> int:
        return int(self.chance.shape[1])

    @property
    def reward_by_pair(self) -> bool:
        """Whether mean and std are the same for every outcome of a pair."""
        return bool(
            np.all(self.mean == self.mean[:, :, :1]) and np.all(self.std == self.std[:, :, :1])
        )

    def mdp(self) -> TabularMDP:
        """The library's model, from dense arrays in the simplest form that says the same."""
        mean, std = self.mean, self.std
        if self.reward_by_pair:
            mean, std = mean[:, :, 0], std[:, :, 0]
        return TabularMDP(
            self.chance[:, :, :-1], mean, std, self.initial, self.horizon, self.discount
        )

    def sparse_mdp(self) -> TabularMDP:
        """The same from sparse matrices."""
        pairs = self.states * self.actions
        mean, std = self.mean, self.std
        transitions = sparse.csr_array(self.chance[:, :, :-1].reshape(pairs, -1))
        if self.reward_by_pair:
            return TabularMDP(
                transitions,
                mean[:, :, 0],
                std[:, :, 0],
                self.initial,
                self.horizon,
                self.discount,
            )
        return TabularMDP(
            transitions,
            sparse.csr_array(mean.reshape(pairs, -1)),
            sparse.csr_array(std.reshape(pairs, -1)),
            self.initial,
            self.horizon,
            self.discount,
        )


def tree_model(seed: int, *, by_outcome: bool = False) -> PlainModel:
    """Up to 6 states, each entered through one pair; one or two start states."""
    rng = np.random.default_rng(seed)
    states, actions, horizon = int(rng.integers(3, 7)), int(rng.integers(2, 4)), 4
    roots = int(rng.integers(1, 3))
    weight = np.zeros((states, actions, states + 1))
    level = np.zeros(states, dtype=np.int64)
    for child in range(roots, states):
        parents = np.flatnonzero(level[:child] < horizon - 1)
        parent = int(rng.choice(parents))
        weight[parent, rng.integers(actions), child] = rng.uniform(0.2, 1.0)
        level[child] = level[parent] + 1
    weight[:, :, -1] = rng.uniform(0.0, 0.5, size=(states, actions))
    initial = np.zeros(states)
    initial[:roots] = rng.dirichlet(np.ones(roots))
    return _with_random_rewards(rng, weight, initial, horizon, by_outcome)


def layered_model(seed: int, *, by_outcome: bool = False) -> PlainModel:
    """Layers of 1, 2, 2 and 1 states; each pair leads anywhere in the next layer, or ends."""
    rng = np.random.default_rng(seed)
    actions = int(rng.integers(2, 4))
    layers = [[0], [1, 2], [3, 4], [5]]
    weight = np.zeros((6, actions, 7))
    for layer, following in pairwise(layers):
        weight[np.ix_(layer, range(actions), following)] = rng.uniform(
            0.1, 1.0, size=(len(layer), actions, len(following))
        )
    weight[:, :, -1] = rng.uniform(0.0, 0.3, size=(6, actions))
    initial = np.zeros(6)
    initial[0] = 1.0
    return _with_random_rewards(rng, weight, initial, 4, by_outcome)


def general_model(seed: int, *, by_outcome: bool = False) -> PlainModel:
    """Any state may follow any other, some transitions missing, some pairs able to end."""
    rng = np.random.default_rng(seed)
    states, actions = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    horizon = int(rng.integers(2, 5))
    weight = rng.uniform(0.1, 1.0, size=(states, actions, states + 1))
    weight *= rng.random(weight.shape) < 2.0 / states
    initial = rng.dirichlet(np.ones(states))
    return _with_random_rewards(rng, weight, initial, horizon, by_outcome)


MODELS: dict[str, Callable[..., PlainModel]] = {
    "tree": tree_model,
    "layered": layered_model,
    "general": general_model,
}


def _with_random_rewards(
    rng: np.random.Generator, weight: Floats, initial: Floats, horizon: int, by_outcome: bool
) -> PlainModel:
    states, actions = weight.shape[:2]
    total = weight.sum(axis=2, keepdims=True)
    end = np.zeros_like(weight)
    end[:, :, -1] = 1.0
    chance = np.where(total > 0, weight / np.where(total > 0, total, 1.0), end)
    shape = (states, actions, states + 1 if by_outcome else 1)
    return PlainModel(
        chance=chance,
        mean=np.broadcast_to(rng.normal(size=shape), chance.shape),
        std=np.broadcast_to(rng.exponential(size=shape), chance.shape),
        initial=initial,
        horizon=horizon,
        discount=float(rng.choice([1.0, 0.9, 0.5])),
        policy=rng.dirichlet(np.ones(actions), size=states),
    )
