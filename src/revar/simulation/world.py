"""The simulated environment: from random draws to first states, outcomes and rewards.

As in `selection`, the rules are functions of a random number. The caller draws it, and draws none
where there is only one possibility: a single start state or outcome, a deterministic reward.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, inlined
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
        outcomes = mdp.arrays.outcomes
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
            int(RewardLaw.find(mdp.reward_law)),
            starts.astype(np.int64),
            np.cumsum(mdp.initial[starts]),
        )


@inlined
def locate(cumulative: FloatArray, first: int, end: int, draw: float) -> int:
    """The place from `first` to `end` at which the cumulated probability passes `draw`."""
    for place in range(first, end - 1):
        if draw < cumulative[place]:
            return place
    return end - 1


@inlined
def reward_of(law: int, mean: float, std: float, draw: float) -> float:
    """The reward of that law, mean and deviation at a standard normal or a uniform draw."""
    if law == RewardLaw.NORMAL:
        return mean + std * draw
    if law == RewardLaw.TWO_POINT:
        return mean + std if draw < 0.5 else mean - std
    if law == RewardLaw.BERNOULLI:
        return 1.0 if draw < mean else 0.0
    if law == RewardLaw.UNIFORM:
        return mean + ROOT_THREE * std * (2.0 * draw - 1.0)
    return mean


def draw_first_state(world: World, rng: np.random.Generator) -> int:
    """The first state of an episode."""
    count = world.start_states.size
    place = locate(world.start_cumulative, 0, count, rng.random()) if count > 1 else 0
    return int(world.start_states[place])


def draw_outcome(world: World, pair: int, rng: np.random.Generator) -> int:
    """The slot of what follows a pair."""
    first, end = int(world.row_start[pair]), int(world.row_start[pair + 1])
    return int(locate(world.cumulative, first, end, rng.random())) if end - first > 1 else first


def draw_reward(world: World, source: int, rng: np.random.Generator) -> float:
    """The reward of a pair, or of a slot where rewards depend on the outcome."""
    draw = 0.0
    if world.reward_law == RewardLaw.NORMAL:
        draw = rng.standard_normal()
    elif world.reward_law != RewardLaw.DETERMINISTIC:
        draw = rng.random()
    mean, std = world.reward_mean[source], world.reward_std[source]
    return float(reward_of(world.reward_law, mean, std, draw))


@compiled
def _cumulative_by_row(row_start: IntArray, probability: FloatArray) -> FloatArray:
    cumulative = np.empty(probability.size)
    for row in range(row_start.size - 1):
        total = 0.0
        for slot in range(row_start[row], row_start[row + 1]):
            total += probability[slot]
            cumulative[slot] = total
    return cumulative
