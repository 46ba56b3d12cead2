"""What may be wrong with values whose gaps are filled (see `revar.theory.gaps`).

How unlike actions are is learned from states that show several; what actions do differently
everywhere adds up over states, and all else is independent.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, compiled_in_place, like_caller
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.moments import ROUNDING
from revar.theory.gaps import FilledValues

# What is so many standard errors away from zero is not chance.
EVIDENT = 3.0


@like_caller
def with_data(statistics: RunStatistics, weights: FloatArray) -> FloatArray:
    """Weights [S, A] of pairs with data; others weigh something where transitions are known."""
    return np.where(statistics.visits > 0, weights, 0.0)


@compiled
def pair_worths(statistics: RunStatistics, weights: FloatArray, gains: FloatArray) -> FloatArray:
    """What follows a visit of each pair, reward and all, in units of its weight, [S, A]."""
    row_start, _, probability = statistics.outcomes
    states, actions = weights.shape
    worths = np.zeros((states, actions))
    for s in range(states):
        for a in range(actions):
            w = weights[s, a]
            if w != 0.0:
                p = s * actions + a
                worths[s, a] = statistics.reward_mean[s, a]
                for o in range(row_start[p], row_start[p + 1]):
                    worths[s, a] += probability[o] * gains[o] / w
    return worths


@compiled
def spread_of_choices(
    initial: FloatArray, table: FloatArray, weights: FloatArray, worths: FloatArray
) -> float:
    """What first states and the policy's actions add to the variance of a return."""
    mean = 0.0
    square = 0.0
    for s in range(initial.size):
        mean += initial[s] * table[0, s]
        square += initial[s] * table[0, s] ** 2
    spread = max(0.0, square - mean * mean)
    for s in range(initial.size):
        here = 0.0
        mean = 0.0
        square = 0.0
        for a in range(weights.shape[1]):
            here += weights[s, a]
            mean += weights[s, a] * worths[s, a]
            square += weights[s, a] * worths[s, a] ** 2
        if here > 0.0:
            spread += max(0.0, square - mean * mean / here)
    return spread


class ActionErrors(NamedTuple):
    """What may be wrong where an action without data is filled."""

    alone: FloatArray  # [A] standard deviation, in a state
    common: FloatArray  # [A] of what may be the same in all states
    evident: FloatArray  # [A] of what the data shows to be the same in all states
    slope: float  # how much more follows what the policy prefers, in all states, if that is evident


@like_caller
def errors_of_actions(
    statistics: RunStatistics, policy: FloatArray, found: FilledValues, errors: FloatArray
) -> ActionErrors:
    """How far what follows an action is from what the others of its state would stand in with.

    The mean square over states, less what noise makes of it: `errors` [S, A] is what each pair adds
    to the variance of the value. The same in all states may be the mean, as well as it is known. An
    action that was nowhere compared takes what all have; where no state shows two actions, that
    is the spread of all pairs.
    """
    weights = with_data(statistics, found.weights)
    worths = pair_worths(statistics, weights, found.gains)
    spread = spread_of_worths(weights, worths, weights, worths)
    alone, common, evident = _compare_actions(weights, worths, errors, spread)
    slope = _slope_of_preference(policy, weights, worths, errors)
    return ActionErrors(alone, common, evident, slope)


@compiled
def _slope_of_preference(
    policy: FloatArray, weights: FloatArray, worths: FloatArray, errors: FloatArray
) -> float:
    """How much more follows an action for each unit of the policy's preference, within states.

    The slope of a regression; zero unless it is EVIDENT standard errors away from that. These are
    the larger of what visits make of noise, and of what leaving out one state after the other does.
    """
    states, actions = weights.shape
    both = 0.0
    square = 0.0
    whole = 0.0
    noise = 0.0
    for s in range(states):
        preference, worth = _means_of_state(policy, weights, worths, s)
        for a in range(actions):
            apart = policy[s, a] - preference
            both += weights[s, a] * apart * (worths[s, a] - worth)
            square += weights[s, a] * apart * apart
            whole += weights[s, a] * policy[s, a] * policy[s, a]
            if weights[s, a] > 0.0:
                noise += apart * apart * errors[s, a]
    if square <= ROUNDING * whole:
        return 0.0
    slope = both / square
    left_out = 0.0
    for s in range(states):
        preference, worth = _means_of_state(policy, weights, worths, s)
        score = 0.0
        lever = 0.0
        for a in range(actions):
            apart = policy[s, a] - preference
            score += weights[s, a] * apart * (worths[s, a] - worth - slope * apart)
            lever += weights[s, a] * apart * apart
        if lever >= (1.0 - ROUNDING) * square:  # no other state tells
            return 0.0
        left_out += (score / (1.0 - lever / square)) ** 2
    doubt = max(noise, left_out) / (square * square)
    return slope if slope * slope > EVIDENT * EVIDENT * doubt else 0.0


@compiled_in_place
def _means_of_state(
    policy: FloatArray, weights: FloatArray, worths: FloatArray, state: int
) -> tuple[float, float]:
    """The means of preference and worth, by weight."""
    here = 0.0
    preference = 0.0
    worth = 0.0
    for a in range(weights.shape[1]):
        here += weights[state, a]
        preference += weights[state, a] * policy[state, a]
        worth += weights[state, a] * worths[state, a]
    return (preference / here, worth / here) if here > 0.0 else (0.0, 0.0)


@compiled
def _compare_actions(
    weights: FloatArray, worths: FloatArray, errors: FloatArray, spread_of_all: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The arrays of `ActionErrors`."""
    states, actions = weights.shape
    # Of weights, differences, squares of these with noise and less it, and squared weights.
    sums = np.zeros((5, actions + 1))
    for s in range(states):
        here = 0.0
        worth_here = 0.0
        error_here = 0.0
        for a in range(actions):
            here += weights[s, a]
            worth_here += weights[s, a] * worths[s, a]
            error_here += errors[s, a]
        for a in range(actions):
            w = weights[s, a]
            if 0.0 < w < here:
                apart = worths[s, a] - (worth_here - w * worths[s, a]) / (here - w)
                noise = errors[s, a] / w**2 + (error_here - errors[s, a]) / (here - w) ** 2
                for i in (a, actions):
                    sums[0, i] += here
                    sums[1, i] += here * apart
                    sums[2, i] += here * apart * apart
                    sums[3, i] += here * (apart * apart - noise)
                    sums[4, i] += here * here
    everywhere = max(0.0, spread_of_all)
    if sums[0, actions] > 0.0:
        everywhere = max(0.0, sums[3, actions]) / sums[0, actions]
    alone = np.zeros(actions)
    common = np.zeros(actions)
    evident = np.zeros(actions)
    for a in range(actions):
        alone[a] = common[a] = sqrt(everywhere)
        if sums[0, a] > 0.0:
            mean_square = max(0.0, sums[3, a]) / sums[0, a]
            mean = sums[1, a] / sums[0, a]
            share = sums[4, a] / sums[0, a] ** 2  # 1 over the number of states, were all alike
            alone[a] = sqrt(mean_square)
            common[a] = sqrt(min(mean_square, mean * mean + share * mean_square))
            if share < 1.0:
                spread = max(0.0, sums[2, a] / sums[0, a] - mean * mean)
                evident[a] = sqrt(max(0.0, mean * mean - spread * share / (1.0 - share)))
    return alone, common, evident


@compiled_in_place
def spread_of_worths(
    weights: FloatArray, worths: FloatArray, other_weights: FloatArray, other_worths: FloatArray
) -> float:
    """The covariance of what follows visits of two policies, over pairs by both their weights."""
    states, actions = weights.shape
    mass = 0.0
    mean = 0.0
    other_mean = 0.0
    for s in range(states):
        for a in range(actions):
            share = sqrt(weights[s, a] * other_weights[s, a])
            mass += share
            mean += share * worths[s, a]
            other_mean += share * other_worths[s, a]
    if mass == 0.0:
        return 0.0
    mean /= mass
    other_mean /= mass
    spread = 0.0
    for s in range(states):
        for a in range(actions):
            share = sqrt(weights[s, a] * other_weights[s, a])
            spread += share * (worths[s, a] - mean) * (other_worths[s, a] - other_mean)
    return spread / mass


@like_caller
def error_of_gaps(
    one: FilledValues, one_errors: ActionErrors, other: FilledValues, other_errors: ActionErrors
) -> float:
    """What filling adds to the covariance of two values.

    What an action does differently everywhere adds up over states. All else is independent.
    """
    error = _add_apart(
        *(one.unknown, one.unknown_error, one.untried, one_errors.alone),
        *(other.unknown, other.unknown_error, other.untried, other_errors.alone),
        one.adrift_error * other.adrift_error,
    )
    error += _add_up(one.missed, one_errors.common, other.missed, other_errors.common)
    return error + _tilt_error(one, one_errors) * _tilt_error(other, other_errors)


@like_caller
def _tilt_error(found: FilledValues, errors: ActionErrors) -> float:
    """What taking preferred actions too often adds, beyond what actions add by themselves."""
    return _beyond(
        found.tilt * errors.slope,
        _add_up(found.missed, errors.common, found.missed, errors.common),
    )


@compiled_in_place
def _beyond(error: float, variance: float) -> float:
    more = sqrt(max(0.0, error * error - variance))
    return more if error > 0.0 else -more


@like_caller
def nothing_made_up(found: FilledValues) -> FilledValues:
    """The same as if an action were missed wherever it has no data, whatever it does elsewhere."""
    return FilledValues(
        found.table,
        found.weights,
        found.gains,
        found.untried,
        found.untried.sum(axis=0),
        0.0,
        found.unknown,
        found.unknown_error,
        found.adrift_error,
    )


@like_caller
def evident_error(found: FilledValues, errors: ActionErrors) -> float:
    """What filling is seen to add to the squared error of a value."""
    tilted = found.tilt * errors.slope
    by_action = _add_up(found.missed, errors.evident, found.missed, errors.evident)
    return max(tilted * tilted, by_action)


@compiled_in_place
def _add_apart(
    unknown: FloatArray,
    unknown_error: float,
    untried: FloatArray,
    alone: FloatArray,
    other_unknown: FloatArray,
    other_unknown_error: float,
    other_untried: FloatArray,
    other_alone: FloatArray,
    error: float,
) -> float:
    """`error` and products of errors in each state, of states and of pairs without data."""
    for s in range(untried.shape[0]):
        both = unknown[s] * other_unknown[s]
        error += both * unknown_error * other_unknown_error
        for a in range(untried.shape[1]):
            both = untried[s, a] * other_untried[s, a]
            error += both * alone[a] * other_alone[a]
    return error


@compiled_in_place
def _add_up(
    missed: FloatArray, errors: FloatArray, other_missed: FloatArray, other_errors: FloatArray
) -> float:
    """Products of errors [A] that are the same in all states.

    What one of n actions misses others have too much of, and the difference to these is theirs as
    well: of n alike differences (n - 1) / n is an action's own.
    """
    error = 0.0
    for a in range(missed.size):
        error += missed[a] * other_missed[a] * errors[a] * other_errors[a]
    return error * (missed.size - 1) / missed.size
