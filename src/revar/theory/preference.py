"""What the policy avoids may be worse everywhere: then filling that leaves it out is corrected.

A good policy avoids what is bad, and that is what has no data. If in all states what follows an
action is better by so much for each unit of the policy's preference, then what filling adds to a
value is told by how much more than it does the filled policy takes what it prefers.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, compiled_in_place, like_caller
from revar.model.arrays import FloatArray, Layers, RunStatistics
from revar.model.moments import ROUNDING
from revar.model.tables import dot, total
from revar.theory.gaps import FilledValues, filled_values
from revar.theory.influence import pair_worths, with_data
from revar.theory.recursions import backward_values

# What is so many standard errors away from zero is not chance.
EVIDENT = 3.0


class Corrected(NamedTuple):
    """Filled values with what the policy's preference explains of their gaps."""

    found: FilledValues
    slope: float  # how much more follows an action for each unit of preference; 0 if not evident
    error: float  # of the value, by the standard error of the slope


@like_caller
def correct_for_preference(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    found: FilledValues,
    errors: FloatArray,
    layers: Layers,
    discount: float,
    known_transitions: bool,
) -> Corrected:
    """What `found` is once gaps pay what the policy's preference makes of them.

    A correction also moves what follows an action: the slope is that of the corrected values.
    `errors` [S, A] is what each pair adds to the variance of the value.
    """
    if total(found.untried) == 0.0:
        return Corrected(found, 0.0, 0.0)
    lost = _preference_lost(policy, found, known_transitions)
    table, gains = _worth_of(
        *(lost, statistics, initial, policy, found, layers, discount, known_transitions)
    )
    weights = with_data(statistics, found.weights)
    outcomes = statistics.outcomes
    slope, slope_error = _slope_of_preference(
        policy,
        weights,
        pair_worths(statistics.reward_mean, outcomes, weights, found.gains),
        pair_worths(lost, outcomes, weights, gains),
        errors,
    )
    if slope == 0.0:
        return Corrected(found, 0.0, 0.0)
    corrected = FilledValues(
        found.table + slope * table,
        found.weights,
        found.gains + slope * gains,
        found.tried,
        found.untried,
        found.missed,
        found.unknown,
        found.unknown_error,
        found.adrift_error,
    )
    return Corrected(corrected, slope, slope_error * dot(initial, table[0]))


@compiled
def _preference_lost(
    policy: FloatArray, found: FilledValues, known_transitions: bool
) -> FloatArray:
    """How much more preferred a step is than the steps which stand in for it, [S, A].

    Of pairs without data, where transitions are known; else of pairs with data, which stand in.
    """
    lost = np.zeros(policy.shape)
    for s in range(policy.shape[0]):
        preferred = 0.0
        taken = 0.0
        gap = 0.0
        for a in range(policy.shape[1]):
            preferred += policy[s, a] * policy[s, a]
            taken += found.tried[s, a] * policy[s, a]
            gap += found.untried[s, a]
        if gap == 0.0:
            continue
        for a in range(policy.shape[1]):
            if known_transitions:
                if found.untried[s, a] > 0.0:
                    lost[s, a] = policy[s, a] - taken
            elif found.tried[s, a] > 0.0:
                lost[s, a] = preferred - taken
    return lost


@like_caller
def _worth_of(
    rewards: FloatArray,
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    found: FilledValues,
    layers: Layers,
    discount: float,
    known_transitions: bool,
) -> tuple[FloatArray, FloatArray]:
    """The table and the gains of other rewards, under the same filling."""
    if known_transitions:
        one = policy.reshape((1, policy.shape[0], policy.shape[1]))
        table = backward_values(statistics.outcomes, rewards, one, layers, discount)
        return table, np.zeros(found.gains.size)
    paid = RunStatistics(
        statistics.outcomes,
        statistics.visits,
        rewards,
        statistics.reward_squares,
        statistics.reward_cubes,
        statistics.reward_quartics,
        statistics.outcome_count,
        statistics.outcome_reward_mean,
        statistics.initial_count,
    )
    filled = filled_values(paid, initial, policy, found.tried, layers, discount)
    return filled.table, filled.gains


@compiled
def _slope_of_preference(
    policy: FloatArray,
    weights: FloatArray,
    worths: FloatArray,
    moved: FloatArray,
    errors: FloatArray,
) -> tuple[float, float]:
    """How much more follows an action for each unit of the policy's preference, within states.

    The slope at which `worths` and what it adds to them, so many times `moved`, have no other
    regression on preference; and its standard error, which is the larger of what visits make of
    noise, and of what leaving out one state after the other does. Both are zero unless the slope
    is EVIDENT standard errors away from that.
    """
    states, actions = weights.shape
    both = 0.0
    lever = 0.0
    square = 0.0
    whole = 0.0
    noise = 0.0
    for s in range(states):
        preference, worth, more = _means_of_state(policy, weights, worths, moved, s)
        for a in range(actions):
            apart = policy[s, a] - preference
            both += weights[s, a] * apart * (worths[s, a] - worth)
            lever += weights[s, a] * apart * (apart - (moved[s, a] - more))
            square += weights[s, a] * apart * apart
            whole += weights[s, a] * policy[s, a] * policy[s, a]
            if weights[s, a] > 0.0:
                noise += apart * apart * errors[s, a]
    if square <= ROUNDING * whole or lever <= ROUNDING * square:
        return 0.0, 0.0
    slope = both / lever
    left_out = 0.0
    for s in range(states):
        preference, worth, more = _means_of_state(policy, weights, worths, moved, s)
        score = 0.0
        own = 0.0
        for a in range(actions):
            apart = policy[s, a] - preference
            unmoved = apart - (moved[s, a] - more)
            score += weights[s, a] * apart * (worths[s, a] - worth - slope * unmoved)
            own += weights[s, a] * apart * unmoved
        if own >= (1.0 - ROUNDING) * lever:  # no other state tells
            return 0.0, 0.0
        left_out += (score / (1.0 - own / lever)) ** 2
    doubt = max(noise, left_out) / (lever * lever)
    return (slope, sqrt(doubt)) if slope * slope > EVIDENT * EVIDENT * doubt else (0.0, 0.0)


@compiled_in_place
def _means_of_state(
    policy: FloatArray, weights: FloatArray, worths: FloatArray, moved: FloatArray, state: int
) -> tuple[float, float, float]:
    """The means of preference, worth and what moves it, by weight."""
    here = 0.0
    preference = 0.0
    worth = 0.0
    more = 0.0
    for a in range(weights.shape[1]):
        here += weights[state, a]
        preference += weights[state, a] * policy[state, a]
        worth += weights[state, a] * worths[state, a]
        more += weights[state, a] * moved[state, a]
    if here == 0.0:
        return 0.0, 0.0, 0.0
    return preference / here, worth / here, more / here
