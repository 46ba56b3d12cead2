"""Simulated environments for collections: a model's states under keys of one's own choice."""

from collections.abc import Callable, Hashable

import numpy as np

from revar import TabularMDP
from revar.collection import Collection, Episode
from revar.model.arrays import FloatArray
from revar.simulation.world import World, draw_first_state, draw_outcome, draw_reward


def itself(state: int) -> Hashable:
    return state


def play(
    collection: Collection,
    mdp: TabularMDP,
    policy: FloatArray,
    number: int,
    rng: np.random.Generator | None = None,
    key: Callable[[int], Hashable] = itself,
) -> Episode:
    """One episode; draws come from `rng`, or else from the episode's own stream."""
    world = World.of(mdp)
    episode = collection.start(number)
    rng = episode.rng if rng is None else rng
    state = draw_first_state(world, rng)
    while not episode.over:
        action, _ = episode.act(key(state), policy[state])
        pair = state * mdp.actions + action
        slot = draw_outcome(world, pair, rng)
        reward = draw_reward(world, slot if world.by_outcome else pair, rng)
        state = int(world.successor[slot])
        episode.observe(reward, None if state == mdp.states else key(state))
    episode.finish()
    return episode
