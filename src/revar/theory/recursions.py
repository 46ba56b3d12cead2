"""The recursions that everything else is made of, compiled, on the `Outcomes` layout.

They take a model's true probabilities and an estimate's frequencies alike, so that exact values
and certainty-equivalence estimates come from the same code. Value arrays have one more column
than there are states: a zero for the outcome "the episode ends".
"""

from math import sqrt

import numpy as np

from revar.compilation import compiled, compiled_in_place, inlined
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes


@compiled
def backward_values(
    outcomes: Outcomes,
    reward_mean: FloatArray,
    behavior: FloatArray,
    layers: Layers,
    discount: float,
) -> FloatArray:
    """v_t(s) = sum_a b_t(a|s) (mu(s,a) + gamma sum_s' P(s'|s,a) v_{t+1}(s')), as [L+1, S+1].

    The behavior [1 or L, S, A] is a policy, or has a table for each step.
    """
    start, layer_states = layers
    row_start, successors, probability = outcomes
    tables, states, actions = behavior.shape
    horizon = start.size - 1
    values = np.zeros((horizon + 1, states + 1))
    for t in range(horizon - 1, -1, -1):
        policy = behavior[t if tables > 1 else 0]
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            total = 0.0
            for a in range(actions):
                if policy[s, a] == 0.0:
                    continue
                p = s * actions + a
                ahead = 0.0
                for o in range(row_start[p], row_start[p + 1]):
                    ahead += probability[o] * values[t + 1, successors[o]]
                total += policy[s, a] * (reward_mean[s, a] + discount * ahead)
            values[t, s] = total
    return values


@compiled
def backward_variances(
    outcomes: Outcomes,
    outcome_reward_mean: FloatArray,
    outcome_reward_std: FloatArray,
    policy: FloatArray,
    values: FloatArray,
    discount: float,
) -> FloatArray:
    """Variance of the return from (t, s), by the law of total variance over (a, s'), [L+1, S+1]."""
    row_start, successors, probability = outcomes
    states, actions = policy.shape
    horizon = values.shape[0] - 1
    variances = np.zeros((horizon + 1, states + 1))
    for t in range(horizon - 1, -1, -1):
        for s in range(states):
            total = 0.0
            for a in range(actions):
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    successor = successors[o]
                    shift = outcome_reward_mean[o] + discount * values[t + 1, successor]
                    total += (policy[s, a] * probability[o]) * (
                        outcome_reward_std[o] ** 2
                        + (shift - values[t, s]) ** 2
                        + discount**2 * variances[t + 1, successor]
                    )
            variances[t, s] = total
    return variances


@compiled
def forward_occupancy(
    outcomes: Outcomes, initial: FloatArray, behavior: FloatArray, horizon: int
) -> FloatArray:
    """x_t(s,a), the probability of taking a in s at step t under behavior [1 or L, S, A]."""
    row_start, successors, probability = outcomes
    states, actions = behavior.shape[1:]
    occupancy = np.zeros((horizon, states, actions))
    present = np.zeros(states + 1)
    for s in range(states):
        present[s] = initial[s]
    for t in range(horizon):
        ahead = np.zeros(states + 1)
        table = behavior[t if behavior.shape[0] > 1 else 0]
        for s in range(states):
            if present[s] == 0.0:
                continue
            for a in range(actions):
                taken = present[s] * table[s, a]
                if taken == 0.0:
                    continue
                occupancy[t, s, a] = taken
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    ahead[successors[o]] += taken * probability[o]
        present = ahead
    return occupancy


@compiled
def unvisited_mass(
    outcomes: Outcomes, initial: FloatArray, policy: FloatArray, visits: IntArray, layers: Layers
) -> float:
    """The probability that an episode of `policy` takes a pair that was never visited."""
    start, layer_states = layers
    row_start, successors, probability = outcomes
    states, actions = policy.shape
    horizon = start.size - 1
    present = np.zeros(states + 1)
    for s in range(states):
        present[s] = initial[s]
    ahead = np.zeros(states + 1)
    lost = 0.0
    for t in range(horizon):
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            mass = present[s]
            present[s] = 0.0
            if mass == 0.0:
                continue
            for a in range(actions):
                taken = mass * policy[s, a]
                if taken == 0.0:
                    continue
                if visits[s, a] == 0:
                    lost += taken
                    continue
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    ahead[successors[o]] += taken * probability[o]
        ahead[states] = 0.0
        present, ahead = ahead, present
    return lost


@inlined
def proportion_score(
    outcomes: Outcomes,
    deviation: FloatArray,
    policy: FloatArray,
    normalizers: FloatArray,
    discount: float,
    state: int,
    action: int,
) -> float:
    """Theorem 1 at one pair: sqrt(M(s,a)) = pi sqrt(sigma^2 + gamma^2 sum_s' P(s'|s,a) B(s')^2).

    sigma stands in `deviation`, and B, a zero appended for the end of the episode, in
    `normalizers`.
    """
    row_start, successors, probability = outcomes
    share = policy[state, action]
    if share == 0.0:
        return 0.0
    p = state * policy.shape[1] + action
    ahead = 0.0
    for o in range(row_start[p], row_start[p + 1]):
        ahead += probability[o] * normalizers[successors[o]] ** 2
    return float(share * sqrt(deviation[state, action] ** 2 + discount * discount * ahead))


@compiled_in_place
def proportion_sweeps(
    outcomes: Outcomes,
    deviation: FloatArray,
    policy: FloatArray,
    discount: float,
    horizon: int,
    scores: FloatArray,
    normalizers: FloatArray,
    scratch: FloatArray,
) -> None:
    """Algorithm 2: L sweeps of Theorem 1's recursion from B = 0; fills scores [S, A] and B [S+1].

    `scratch` is room for another [S+1]. Sweeps stop early once nothing changes, as on a tree after
    as many of them as it has levels.
    """
    states, actions = policy.shape
    for s in range(states + 1):
        normalizers[s] = 0.0
    for _ in range(horizon):
        changed = False
        for s in range(states):
            total = 0.0
            for a in range(actions):
                total += proportion_score(outcomes, deviation, policy, normalizers, discount, s, a)
            scratch[s] = total
            changed |= total != normalizers[s]
        if not changed:
            break
        for s in range(states):
            normalizers[s] = scratch[s]
    for s in range(states):
        for a in range(actions):
            scores[s, a] = proportion_score(
                outcomes, deviation, policy, normalizers, discount, s, a
            )
