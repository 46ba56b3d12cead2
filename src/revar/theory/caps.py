"""Behaviors whose shares have caps, compiled: within reach, and best for what visits are worth.

`caps` [S, A] are the largest shares that actions may have, zero where they are forbidden; in every
state that can be entered they sum to at least 1.
"""

from revar.compilation import compiled_in_place, inlined
from revar.model.arrays import FloatArray, Layers, Outcomes


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
def keep_within(behavior: FloatArray, layers: Layers, caps: FloatArray) -> None:
    """`keep_to_caps` at every step, in every state that can be entered."""
    for t in range(behavior.shape[0]):
        for i in range(layers.start[t], layers.start[t + 1]):
            keep_to_caps(behavior, caps, t, layers.states[i])


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
def expected_value(outcomes: Outcomes, pair: int, values: FloatArray, row: int) -> float:
    """The mean of values[row] over what can follow the pair."""
    total = 0.0
    for o in range(outcomes.row_start[pair], outcomes.row_start[pair + 1]):
        total += outcomes.probability[o] * values[row, outcomes.successor[o]]
    return total


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
                    room[0, a] = own + expected_value(outcomes, s * actions + a, spare, ahead)
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
