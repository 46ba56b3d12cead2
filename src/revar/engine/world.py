"""The simulated environment: how first states, outcomes and rewards are drawn.

Every draw has one definition, compiled for the engine and callable from plain Python. A draw that
has only one possible result takes nothing from the stream.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, IntArray
from revar.model.mdp import TabularMDP
from revar.model.rewards import RewardLaw

ROOT_THREE = sqrt(3.0)


class World(NamedTuple):
    """The true model in the form that drawing from it needs."""

    row_start: IntArray  # [pair + 1]
    successor: IntArray  # [slot]
    cumulative: FloatArray  # [slot] cumulative probability within the pair
    reward_mean: FloatArray  # [pair], or [slot] where rewards depend on the outcome
    reward_std: FloatArray  # like reward_mean
    by_outcome: bool
    reward_law: int
    start_states: IntArray  # [start]
    start_cumulative: FloatArray  # [start]

    @classmethod
    def of(cls, mdp: TabularMDP) -> "World":
        """Everything copied, so that the model stays untouched."""
        outcomes = mdp._outcomes
        by_outcome = mdp.rewards_depend_on_outcome
        mean = mdp.outcome_reward_mean if by_outcome else mdp.reward_mean.ravel()
        std = mdp.outcome_reward_std if by_outcome else mdp.reward_std.ravel()
        starts = np.flatnonzero(mdp.initial)
        return cls(
            outcomes.row_start.copy(),
            outcomes.successor.copy(),
            _cumulative_by_row(outcomes.row_start, outcomes.probability),
            np.array(mean),
            np.array(std),
            by_outcome,
            int(RewardLaw.named(mdp.reward_law)),
            starts.astype(np.int64),
            np.cumsum(mdp.initial[starts]),
        )


@compiled
def first_state(world: World, rng: np.random.Generator) -> int:
    """Draw the state an episode begins in."""
    return world.start_states[_place(world.start_cumulative, 0, world.start_states.size, rng)]


@compiled
def draw_outcome(world: World, pair: int, rng: np.random.Generator) -> int:
    """Draw the slot of what follows the pair."""
    return _place(world.cumulative, world.row_start[pair], world.row_start[pair + 1], rng)


@compiled
def draw_reward(world: World, pair: int, slot: int, rng: np.random.Generator) -> float:
    """Draw the reward of the pair, given the outcome's slot."""
    index = slot if world.by_outcome else pair
    mean, std = world.reward_mean[index], world.reward_std[index]
    if world.reward_law == RewardLaw.NORMAL:
        return mean + std * rng.standard_normal()
    if world.reward_law == RewardLaw.TWO_POINT:
        return mean + std if rng.random() < 0.5 else mean - std
    if world.reward_law == RewardLaw.BERNOULLI:
        return 1.0 if rng.random() < mean else 0.0
    if world.reward_law == RewardLaw.UNIFORM:
        return mean + ROOT_THREE * std * (2.0 * rng.random() - 1.0)
    return mean


@compiled
def _place(cumulative: FloatArray, first: int, end: int, rng: np.random.Generator) -> int:
    """Inverse of the cumulative distribution at a uniform draw; none if there is no choice."""
    if end - first == 1:
        return first
    draw = rng.random()
    for place in range(first, end - 1):
        if draw < cumulative[place]:
            return place
    return end - 1


@compiled
def _cumulative_by_row(row_start: IntArray, probability: FloatArray) -> FloatArray:
    cumulative = np.empty(probability.size)
    for row in range(row_start.size - 1):
        total = 0.0
        for slot in range(row_start[row], row_start[row + 1]):
            total += probability[slot]
            cumulative[slot] = total
    return cumulative
