"""The steps of `flow_steps` for collection that costs something and has limits, compiled.

Shares have `caps` [S, A]. An episode costs e(x) = f + c.X, so that a budget B pays for m = B / e(x)
of them, and the objective is F(x) = sum C / (N + m X): error times cost if N = 0 and B = 1. And
visits may have a worth of their own, `worth` + discount^t `later`, both [S, A] and of any sign:
multipliers of limits on sums.
"""

from math import inf, sqrt

import numpy as np

from revar.compilation import compiled, compiled_in_place
from revar.model.arrays import FloatArray, Layers, Outcomes
from revar.theory.caps import expected_value, keep_to_caps, keep_within
from revar.theory.flow_steps import copy_table, extrapolate, flow_of, objective


@compiled_in_place
def _find_worths(
    outcomes: Outcomes,
    caps: FloatArray,
    prices: FloatArray,
    worth: FloatArray,
    later: FloatArray,
    now: float,
    behavior: FloatArray,
    spare: FloatArray,
    room: FloatArray,
    step: int,
    state: int,
) -> float:
    """Fill room with Q and the shares of a state, spare with its U; the sum of shares times Q."""
    actions = caps.shape[1]
    here, ahead = step % 2, (step + 1) % 2
    worst = inf
    for a in range(actions):
        if caps[state, a] > 0.0:
            pair = state * actions + a
            own = worth[state, a] + now * later[state, a]
            own += expected_value(outcomes, pair, spare, 2 + ahead)
            worst = min(worst, own)
            room[0, a] = own
            room[1, a] = prices[state, a] + expected_value(outcomes, pair, spare, ahead)
    spare[2 + here, state] = worst
    total = 0.0
    for a in range(actions):
        room[0, a] = max(0.0, room[0, a] - worst) + room[1, a] if caps[state, a] > 0.0 else 0.0
        room[1, a] = behavior[step, state, a]
        total += room[1, a] * room[0, a]
    return total


@compiled_in_place
def limited_sweep(
    outcomes: Outcomes,
    layers: Layers,
    caps: FloatArray,
    prices: FloatArray,
    worth: FloatArray,
    later: FloatArray,
    discount: float,
    behavior: FloatArray,
    spare: FloatArray,
    room: FloatArray,
) -> None:
    """`sweep` within caps; never increases F minus what visits are worth by themselves.

    The latter, w, counts from the worst that can follow, so that it is never negative: Q(s,a) =
    p + sum P H + (w + sum P U - U(s)) with U(s) = min_a (w + sum P U). For w >= 0 its majorizer,
    -w x <= w (x0^2 / x - 2 x0), has the form of the others. H(s) = sum_a b0^2 Q / b; without caps
    that is (sum b0 sqrt(Q))^2. `spare` is room for [4, S+1], `room` for [2, A].
    """
    start, layer_states = layers
    horizon, states, actions = behavior.shape
    for row in range(4):
        for s in range(states + 1):
            spare[row, s] = 0.0
    for t in range(horizon - 1, -1, -1):
        here, ahead = t % 2, (t + 1) % 2
        now = discount**t
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            total = _find_worths(
                *(outcomes, caps, prices, worth, later, now, behavior, spare, room, t, s)
            )
            spare[here, s] = 0.0
            if total > 0.0:
                for a in range(actions):
                    behavior[t, s, a] *= sqrt(room[0, a])
                keep_to_caps(behavior, caps, t, s)
                for a in range(actions):
                    if behavior[t, s, a] > 0.0:
                        spare[here, s] += room[1, a] ** 2 * room[0, a] / behavior[t, s, a]
        if t + 1 < horizon:
            for i in range(start[t + 1], start[t + 2]):
                spare[ahead, layer_states[i]] = spare[2 + ahead, layer_states[i]] = 0.0


@compiled_in_place
def limited_objective(
    costs: FloatArray,
    prior: FloatArray,
    budget: float,
    episode_cost: float,
    visit_cost: FloatArray,
    visits: FloatArray,
    prices: FloatArray,
) -> tuple[float, float]:
    """F at those visits per episode, and what one unit of cost is worth; fills the prices.

    -dF = sum (p - v c) dX with p = m C / (N + m X)^2, v = p.X / e(x): longer episodes are fewer.
    """
    spent = episode_cost
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            spent += visit_cost[s, a] * visits[s, a]
    value = objective(costs, prior, budget / spent, visits, prices)
    earned = 0.0
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            earned += prices[s, a] * visits[s, a]
    return value, earned / spent


@compiled_in_place
def own_worth(
    layers: Layers, worth: FloatArray, later: FloatArray, discount: float, flow: FloatArray
) -> float:
    """What the visits of a flow are worth by themselves, sum_t (worth + discount^t later).x_t."""
    start, layer_states = layers
    total = 0.0
    for t in range(flow.shape[0]):
        now = discount**t
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            for a in range(flow.shape[2]):
                total += (worth[s, a] + now * later[s, a]) * flow[t, s, a]
    return total


@compiled
def limited_sweeps(
    outcomes: Outcomes,
    initial: FloatArray,
    layers: Layers,
    caps: FloatArray,
    costs: FloatArray,
    prior: FloatArray,
    budget: float,
    episode_cost: float,
    visit_cost: FloatArray,
    worth: FloatArray,
    later: FloatArray,
    discount: float,
    behavior: FloatArray,
    count: int,
    tolerance: float = 0.0,
) -> None:
    """`accelerated_sweeps` within caps, for F minus what visits are worth by themselves.

    The behavior at the start must keep to the caps. It ends at the best that was met.
    """
    states, actions = costs.shape
    flow = np.zeros(behavior.shape)
    visits = np.zeros((states, actions))
    prices = np.zeros((states, actions))
    spare = np.zeros((4, states + 1))
    room = np.zeros((2, actions))
    point = behavior.copy()
    before = behavior.copy()
    best = behavior.copy()
    reached = inf
    since = 0
    for turn in range(count + 1):
        flow_of(outcomes, initial, layers, point, flow, visits, spare)
        value, unit = limited_objective(
            costs, prior, budget, episode_cost, visit_cost, visits, prices
        )
        value -= own_worth(layers, worth, later, discount, flow)
        gained = reached - value
        if gained >= 0.0:
            copy_table(point, best)
            reached = value
        if turn == count or (since > 0 and 0.0 <= gained < tolerance * abs(value)):
            break
        if gained < 0.0:
            if since == 1:  # a step without momentum: nothing is left to gain
                break
            since = 0
            copy_table(best, point)
            copy_table(best, behavior)
            continue
        copy_table(behavior, before)
        copy_table(point, behavior)
        limited_sweep(
            *(outcomes, layers, caps, prices, worth - unit * visit_cost, later, discount),
            *(behavior, spare, room),
        )
        extrapolate(layers, behavior, before, since / (since + 3.0), point)
        keep_within(point, layers, caps)
        since += 1
    copy_table(best, behavior)
