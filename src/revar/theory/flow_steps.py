"""The steps of the optimal-flow solver, compiled.

All of them work on the objective F(x) = sum_{s,a} C / (N + m X), X(s,a) = sum_t x_t(s,a), where x
is the flow of a behavior: N visits are there already (zero for the limit), m episodes are to come.
Its negative gradient is a price for every visit, p = m C / (N + m X)^2.
"""

from math import sqrt

import numpy as np

from revar.compilation import compiled, compiled_in_place
from revar.model.arrays import FloatArray, Layers, Outcomes

# Below this an action's share stops shrinking: a share of zero could never grow again.
LEAST_SHARE = 1e-12


@compiled_in_place
def flow_of(
    outcomes: Outcomes,
    initial: FloatArray,
    layers: Layers,
    behavior: FloatArray,
    flow: FloatArray,
    visits: FloatArray,
    spare: FloatArray,
) -> None:
    """x_t(s,a) under the behavior, and X(s,a); `spare` is room for [2, S+1]."""
    row_start, successors, probability = outcomes
    start, layer_states = layers
    horizon, states, actions = behavior.shape
    for s in range(states):
        spare[0, s] = initial[s]
        spare[1, s] = 0.0
        for a in range(actions):
            visits[s, a] = 0.0
    for t in range(horizon):
        here, ahead = t % 2, (t + 1) % 2
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            mass = spare[here, s]
            spare[here, s] = 0.0
            for a in range(actions):
                taken = mass * behavior[t, s, a]
                flow[t, s, a] = taken
                if taken == 0.0:
                    continue
                visits[s, a] += taken
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    spare[ahead, successors[o]] += taken * probability[o]
        spare[ahead, states] = 0.0


@compiled_in_place
def objective(
    costs: FloatArray, prior: FloatArray, episodes: float, visits: FloatArray, prices: FloatArray
) -> float:
    """F at those visits per episode; fills the price of every pair."""
    total = 0.0
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            prices[s, a] = 0.0
            if costs[s, a] > 0.0:
                count = prior[s, a] + episodes * visits[s, a]
                share = costs[s, a] / count
                total += share
                prices[s, a] = episodes * share / count
    return total


@compiled_in_place
def sweep(
    outcomes: Outcomes,
    layers: Layers,
    prices: FloatArray,
    behavior: FloatArray,
    spare: FloatArray,
) -> None:
    """One majorize-minimize step, in place; never increases F.

    From the last step back: Q(s,a) = p(s,a) + sum_s' P(s'|s,a) H(s'), H(s) = (sum_a b sqrt(Q))^2,
    and b becomes b sqrt(Q) / sum_a b sqrt(Q), or stays where nothing below is worth a visit. A
    share of zero stays zero. On a tree one sweep is Theorem 1. `spare` is room for [2, S+1].
    """
    row_start, successors, probability = outcomes
    start, layer_states = layers
    horizon, states, actions = behavior.shape
    for s in range(states + 1):
        spare[0, s] = spare[1, s] = 0.0
    for t in range(horizon - 1, -1, -1):
        here, ahead = t % 2, (t + 1) % 2
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            total = 0.0
            for a in range(actions):
                p = s * actions + a
                worth = prices[s, a]
                for o in range(row_start[p], row_start[p + 1]):
                    worth += probability[o] * spare[ahead, successors[o]]
                if worth > 0.0:
                    behavior[t, s, a] *= sqrt(worth)
                    total += behavior[t, s, a]
                else:
                    # Marked by the sign, and kept for the case that nothing is worth a visit.
                    behavior[t, s, a] = -behavior[t, s, a]
            spare[here, s] = total * total
            for a in range(actions):
                share = behavior[t, s, a]
                if total > 0.0:
                    behavior[t, s, a] = share / total if share > 0.0 else 0.0
                else:
                    behavior[t, s, a] = abs(share)
        if t + 1 < horizon:
            for i in range(start[t + 1], start[t + 2]):
                spare[ahead, layer_states[i]] = 0.0


@compiled_in_place
def extrapolate(
    layers: Layers,
    behavior: FloatArray,
    before: FloatArray,
    momentum: float,
    result: FloatArray,
) -> None:
    """Go on in the direction from `before` to `behavior`, keeping positive shares positive."""
    start, layer_states = layers
    horizon, _, actions = behavior.shape
    for t in range(horizon):
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            total = 0.0
            for a in range(actions):
                share = behavior[t, s, a]
                step = momentum * (share - before[t, s, a])
                # Downwards by a factor, which to first order is the same step.
                share = share + step if step >= 0.0 else share * share / (share - step)
                if behavior[t, s, a] > 0.0:
                    share = max(share, LEAST_SHARE)
                result[t, s, a] = share
                total += share
            for a in range(actions):
                result[t, s, a] /= total


@compiled_in_place
def copy_table(source: FloatArray, target: FloatArray) -> None:
    """target[:] = source, which would take numba seconds to compile."""
    horizon, states, actions = source.shape
    for t in range(horizon):
        for s in range(states):
            for a in range(actions):
                target[t, s, a] = source[t, s, a]


@compiled_in_place
def best_reply(
    outcomes: Outcomes,
    initial: FloatArray,
    layers: Layers,
    prices: FloatArray,
    reply: FloatArray,
    spare: FloatArray,
) -> float:
    """The behavior that earns most at those prices, as 0/1 shares, and what it earns."""
    row_start, successors, probability = outcomes
    start, layer_states = layers
    horizon, states, actions = reply.shape
    for s in range(states + 1):
        spare[0, s] = spare[1, s] = 0.0
    for t in range(horizon - 1, -1, -1):
        here, ahead = t % 2, (t + 1) % 2
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            best = -1.0
            choice = 0
            for a in range(actions):
                p = s * actions + a
                worth = prices[s, a]
                for o in range(row_start[p], row_start[p + 1]):
                    worth += probability[o] * spare[ahead, successors[o]]
                reply[t, s, a] = 0.0
                if worth > best:
                    best = worth
                    choice = a
            reply[t, s, choice] = 1.0
            spare[here, s] = best
        if t + 1 < horizon:
            for i in range(start[t + 1], start[t + 2]):
                spare[ahead, layer_states[i]] = 0.0
    earned = 0.0
    for i in range(start[0], start[1]):
        earned += initial[layer_states[i]] * spare[0, layer_states[i]]
    return earned


@compiled_in_place
def best_mixture(
    costs: FloatArray, prior: FloatArray, episodes: float, visits: FloatArray, other: FloatArray
) -> float:
    """The share of `other` that minimises F between two visit tables, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        slope = 0.0
        for s in range(costs.shape[0]):
            for a in range(costs.shape[1]):
                if costs[s, a] > 0.0:
                    change = other[s, a] - visits[s, a]
                    count = prior[s, a] + episodes * (visits[s, a] + middle * change)
                    slope -= costs[s, a] / count * (episodes * change / count)
        if slope < 0.0:
            low = middle
        else:
            high = middle
    return low


@compiled_in_place
def mix(
    layers: Layers,
    behavior: FloatArray,
    flow: FloatArray,
    visits: FloatArray,
    other_flow: FloatArray,
    other_visits: FloatArray,
    share: float,
) -> None:
    """Move flow, visits and behavior to the mixture of two flows."""
    start, layer_states = layers
    horizon, states, actions = behavior.shape
    for s in range(states):
        for a in range(actions):
            visits[s, a] += share * (other_visits[s, a] - visits[s, a])
    for t in range(horizon):
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            total = 0.0
            for a in range(actions):
                flow[t, s, a] += share * (other_flow[t, s, a] - flow[t, s, a])
                total += flow[t, s, a]
            if total > 0.0:
                for a in range(actions):
                    behavior[t, s, a] = flow[t, s, a] / total


@compiled
def accelerated_sweeps(
    outcomes: Outcomes,
    initial: FloatArray,
    layers: Layers,
    costs: FloatArray,
    prior: FloatArray,
    episodes: float,
    behavior: FloatArray,
    count: int,
    tolerance: float = 0.0,
) -> None:
    """At most `count` sweeps with Nesterov's momentum, which starts anew when F would increase.

    Ends before that when a sweep takes less than the share `tolerance` from F.
    """
    states, actions = costs.shape
    flow = np.zeros(behavior.shape)
    visits = np.zeros((states, actions))
    prices = np.zeros((states, actions))
    spare = np.zeros((2, states + 1))
    point = behavior.copy()
    before = behavior.copy()
    reached = np.inf
    since = 0
    for _ in range(count):
        flow_of(outcomes, initial, layers, point, flow, visits, spare)
        value = objective(costs, prior, episodes, visits, prices)
        if value > reached:
            since = 0
            copy_table(behavior, point)
            flow_of(outcomes, initial, layers, point, flow, visits, spare)
            value = objective(costs, prior, episodes, visits, prices)
        elif since > 0 and reached - value < tolerance * value:
            copy_table(point, behavior)
            return
        reached = value
        copy_table(behavior, before)
        copy_table(point, behavior)
        sweep(outcomes, layers, prices, behavior, spare)
        extrapolate(layers, behavior, before, since / (since + 3.0), point)
        since += 1
