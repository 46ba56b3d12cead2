"""Random models for the optimal flow: every structure, and everything that a model may have."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tests.plain_model import Floats, PlainModel

Booleans = NDArray[np.bool_]

KINDS = ("bandit", "tree", "layered", "garnet", "loops")


def random_model(seed: int) -> PlainModel:
    """Model number `seed`: kinds take turns, and chance adds what makes solving hard.

    That is: pairs without noise, actions and states that the target policy leaves out, states
    that nothing leads to, several start states, discounts, rewards by outcome.
    """
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    weight, starts, horizon = _weights(kind, rng)
    if rng.random() < 0.5:
        weight = _with_unreachable_states(weight, rng)
    states, actions = weight.shape[:2]
    total = weight.sum(axis=2, keepdims=True)
    weight[:, :, -1:] += total == 0
    initial = np.zeros(states)
    initial[:starts] = rng.dirichlet(np.ones(starts))
    shape = (states, actions, states + 1 if rng.random() < 0.4 else 1)
    noisy = rng.random(shape[:2]) < rng.choice([1.0, 0.6, 0.0], p=[0.5, 0.4, 0.1])
    noisy[0, 0] = True  # something is to be learned
    model = PlainModel(
        chance=weight / weight.sum(axis=2, keepdims=True),
        mean=np.broadcast_to(rng.normal(size=shape), weight.shape),
        std=np.broadcast_to(rng.exponential(size=shape) * noisy[:, :, None], weight.shape),
        initial=initial,
        horizon=horizon,
        discount=float(rng.choice([1.0, 0.9, 0.5])),
        policy=rng.dirichlet(np.ones(actions), size=states),
    )
    return _with_gaps(model, rng) if rng.random() < 0.4 else model


def entered_states(model: PlainModel, taken: Booleans) -> Booleans:
    """Which states can be occupied within the horizon by the `taken` [S, A] actions."""
    entered = model.initial > 0
    for _ in range(model.horizon - 1):
        pairs = taken & entered[:, None]
        entered = entered | (model.chance[pairs][:, :-1] > 0).any(axis=0)
    return entered


def _weights(kind: str, rng: np.random.Generator) -> tuple[Floats, int, int]:
    """Unnormalised probabilities [S, A, S+1], the number of start states, the horizon."""
    actions = int(rng.integers(2, 5))
    if kind == "bandit":
        return np.zeros((1, actions, 2)), 1, 1
    if kind == "tree":
        return _tree(actions, rng)
    if kind == "layered":
        return _layered(actions, rng)
    states, horizon = int(rng.integers(4, 11)), int(rng.integers(3, 9))
    weight = np.zeros((states, actions, states + 1))
    for s, a in np.ndindex(states, actions):
        weight[s, a, rng.choice(states, 2, replace=False)] = rng.exponential(size=2)
        if kind == "loops":
            weight[s, a, s] += rng.uniform(0.5, 2.0)
    weight[:, :, -1] = rng.choice([0.0, 0.2], size=(states, actions))
    return weight, int(rng.integers(1, 4)), horizon


def _tree(actions: int, rng: np.random.Generator) -> tuple[Floats, int, int]:
    states, starts, horizon = int(rng.integers(4, 13)), int(rng.integers(1, 4)), 5
    weight = np.zeros((states, actions, states + 1))
    level = np.zeros(states, dtype=np.int64)
    for child in range(starts, states):
        parent = int(rng.choice(np.flatnonzero(level[:child] < horizon - 1)))
        weight[parent, rng.integers(actions), child] = rng.uniform(0.2, 1.0)
        level[child] = level[parent] + 1
    weight[:, :, -1] = rng.choice([0.0, 0.3], size=(states, actions))
    return weight, starts, horizon


def _layered(actions: int, rng: np.random.Generator) -> tuple[Floats, int, int]:
    width, depth = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    states = width * depth
    weight = np.zeros((states, actions, states + 1))
    for here, ahead in pairwise(np.arange(states).reshape(depth, width)):
        weight[here[:, None], :, ahead] = rng.exponential(size=(width, width, actions))
    return weight, int(rng.integers(1, width + 1)), depth


def _with_unreachable_states(weight: Floats, rng: np.random.Generator) -> Floats:
    """Two more states that lead anywhere and are entered from nowhere else."""
    states, actions = weight.shape[:2]
    larger = np.zeros((states + 2, actions, states + 3))
    larger[:states, :, :states] = weight[:, :, :-1]
    larger[:states, :, -1] = weight[:, :, -1]
    larger[states:, :, : states + 2] = rng.exponential(size=(2, actions, states + 2))
    return larger


def _with_gaps(model: PlainModel, rng: np.random.Generator) -> PlainModel:
    """The target policy leaves out actions, and has no row for the states it never enters."""
    kept = rng.random(model.policy.shape) < 0.6
    kept[np.arange(model.states), rng.integers(model.actions, size=model.states)] = True
    kept[0, 0] = True
    policy = model.policy * kept
    policy /= policy.sum(axis=1, keepdims=True)
    policy[~entered_states(model, policy > 0)] = 0.0
    return replace(model, policy=policy)
