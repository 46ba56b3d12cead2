"""The steps of `flow_steps` for collection that costs something and has limits, compiled.

Three things are added. `caps` [S, A] are the largest shares that actions may have, zero where they
are forbidden; in every state that can be entered they sum to at least 1. An episode costs
e(x) = f + c.X, so that a budget B pays for m = B / e(x) of them, and the objective is
F(x) = sum C / (N + m X): error times cost if N = 0 and B = 1. And visits may have a worth of their
own, `worth` + discount^t `later`, both [S, A] and of any sign: multipliers of limits on sums.
"""

from math import inf, sqrt

import numpy as np

from revar.compilation import compiled, compiled_in_place, inlined
from revar.model.arrays import FloatArray, Layers, Outcomes
from revar.theory.flow_steps import extrapolate, flow_of, objective


@compiled_in_place
def keep_to_caps(behavior: FloatArray, caps: FloatArray, step: int, state: int) -> None:
    """Turn weights >= 0 into shares min(cap, scale * weight) that sum to 1.

    Of all shares within the caps these minimise sum weight^2 / share. If all actions that have a
    weight are at their caps, the others take the rest in proportion to their caps.
    """
    actions = caps.shape[1]
    rest = 1.0
    for a in range(actions):
        if caps[state, a] <= 0.0:
            behavior[step, state, a] = 0.0
    while True:
        total = 0.0
        for a in range(actions):
            if behavior[step, state, a] > 0.0:
                total += behavior[step, state, a]
        if total <= 0.0:
            break
        scale = max(rest, 0.0) / total
        full = False
        for a in range(actions):
            weight = behavior[step, state, a]
            if weight > 0.0 and scale * weight >= caps[state, a]:
                behavior[step, state, a] = -caps[state, a]  # full, marked by the sign
                rest -= caps[state, a]
                full = True
        if not full:
            for a in range(actions):
                if behavior[step, state, a] > 0.0:
                    behavior[step, state, a] *= scale
            rest = 0.0
            break
    _share_out(behavior, caps, step, state, rest)


@compiled_in_place
def _share_out(behavior: FloatArray, caps: FloatArray, step: int, state: int, rest: float) -> None:
    """Take the marks off, and spread what is left in proportion to the room below the caps."""
    actions = caps.shape[1]
    total = 0.0
    for a in range(actions):
        behavior[step, state, a] = abs(behavior[step, state, a])
        total += caps[state, a] - behavior[step, state, a]
    if rest > 0.0 and total > 0.0:
        part = min(1.0, rest / total)
        for a in range(actions):
            behavior[step, state, a] += part * (caps[state, a] - behavior[step, state, a])


@inlined
def _expected(outcomes: Outcomes, pair: int, values: FloatArray, row: int) -> float:
    """The mean of values[row] over what can follow the pair."""
    total = 0.0
    for o in range(outcomes.row_start[pair], outcomes.row_start[pair + 1]):
        total += outcomes.probability[o] * values[row, outcomes.successor[o]]
    return total


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
            own += _expected(outcomes, pair, spare, 2 + ahead)
            worst = min(worst, own)
            room[0, a] = own
            room[1, a] = prices[state, a] + _expected(outcomes, pair, spare, ahead)
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
def limited_reply(
    outcomes: Outcomes,
    initial: FloatArray,
    layers: Layers,
    caps: FloatArray,
    worth: FloatArray,
    later: FloatArray,
    discount: float,
    reply: FloatArray,
    spare: FloatArray,
    room: FloatArray,
) -> float:
    """The behavior within caps whose visits are worth most, and what an episode of it is worth.

    In every state the most valuable actions are filled up to their caps. `spare` and `room` as
    for `limited_sweep`.
    """
    start, layer_states = layers
    horizon, states, actions = reply.shape
    for s in range(states + 1):
        spare[0, s] = spare[1, s] = 0.0
    for t in range(horizon - 1, -1, -1):
        here, ahead = t % 2, (t + 1) % 2
        now = discount**t
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            for a in range(actions):
                reply[t, s, a] = 0.0
                if caps[s, a] > 0.0:
                    own = worth[s, a] + now * later[s, a]
                    room[0, a] = own + _expected(outcomes, s * actions + a, spare, ahead)
            rest = 1.0
            total = 0.0
            while rest > 0.0:
                choice = -1
                for a in range(actions):
                    left = caps[s, a] > 0.0 and reply[t, s, a] == 0.0
                    if left and (choice < 0 or room[0, a] > room[0, choice]):
                        choice = a
                if choice < 0:  # rounding: the caps sum to a little less than 1
                    break
                reply[t, s, choice] = min(rest, caps[s, choice])
                rest -= reply[t, s, choice]
                total += reply[t, s, choice] * room[0, choice]
            spare[here, s] = total
        if t + 1 < horizon:
            for i in range(start[t + 1], start[t + 2]):
                spare[ahead, layer_states[i]] = 0.0
    earned = 0.0
    for i in range(start[0], start[1]):
        earned += initial[layer_states[i]] * spare[0, layer_states[i]]
    return earned


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
            best[:] = point
            reached = value
        if turn == count or (since > 0 and 0.0 <= gained < tolerance * abs(value)):
            break
        if gained < 0.0:
            if since == 1:  # a step without momentum: nothing is left to gain
                break
            since = 0
            point[:] = best
            behavior[:] = best
            continue
        before[:] = behavior
        behavior[:] = point
        limited_sweep(
            *(outcomes, layers, caps, prices, worth - unit * visit_cost, later, discount),
            *(behavior, spare, room),
        )
        extrapolate(layers, behavior, before, since / (since + 3.0), point)
        for t in range(behavior.shape[0]):
            for i in range(layers.start[t], layers.start[t + 1]):
                keep_to_caps(point, caps, t, layers.states[i])
        since += 1
    behavior[:] = best
