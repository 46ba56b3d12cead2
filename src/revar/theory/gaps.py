"""What stands in the place of data that is missing, so that no value depends on where zero is.

A pair without data takes what the target policy's other actions showed in its state. A state
without data takes what is typical: what the policy is worth at that step in states with data. Where
no such state is occupied, every further step is an average visit.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes, RunStatistics
from revar.theory.influence import influence
from revar.theory.recursions import backward_values

# A table in which more than this share of the policy's steps was seen at most once is thin.
MOST = 0.5


class FilledValues(NamedTuple):
    """A policy's values with gaps filled, how they depend on each pair, and what rests on gaps."""

    table: FloatArray  # [L+1, S+1] v_t(s)
    weights: FloatArray  # [S, A] W, by pairs with data
    gains: FloatArray  # [slot] g
    untried: FloatArray  # [S, A] weight of pairs without data, in states with data
    unknown: FloatArray  # [S] weight of states without data
    unknown_error: float  # standard deviation of what filling a state may miss
    adrift_error: float  # error of steps at which no state with data is occupied


@compiled
def tried_policy(policy: FloatArray, visits: IntArray) -> FloatArray:
    """The policy among actions with data, [S, A]; rows of states without any are zero."""
    tried = np.zeros(policy.shape)
    for s in range(policy.shape[0]):
        share = 0.0
        missing = False
        for a in range(policy.shape[1]):
            if policy[s, a] > 0.0:
                if visits[s, a] > 0:
                    share += policy[s, a]
                else:
                    missing = True
        for a in range(policy.shape[1]):
            if visits[s, a] > 0:
                tried[s, a] = policy[s, a] / share if missing and share > 0.0 else policy[s, a]
    return tried


@compiled
def filled_values(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    layers: Layers,
    discount: float,
) -> FilledValues:
    """The values of `policy` [S, A] in the estimated model, with its gaps filled."""
    start, layer_states = layers
    outcomes, reward_mean = statistics.outcomes, statistics.reward_mean
    row_start, successors, probability = outcomes
    states, actions = policy.shape
    horizon = start.size - 1
    tried = tried_policy(policy, statistics.visits)
    known = tried.sum(axis=1) > 0.0  # [S]
    usual_reward, going_on = _usual_visit(statistics)
    present, adrift, unknown = _occupied(
        *(outcomes, initial, tried, known, layers, discount, going_on)
    )
    values = np.zeros((horizon + 1, states + 1))
    weights = np.zeros(policy.shape)
    gains = np.zeros(successors.size)
    typical = 0.0
    spread = 0.0
    mass = 0.0
    adrift_error = 0.0
    for t in range(horizon - 1, -1, -1):
        here = 0.0
        total = 0.0
        square = 0.0
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            if not known[s]:
                continue
            value = 0.0
            for a in range(actions):
                if tried[s, a] == 0.0:
                    continue
                p = s * actions + a
                w = present[t, s] * tried[s, a]
                weights[s, a] += w
                ahead = 0.0
                for o in range(row_start[p], row_start[p + 1]):
                    ahead += probability[o] * values[t + 1, successors[o]]
                    gains[o] += discount * w * values[t + 1, successors[o]]
                value += tried[s, a] * (reward_mean[s, a] + discount * ahead)
            values[t, s] = value
            here += present[t, s]
            total += present[t, s] * value
            square += present[t, s] * value * value
        if here > 0.0:
            typical = total / here
            spread += max(0.0, square - total * typical)
            mass += here
        else:
            typical = usual_reward + discount * going_on * typical
        adrift_error += adrift[t] * abs(typical)
        for i in range(start[t], start[t + 1]):
            if not known[layer_states[i]]:
                values[t, layer_states[i]] = typical
    untried = _untried(policy, statistics.visits, weights)
    unknown_error = sqrt(spread / mass) if mass > 0.0 else 0.0
    return FilledValues(values, weights, gains, untried, unknown, unknown_error, adrift_error)


@compiled
def _untried(policy: FloatArray, visits: IntArray, weights: FloatArray) -> FloatArray:
    """What pairs without data would weigh, in states with data, [S, A]."""
    untried = np.zeros(policy.shape)
    for s in range(policy.shape[0]):
        entered = np.sum(weights[s])
        for a in range(policy.shape[1]):
            if visits[s, a] == 0:
                untried[s, a] = entered * policy[s, a]
    return untried


@compiled
def thin_share_of(found: FilledValues, visits: IntArray) -> float:
    """The share of the policy's steps in pairs that were visited at most once.

    Where it is large, a table averages nothing.
    """
    thin = np.sum(found.untried) + np.sum(found.unknown)
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            if visits[s, a] == 1:
                thin += found.weights[s, a]
    total = np.sum(found.weights)
    return min(1.0, thin / total) if total > 0.0 else 1.0


@compiled
def _usual_visit(statistics: RunStatistics) -> tuple[float, float]:
    """The mean reward of a visit, and the share of visits after which the episode went on."""
    states, actions = statistics.visits.shape
    row_start, successors, _ = statistics.outcomes
    visits = 0
    rewards = 0.0
    ended = 0
    for s in range(states):
        for a in range(actions):
            visits += statistics.visits[s, a]
            rewards += statistics.visits[s, a] * statistics.reward_mean[s, a]
            p = s * actions + a
            for o in range(row_start[p], row_start[p + 1]):
                if successors[o] == states:
                    ended += statistics.outcome_count[o]
    return rewards / max(1, visits), 1.0 - ended / max(1, visits)


@compiled
def _occupied(
    outcomes: Outcomes,
    initial: FloatArray,
    tried: FloatArray,
    known: FloatArray,
    layers: Layers,
    discount: float,
    going_on: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """gamma^t d_t(s) of states with data [L, S], of steps without any [L], and of others [S].

    What falls on a state without data is shared out to those with data of the same step, in
    proportion.
    """
    start, layer_states = layers
    row_start, successors, probability = outcomes
    states, actions = tried.shape
    horizon = start.size - 1
    present = np.zeros((horizon, states))
    adrift = np.zeros(horizon)
    unknown = np.zeros(states)
    now = np.zeros(states + 1)
    now[:states] = initial
    ahead = np.zeros(states + 1)
    carried = 0.0
    for t in range(horizon):
        found = 0.0
        lost = carried
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            if known[s]:
                found += now[s]
            elif now[s] > 0.0:
                lost += now[s]
                unknown[s] += now[s]
        carried = 0.0
        scale = 1.0
        if lost > 0.0:
            if found > 0.0:
                scale = (found + lost) / found
            else:
                adrift[t] = lost
                carried = discount * going_on * lost
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            mass = now[s] * scale
            now[s] = 0.0
            if mass == 0.0 or not known[s]:
                continue
            present[t, s] = mass
            for a in range(actions):
                w = mass * tried[s, a]
                if w == 0.0:
                    continue
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    ahead[successors[o]] += discount * w * probability[o]
        ahead[states] = 0.0
        now, ahead = ahead, now
    return present, adrift, unknown


@compiled
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


class ActionErrors(NamedTuple):
    """What may be wrong where an action without data is filled."""

    alone: FloatArray  # [A] standard deviation, in a state
    common: FloatArray  # [A] of what may be the same in all states
    evident: FloatArray  # [A] of what the data shows to be the same in all states


@compiled
def errors_of_actions(
    statistics: RunStatistics, found: FilledValues, errors: FloatArray
) -> ActionErrors:
    """How far what follows an action is from what the others of its state would stand in with.

    The mean square over states, less what noise makes of it: `errors` [S, A] is what each pair adds
    to the variance of the value. The same in all states may be the mean, as well as it is known. An
    action that was nowhere compared takes what all have; where no state shows two actions, that
    is the spread of all pairs.
    """
    weights = with_data(statistics, found.weights)
    states, actions = weights.shape
    worths = pair_worths(statistics, weights, found.gains)
    # Of weights, differences, squares of these with noise and less it, and squared weights.
    sums = np.zeros((5, actions + 1))
    for s in range(states):
        here = np.sum(weights[s])
        worth_here = np.sum(weights[s] * worths[s])
        error_here = np.sum(errors[s])
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
    everywhere = max(0.0, spread_of_worths(weights, worths, weights, worths))
    if sums[0, actions] > 0.0:
        everywhere = max(0.0, sums[3, actions]) / sums[0, actions]
    alone = np.full(actions, sqrt(everywhere))
    common = alone.copy()
    evident = np.zeros(actions)
    for a in range(actions):
        if sums[0, a] > 0.0:
            mean_square = max(0.0, sums[3, a]) / sums[0, a]
            mean = sums[1, a] / sums[0, a]
            share = sums[4, a] / sums[0, a] ** 2  # 1 over the number of states, were all alike
            alone[a] = sqrt(mean_square)
            common[a] = sqrt(min(mean_square, mean * mean + share * mean_square))
            if share < 1.0:
                spread = max(0.0, sums[2, a] / sums[0, a] - mean * mean)
                evident[a] = sqrt(max(0.0, mean * mean - spread * share / (1.0 - share)))
    return ActionErrors(alone, common, evident)


@compiled
def spread_of_worths(
    weights: FloatArray, worths: FloatArray, other_weights: FloatArray, other_worths: FloatArray
) -> float:
    """The covariance of what follows visits of two policies, over pairs by both their weights."""
    shares = np.sqrt(weights * other_weights)
    mass = np.sum(shares)
    if mass == 0.0:
        return 0.0
    mean = np.sum(shares * worths) / mass
    other_mean = np.sum(shares * other_worths) / mass
    return float(np.sum(shares * (worths - mean) * (other_worths - other_mean)) / mass)


@compiled
def error_of_gaps(
    one: FilledValues, one_errors: ActionErrors, other: FilledValues, other_errors: ActionErrors
) -> float:
    """What filling adds to the covariance of two values.

    What an action does differently everywhere adds up over states. All else is independent.
    """
    states, actions = one.untried.shape
    total = one.adrift_error * other.adrift_error
    for s in range(states):
        both = one.unknown[s] * other.unknown[s]
        total += both * one.unknown_error * other.unknown_error
        for a in range(actions):
            both = one.untried[s, a] * other.untried[s, a]
            total += both * one_errors.alone[a] * other_errors.alone[a]
    return total + _add_up(one, one_errors.common, other, other_errors.common)


@compiled
def evident_error(found: FilledValues, errors: ActionErrors) -> float:
    """What filling is seen to add to the squared error of a value."""
    return _add_up(found, errors.evident, found, errors.evident)


@compiled
def _add_up(
    one: FilledValues, one_errors: FloatArray, other: FilledValues, other_errors: FloatArray
) -> float:
    """Products of errors [A] that are the same in all states."""
    total = 0.0
    for a in range(one.untried.shape[1]):
        here, there = np.sum(one.untried[:, a]), np.sum(other.untried[:, a])
        total += here * there * one_errors[a] * other_errors[a]
    return float(total)


@compiled
def known_values(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    layers: Layers,
    discount: float,
) -> FilledValues:
    """The same where transitions are known, so that rewards alone have gaps."""
    states, actions = policy.shape
    visits = statistics.visits
    tried = tried_policy(policy, visits)
    usual_reward, _ = _usual_visit(statistics)
    rewards = statistics.reward_mean.copy()
    for s in range(states):
        here = usual_reward
        if tried[s].sum() > 0.0:
            here = np.sum(tried[s] * statistics.reward_mean[s])
        for a in range(actions):
            if visits[s, a] == 0:
                rewards[s, a] = here
    one = policy.reshape((1, states, actions))
    values = backward_values(statistics.outcomes, rewards, one, layers, discount)
    weights, gains = influence(statistics.outcomes, initial, one, values, layers, discount)
    untried = np.zeros(policy.shape)
    unknown = np.zeros(states)
    for s in range(states):
        known = tried[s].sum() > 0.0
        for a in range(actions):
            if visits[s, a] == 0:
                if known:
                    untried[s, a] = weights[s, a]
                else:
                    unknown[s] += weights[s, a]
    spread = np.sum(weights * (rewards - usual_reward) ** 2) / np.sum(weights)
    return FilledValues(values, weights, gains, untried, unknown, sqrt(spread), 0.0)
