"""How values depend on each pair's reward and outcomes, and what a visit is worth to them."""

import numpy as np

from revar.compilation import compiled, inlined, like_caller
from revar.model.arrays import FloatArray, Layers, Outcomes, RunStatistics


@compiled
def influence(
    outcomes: Outcomes,
    initial: FloatArray,
    behavior: FloatArray,
    values: FloatArray,
    layers: Layers,
    discount: float,
) -> tuple[FloatArray, FloatArray]:
    """How the value of a behavior [1 or L, S, A] depends on each pair's reward and outcomes.

    w_t(s,a) = gamma^t d_t(s) b_t(a|s) gives W(s,a) = sum_t w_t(s,a), the derivative with respect
    to mu(s,a), as [S, A], and g(s,a,s') = gamma sum_t w_t(s,a) v_{t+1}(s'), the derivative with
    respect to P(s'|s,a), as [slot].
    """
    start, layer_states = layers
    row_start, successors, probability = outcomes
    tables, states, actions = behavior.shape
    horizon = start.size - 1
    weight = np.zeros((states, actions))
    gain = np.zeros(successors.size)
    present = np.zeros(states + 1)  # gamma^t d_t(s)
    for s in range(states):
        present[s] = initial[s]
    ahead = np.zeros(states + 1)
    for t in range(horizon):
        policy = behavior[t if tables > 1 else 0]
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            mass = present[s]
            present[s] = 0.0
            if mass == 0.0:
                continue
            for a in range(actions):
                w = mass * policy[s, a]
                if w == 0.0:
                    continue
                weight[s, a] += w
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    successor = successors[o]
                    gain[o] += discount * w * values[t + 1, successor]
                    ahead[successor] += discount * w * probability[o]
        ahead[states] = 0.0
        present, ahead = ahead, present
    return weight, gain


@compiled
def pair_costs(
    outcomes: Outcomes,
    weight: FloatArray,
    gain: FloatArray,
    reward_variance: FloatArray,
    outcome_reward_mean: FloatArray,
    known_transitions: bool,
) -> FloatArray:
    """C(s,a) = Var[W R + g(S') | s,a], or W^2 Var[R | s,a] where the transitions are known."""
    costs = np.zeros(weight.shape)
    for s in range(weight.shape[0]):
        for a in range(weight.shape[1]):
            cost = pair_covariance(
                outcomes,
                weight,
                gain,
                weight,
                gain,
                reward_variance,
                outcome_reward_mean,
                known_transitions,
                s,
                a,
            )
            costs[s, a] = max(0.0, cost)
    return costs


@inlined
def pair_covariance(
    outcomes: Outcomes,
    weight: FloatArray,
    gain: FloatArray,
    other_weight: FloatArray,
    other_gain: FloatArray,
    reward_variance: FloatArray,
    outcome_reward_mean: FloatArray,
    known_transitions: bool,
    state: int,
    action: int,
) -> float:
    """Cov[W R + g(S'), W' R + g'(S') | s,a]: what a visit is worth to two values at once."""
    row_start, _, probability = outcomes
    w, other_w = weight[state, action], other_weight[state, action]
    covariance = w * other_w * reward_variance[state, action]
    if known_transitions:
        return float(covariance)
    pair = state * weight.shape[1] + action
    first, last = row_start[pair], row_start[pair + 1]
    mean_gain = 0.0
    mean_other = 0.0
    mean_reward = 0.0
    for o in range(first, last):
        mean_gain += probability[o] * gain[o]
        mean_other += probability[o] * other_gain[o]
        mean_reward += probability[o] * outcome_reward_mean[o]
    spread = 0.0
    with_reward = 0.0
    other_with_reward = 0.0
    for o in range(first, last):
        centred = gain[o] - mean_gain
        other = other_gain[o] - mean_other
        # All centred: a large mean would multiply what rounding leaves of the others.
        reward = outcome_reward_mean[o] - mean_reward
        spread += probability[o] * centred * other
        with_reward += probability[o] * centred * reward
        other_with_reward += probability[o] * other * reward
    return float(covariance + (other_w * with_reward + w * other_with_reward) + spread)


@like_caller
def with_data(statistics: RunStatistics, weights: FloatArray) -> FloatArray:
    """Weights [S, A] of pairs with data; others weigh something where transitions are known."""
    return np.where(statistics.visits > 0, weights, 0.0)


@compiled
def pair_worths(
    rewards: FloatArray, outcomes: Outcomes, weights: FloatArray, gains: FloatArray
) -> FloatArray:
    """What follows a visit of each pair, reward and all, in units of its weight, [S, A]."""
    row_start, _, probability = outcomes
    states, actions = weights.shape
    worths = np.zeros((states, actions))
    for s in range(states):
        for a in range(actions):
            w = weights[s, a]
            if w != 0.0:
                p = s * actions + a
                worths[s, a] = rewards[s, a]
                for o in range(row_start[p], row_start[p + 1]):
                    worths[s, a] += probability[o] * gains[o] / w
    return worths
