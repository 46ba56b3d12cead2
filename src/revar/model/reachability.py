"""Which states can be occupied at which step."""

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import BoolArray, FloatArray, IntArray, Layers, Outcomes


def reachable_layers(
    outcomes: Outcomes, initial: FloatArray, allowed: BoolArray, horizon: int
) -> Layers:
    """The states that can be occupied at each step when only `allowed` [S, A] actions are taken."""
    return Layers(*expand(outcomes, initial, allowed, horizon))


def all_layers(states: int, horizon: int) -> Layers:
    """Every state at every step."""
    start = np.arange(horizon + 1, dtype=np.int64) * states
    return Layers(start, np.tile(np.arange(states, dtype=np.int64), horizon))


@compiled
def expand(
    outcomes: Outcomes, initial: FloatArray, allowed: BoolArray, horizon: int
) -> tuple[IntArray, IntArray]:
    """`reachable_layers` for compiled callers: the two arrays of `Layers`."""
    states, actions = allowed.shape
    start = np.zeros(horizon + 1, dtype=np.int64)
    found = np.empty(max(states, 16), dtype=np.int64)
    last_seen = np.full(states + 1, -1, dtype=np.int64)
    size = 0
    for s in range(states):
        if initial[s] > 0:
            found[size] = s
            size += 1
    start[1] = size
    for t in range(1, horizon):
        for i in range(start[t - 1], start[t]):
            s = found[i]
            for a in range(actions):
                if not allowed[s, a]:
                    continue
                for o in range(
                    outcomes.row_start[s * actions + a], outcomes.row_start[s * actions + a + 1]
                ):
                    successor = outcomes.successor[o]
                    if outcomes.probability[o] == 0.0:
                        continue
                    if successor == states or last_seen[successor] == t:
                        continue
                    last_seen[successor] = t
                    if size == found.size:
                        larger = np.empty(2 * size, dtype=np.int64)
                        larger[:size] = found
                        found = larger
                    found[size] = successor
                    size += 1
        found[start[t] : size].sort()
        start[t + 1] = size
    return start, found[:size].copy()
