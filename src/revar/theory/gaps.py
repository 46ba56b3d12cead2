"""What stands in the place of data that is missing, so that no value depends on where zero is.

A pair without data takes what the target policy's other actions showed in its state. A state
without data takes what is typical: what the policy is worth at that step in states with data. Where
no such state is occupied, every further step is an average visit.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, compiled_in_place, like_caller
from revar.model.arrays import BoolArray, FloatArray, IntArray, Layers, Outcomes, RunStatistics
from revar.model.tables import total
from revar.theory.influence import influence
from revar.theory.recursions import backward_values


class FilledValues(NamedTuple):
    """A policy's values with gaps filled, how they depend on each pair, and what rests on gaps."""

    table: FloatArray  # [L+1, S+1] v_t(s)
    weights: FloatArray  # [S, A] W, by pairs with data
    gains: FloatArray  # [slot] g; 0 where transitions are known
    tried: FloatArray  # [S, A] how actions with data stand for all of their state
    untried: FloatArray  # [S, A] weight of pairs without data, in states with data
    missed: FloatArray  # [A] what filling takes from the weight of each action, over all states
    unknown: FloatArray  # [S] weight of states without data
    unknown_error: float  # standard deviation of what filling a state may miss
    adrift_error: float  # error of steps at which no state with data is occupied


@compiled
def tried_policy(policy: FloatArray, visits: IntArray) -> FloatArray:
    """The policy among actions with data, [S, A]; rows of states without any are zero."""
    shares = np.zeros(policy.shape)
    for s in range(policy.shape[0]):
        for a in range(policy.shape[1]):
            if visits[s, a] > 0:
                shares[s, a] = policy[s, a]
        _share_out_missing(policy, visits, s, shares)
    return shares


@compiled
def balanced_policy(policy: FloatArray, visits: IntArray) -> FloatArray:
    """The same, where rare actions with data stand for rare ones without any, [S, A].

    A share is divided by the probability that n visits of the state show the action at all,
    1 - (1 - pi)^n (Horvitz and Thompson 1952, "A generalization of sampling without replacement
    from a finite universe"). Where shares are only scaled up, what the policy prefers stands for
    what it avoids; here, a single visit may weigh much.
    """
    shares = tried_policy(policy, visits)
    for s in range(policy.shape[0]):
        entered = _visits_beside_gaps(policy, visits, s)
        if entered > 0:
            for a in range(policy.shape[1]):
                if shares[s, a] > 0.0:
                    shares[s, a] = policy[s, a] / (1.0 - (1.0 - policy[s, a]) ** entered)
            _share_out_missing(policy, visits, s, shares)
    return shares


@compiled
def taken_policy(policy: FloatArray, visits: IntArray) -> FloatArray:
    """The same, where actions of a state with gaps count as often as they were taken, [S, A].

    No visit weighs more than another then. Where actions were drawn from the policy that is as true
    to it as the other ways.
    """
    shares = tried_policy(policy, visits)
    for s in range(policy.shape[0]):
        entered = _visits_beside_gaps(policy, visits, s)
        if entered > 0:
            for a in range(policy.shape[1]):
                shares[s, a] = visits[s, a] / entered if policy[s, a] > 0.0 else 0.0
    return shares


@compiled_in_place
def _visits_beside_gaps(policy: FloatArray, visits: IntArray, state: int) -> int:
    """The visits of a state by actions of the policy, if one of these has none; else 0."""
    entered = 0
    missing = False
    for a in range(policy.shape[1]):
        if policy[state, a] > 0.0:
            entered += visits[state, a]
            missing = missing or visits[state, a] == 0
    return entered if missing else 0


@compiled_in_place
def _share_out_missing(
    policy: FloatArray, visits: IntArray, state: int, shares: FloatArray
) -> None:
    """Scale the shares of a state so that they sum to 1, if an action of the policy has none."""
    whole = 0.0
    missing = False
    for a in range(policy.shape[1]):
        whole += shares[state, a]
        missing = missing or (policy[state, a] > 0.0 and visits[state, a] == 0)
    if missing and whole > 0.0:
        for a in range(policy.shape[1]):
            shares[state, a] /= whole


@like_caller
def filled_values(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    tried: FloatArray,
    layers: Layers,
    discount: float,
) -> FilledValues:
    """The values of `policy` [S, A] in the estimated model, with its gaps filled.

    `tried` [S, A] says how actions with data stand for all: `tried_policy`, `balanced_policy` or
    `taken_policy`.
    """
    outcomes = statistics.outcomes
    known = tried.sum(axis=1) > 0.0  # [S]
    usual_reward, going_on = _usual_visit(statistics)
    present, adrift, unknown = _occupied(
        *(outcomes, initial, tried, known, layers, discount, going_on)
    )
    values = np.zeros((layers.start.size, policy.shape[0] + 1))
    weights = np.zeros(policy.shape)
    gains = np.zeros(outcomes.successor.size)
    unknown_error, adrift_error = _fill_backward(
        *(outcomes, statistics.reward_mean, tried, known, layers, discount),
        *(present, adrift, usual_reward, going_on),
        *(values, weights, gains),
    )
    untried = _untried(policy, statistics.visits, weights)
    missed = _missed(weighed_less(policy, weights, untried))
    return FilledValues(
        values, weights, gains, tried, untried, missed, unknown, unknown_error, adrift_error
    )


@compiled_in_place
def _fill_backward(
    outcomes: Outcomes,
    reward_mean: FloatArray,
    tried: FloatArray,
    known: BoolArray,
    layers: Layers,
    discount: float,
    present: FloatArray,
    adrift: FloatArray,
    usual_reward: float,
    going_on: float,
    values: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
) -> tuple[float, float]:
    """Fill values, and how they depend on each pair, from the last step back; the two errors."""
    start, layer_states = layers
    row_start, successors, probability = outcomes
    actions = tried.shape[1]
    typical = 0.0
    spread = 0.0
    mass = 0.0
    adrift_error = 0.0
    for t in range(start.size - 2, -1, -1):
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
    return sqrt(spread / mass) if mass > 0.0 else 0.0, adrift_error


@compiled
def _untried(policy: FloatArray, visits: IntArray, weights: FloatArray) -> FloatArray:
    """What pairs without data would weigh, in states with data, [S, A]."""
    untried = np.zeros(policy.shape)
    for s in range(policy.shape[0]):
        entered = 0.0
        for a in range(policy.shape[1]):
            entered += weights[s, a]
        for a in range(policy.shape[1]):
            if visits[s, a] == 0:
                untried[s, a] = entered * policy[s, a]
    return untried


@compiled
def weighed_less(policy: FloatArray, weights: FloatArray, untried: FloatArray) -> FloatArray:
    """What pairs weigh less than the policy has it, in states with gaps, [S, A]."""
    less = np.zeros(policy.shape)
    for s in range(policy.shape[0]):
        entered = 0.0
        gap = 0.0
        for a in range(policy.shape[1]):
            entered += weights[s, a]
            gap += untried[s, a]
        if gap > 0.0:
            for a in range(policy.shape[1]):
                less[s, a] = entered * policy[s, a] - weights[s, a]
    return less


@compiled
def _missed(less: FloatArray) -> FloatArray:
    """The same over all states, [A].

    An action without data in one state may stand for more than itself in another.
    """
    missed = np.zeros(less.shape[1])
    for s in range(less.shape[0]):
        for a in range(less.shape[1]):
            missed[a] += less[s, a]
    return missed


@like_caller
def thin_share_of(found: FilledValues, visits: IntArray) -> float:
    """The share of the policy's steps in pairs that were visited at most once.

    Where it is large, a table averages nothing.
    """
    without_data = total(found.untried) + total(found.unknown)
    return _thin_share(without_data, found.weights, visits)


@compiled_in_place
def _thin_share(without_data: float, weights: FloatArray, visits: IntArray) -> float:
    thin = without_data
    whole = 0.0
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            whole += weights[s, a]
            if visits[s, a] == 1:
                thin += weights[s, a]
    return min(1.0, thin / whole) if whole > 0.0 else 1.0


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
    known: BoolArray,
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
    for s in range(states):
        now[s] = initial[s]
    ahead = np.zeros(states + 1)
    carried = 0.0
    for t in range(horizon):
        found = 0.0
        lost = carried
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            if known[s]:
                found += now[s]
            else:
                lost += now[s]
                unknown[s] += now[s]
        carried = 0.0
        scale = 1.0
        if lost > 0.0 and found > 0.0:
            scale = (found + lost) / found
        elif lost > 0.0:
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


@like_caller
def known_values(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    layers: Layers,
    discount: float,
) -> FilledValues:
    """The same where transitions are known, so that rewards alone have gaps."""
    states, actions = policy.shape
    tried = tried_policy(policy, statistics.visits)
    known = tried.sum(axis=1) > 0.0  # [S]
    usual_reward, _ = _usual_visit(statistics)
    rewards = _filled_rewards(statistics, tried, known, usual_reward)
    one = policy.reshape((1, states, actions))
    values = backward_values(statistics.outcomes, rewards, one, layers, discount)
    weights, _ = influence(statistics.outcomes, initial, one, values, layers, discount)
    gains = np.zeros(statistics.outcomes.successor.size)
    untried, unknown = _without_data(weights, statistics.visits, known)
    filled = untried.sum(axis=1).reshape((states, 1))
    missed = (untried - filled * tried).sum(axis=0)
    apart = rewards - usual_reward
    spread = total(weights * (apart * apart)) / total(weights)
    return FilledValues(values, weights, gains, tried, untried, missed, unknown, sqrt(spread), 0.0)


@compiled
def _filled_rewards(
    statistics: RunStatistics, tried: FloatArray, known: BoolArray, usual_reward: float
) -> FloatArray:
    """Mean rewards [S, A], with those of pairs without data filled."""
    states, actions = tried.shape
    rewards = np.zeros((states, actions))
    for s in range(states):
        here = 0.0 if known[s] else usual_reward
        for a in range(actions):
            if known[s]:
                here += tried[s, a] * statistics.reward_mean[s, a]
        for a in range(actions):
            seen = statistics.visits[s, a] > 0
            rewards[s, a] = statistics.reward_mean[s, a] if seen else here
    return rewards


@compiled
def _without_data(
    weights: FloatArray, visits: IntArray, known: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The weights of pairs without data in states with data [S, A], and of other states [S]."""
    states, actions = weights.shape
    untried = np.zeros((states, actions))
    unknown = np.zeros(states)
    for s in range(states):
        for a in range(actions):
            if visits[s, a] == 0:
                if known[s]:
                    untried[s, a] = weights[s, a]
                else:
                    unknown[s] += weights[s, a]
    return untried, unknown
