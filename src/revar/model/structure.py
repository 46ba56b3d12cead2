"""Which states can be occupied at which step, and what kind of graph they form."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from revar.compilation import compiled, like_caller
from revar.model.arrays import BoolArray, FloatArray, IntArray, Layers, Outcomes
from revar.model.validation import pair_name


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
    states = allowed.shape[0]
    start = np.zeros(horizon + 1, dtype=np.int64)
    found = np.empty(max(states, 16), dtype=np.int64)
    entered = np.zeros(states + 1, dtype=np.int64)  # the last step, from 1 on, of each state
    size = 0
    for s in range(states):
        if initial[s] > 0:
            found[size] = s
            size += 1
    start[1] = size
    for t in range(1, horizon):
        count = _enter(outcomes, allowed, found, start[t - 1], start[t], t, entered)
        if size + count > found.size:
            larger = np.empty(2 * (size + count), dtype=np.int64)
            for i in range(size):
                larger[i] = found[i]
            found = larger
        for s in range(states):
            if entered[s] == t:
                found[size] = s
                size += 1
        start[t + 1] = size
    return start, found[:size].copy()


@like_caller
def _enter(
    outcomes: Outcomes,
    allowed: BoolArray,
    found: IntArray,
    first: int,
    end: int,
    step: int,
    entered: IntArray,
) -> int:
    """Mark what can follow the states found from `first` to `end`; how many states that are."""
    row_start, successors, probability = outcomes
    states, actions = allowed.shape
    count = 0
    for i in range(first, end):
        s = found[i]
        for a in range(actions):
            p = s * actions + a
            if allowed[s, a]:
                for o in range(row_start[p], row_start[p + 1]):
                    successor = successors[o]
                    new = successor != states and entered[successor] != step
                    if new and probability[o] != 0.0:
                        entered[successor] = step
                        count += 1
    return count


GraphKind = Literal["bandit", "tree", "layered", "general"]


@dataclass(frozen=True)
class Structure:
    """What kind of graph the reachable states form, and why it is not of a simpler kind."""

    kind: GraphKind
    reason: str
    levels: IntArray  # [S] the step of each state, -1 if never; all -1 if a state recurs

    @property
    def is_tree(self) -> bool:
        """Whether Theorem 1 is exact: a bandit is a tree of depth one."""
        return self.kind in ("bandit", "tree")


def classify(outcomes: Outcomes, initial: FloatArray, actions: int, horizon: int) -> Structure:
    """Look only at states that some policy reaches within the horizon."""
    states = initial.size
    layers = reachable_layers(outcomes, initial, np.ones((states, actions), dtype=bool), horizon)
    levels = np.full(states, -1, dtype=np.int64)
    for t in range(horizon):
        layer = layers.states[layers.start[t] : layers.start[t + 1]]
        repeated = layer[levels[layer] >= 0]
        if repeated.size:
            s = int(repeated[0])
            reason = f"state {s} can be occupied at step {levels[s]} and at step {t}"
            return Structure("general", reason, np.full(states, -1, dtype=np.int64))
        levels[layer] = t
    cut = _first_cut(outcomes, layers, actions, states, horizon)
    if cut is not None:
        return Structure("general", cut, levels)
    if (levels >= 0).sum() == 1:
        return Structure(
            "bandit", "one state is reachable and every action ends the episode", levels
        )
    shared = _first_shared(outcomes, layers, actions, states)
    if shared is not None:
        return Structure("layered", shared, levels)
    reason = "every reachable state is entered through one state and one action"
    return Structure("tree", reason, levels)


def _first_cut(
    outcomes: Outcomes, layers: Layers, actions: int, states: int, horizon: int
) -> str | None:
    """A state at the last step from which the episode could have gone on."""
    for s in layers.states[layers.start[horizon - 1] : layers.start[horizon]]:
        slots = slice(outcomes.row_start[s * actions], outcomes.row_start[(s + 1) * actions])
        onward = outcomes.successor[slots][outcomes.successor[slots] < states]
        if onward.size:
            return (
                f"the horizon of {horizon} steps cuts episodes in state {s}, "
                f"which still leads to state {onward[0]}"
            )
    return None


def _first_shared(outcomes: Outcomes, layers: Layers, actions: int, states: int) -> str | None:
    """A state that two state-action pairs lead to, within the horizon."""
    within = np.zeros(states, dtype=bool)
    within[layers.states] = True
    pair_of = np.repeat(np.arange(states * actions), np.diff(outcomes.row_start))
    edges = within[pair_of // actions] & (outcomes.successor < states)
    successor, pair = outcomes.successor[edges], pair_of[edges]
    order = np.argsort(successor, kind="stable")
    successor, pair = successor[order], pair[order]
    again = np.flatnonzero(successor[1:] == successor[:-1])
    if again.size == 0:
        return None
    i = int(again[0])
    return (
        f"state {successor[i]} can be entered from {pair_name(int(pair[i]), actions)} "
        f"and from {pair_name(int(pair[i + 1]), actions)}"
    )
