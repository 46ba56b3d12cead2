"""What may be wrong with values whose gaps are filled (see `revar.theory.gaps`).

How unlike actions are is learned from states that show several; what actions do differently
everywhere adds up over states, and all else is independent.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, compiled_in_place, like_caller
from revar.model.arrays import FloatArray, RunStatistics
from revar.theory.gaps import FilledValues, weighed_less
from revar.theory.influence import pair_worths, with_data
from revar.theory.preference import Corrected


class ActionErrors(NamedTuple):
    """What may be wrong where an action without data is filled."""

    alone: FloatArray  # [A] standard deviation, in a state
    common: FloatArray  # [A] of what may be the same in all states


@like_caller
def errors_of_actions(
    statistics: RunStatistics, policy: FloatArray, corrected: Corrected, errors: FloatArray
) -> ActionErrors:
    """How far what follows an action is from what the others of its state would stand in with.

    Besides what the policy's preference explains. It is the mean square over states, less what
    noise makes of it: `errors` [S, A] is what each pair adds to the variance of the value. The same
    in all states may be the mean, as well as it is known. An action that was nowhere compared takes
    what all have; where no state shows two actions, that is the spread of all pairs.
    """
    found = corrected.found
    weights = with_data(statistics, found.weights)
    worths = pair_worths(statistics.reward_mean, statistics.outcomes, weights, found.gains)
    worths = worths - corrected.slope * policy
    spread = spread_of_worths(weights, worths, weights, worths)
    return ActionErrors(*_compare_actions(weights, worths, errors, spread))


@compiled
def _compare_actions(
    weights: FloatArray, worths: FloatArray, errors: FloatArray, spread_of_all: float
) -> tuple[FloatArray, FloatArray]:
    """The arrays of `ActionErrors`."""
    states, actions = weights.shape
    # Of weights, differences, squares of these less their noise, and squared weights.
    sums = np.zeros((4, actions + 1))
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
                    sums[2, i] += here * (apart * apart - noise)
                    sums[3, i] += here * here
    everywhere = max(0.0, spread_of_all)
    if sums[0, actions] > 0.0:
        everywhere = max(0.0, sums[2, actions]) / sums[0, actions]
    alone = np.zeros(actions)
    common = np.zeros(actions)
    for a in range(actions):
        alone[a] = common[a] = sqrt(everywhere)
        if sums[0, a] > 0.0:
            mean_square = max(0.0, sums[2, a]) / sums[0, a]
            mean = sums[1, a] / sums[0, a]
            share = sums[3, a] / sums[0, a] ** 2  # 1 over the number of states, were all alike
            alone[a] = sqrt(mean_square)
            common[a] = sqrt(min(mean_square, mean * mean + share * mean_square))
    return alone, common


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
    one: Corrected, one_errors: ActionErrors, other: Corrected, other_errors: ActionErrors
) -> float:
    """What filling adds to the covariance of two values.

    What an action does differently everywhere adds up over states, and so does what is unknown of
    the slope. All else is independent. What one of n actions misses others have too much of, and
    the difference to these is theirs as well: of n alike differences (n - 1) / n is its own.
    """
    found, also = one.found, other.found
    error = _add_apart(
        *(found.unknown, found.unknown_error, found.untried, one_errors.alone),
        *(also.unknown, also.unknown_error, also.untried, other_errors.alone),
        found.adrift_error * also.adrift_error + one.error * other.error,
    )
    actions = _count_taken(found.weights, found.untried, also.weights, also.untried)
    together = _add_up(found.missed, one_errors.common, also.missed, other_errors.common)
    return error + together * (actions - 1) / max(1, actions)


@compiled
def _count_taken(
    weights: FloatArray, untried: FloatArray, other_weights: FloatArray, other_untried: FloatArray
) -> int:
    """How many actions the policies take, where there is data."""
    count = 0
    for a in range(weights.shape[1]):
        taken = 0.0
        for s in range(weights.shape[0]):
            taken += weights[s, a] + untried[s, a] + other_weights[s, a] + other_untried[s, a]
        count += taken > 0.0
    return count


@like_caller
def all_amiss(found: FilledValues, policy: FloatArray) -> FilledValues:
    """The same, with all that actions of states with gaps weigh too little or too much.

    Actions are missed wherever they have no data, whatever they stand for elsewhere.
    """
    less = weighed_less(policy, found.weights, found.untried)
    amiss, missed = _amiss(less, found.untried, found.missed)
    return FilledValues(
        found.table,
        found.weights,
        found.gains,
        found.tried,
        amiss,
        missed,
        found.unknown,
        found.unknown_error,
        found.adrift_error,
    )


@compiled
def _amiss(
    less: FloatArray, untried: FloatArray, missed: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """By how much weights are wrong in states with gaps, [S, A], and over all states, [A]."""
    amiss = np.zeros(less.shape)
    over_all = np.zeros(missed.size)
    for a in range(missed.size):
        for s in range(less.shape[0]):
            amiss[s, a] = abs(less[s, a])
            over_all[a] += untried[s, a]
        over_all[a] = max(over_all[a], abs(missed[a]))
    return amiss, over_all


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
    """Products of errors [A] that are the same in all states."""
    error = 0.0
    for a in range(missed.size):
        error += missed[a] * other_missed[a] * errors[a] * other_errors[a]
    return error
