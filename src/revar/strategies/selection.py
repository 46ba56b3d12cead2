"""From a state's scores to an action: one definition for compiled and plain code.

The rules are functions of a uniform random number. The caller draws it, and only where there is
something to decide.
"""

from enum import IntEnum
from typing import Protocol

import numpy as np

from revar.compilation import inlined
from revar.model.arrays import FloatArray, IntArray

# Ranks an action that must go first above every score.
HUGE = np.finfo(np.float64).max


class Selection(IntEnum):
    """What the scores of a plan mean."""

    SAMPLE = 0  # probabilities to draw the action from
    TRACK = 1  # shares to be matched: the largest score / visits
    LARGEST = 2  # an index: the largest score
    FOLLOW = 3  # shares to be matched step by step: the largest score * (n + 1) - taken
    MATCH = 4  # shares to be matched by all visits of the state: the largest score - T(s,a)/T(s)


class UniformDraws(Protocol):
    """A source of random numbers, such as NumPy's `Generator`."""

    def random(self) -> float:
        """The next number, uniform between 0 and 1."""


# Plans of these kinds draw an action from their scores, at least the first time in a state.
DRAWN = (Selection.SAMPLE, Selection.FOLLOW, Selection.MATCH)


@inlined
def sampled_action(scores: FloatArray, table: int, state: int, draw: float) -> int:
    """The action in `state` at which the cumulated scores[table] pass `draw`."""
    reached = 0.0
    action = -1
    for a in range(scores.shape[2]):
        if scores[table, state, a] > 0.0:
            action = a
            reached += scores[table, state, a]
            if draw < reached:
                break
    return action


@inlined
def best_action(
    selection: int,
    visits_first: int,
    scores: FloatArray,
    table: int,
    state: int,
    policy: FloatArray,
    visits: IntArray,
    taken: IntArray,
) -> tuple[int, int]:
    """The first of the best actions in `state`, and how many are equally good.

    None (0) means that the action is to be drawn from the scores: shares are followed or matched
    here for the first time. `taken` [table, S, A] holds how often each action was taken under the
    plan in force; it is looked at only where shares are followed.
    """
    total = _times(selection, table, state, visits, taken)
    best = -np.inf
    action = -1
    ties = 0
    for a in range(policy.shape[1]):
        merit = _merit(
            selection, visits_first, scores, table, state, a, policy, visits, taken, total
        )
        if merit > best:
            best = merit
            action = a
            ties = 1
        elif merit == best:
            ties += 1
    if total == 0 and best <= 1.0:
        ties = 0
    return action, ties


@inlined
def tied_action(
    selection: int,
    visits_first: int,
    scores: FloatArray,
    table: int,
    state: int,
    policy: FloatArray,
    visits: IntArray,
    taken: IntArray,
    first: int,
    place: int,
) -> int:
    """Number `place`, from 0, of the actions in `state` that are as good as action `first`."""
    total = _times(selection, table, state, visits, taken)
    best = 0.0
    for a in range(first, policy.shape[1]):
        merit = _merit(
            selection, visits_first, scores, table, state, a, policy, visits, taken, total
        )
        if a == first:
            best = merit
        if merit == best:
            if place == 0:
                return a
            place -= 1
    return first


@inlined
def _times(selection: int, table: int, state: int, visits: IntArray, taken: IntArray) -> int:
    """How often actions were taken here before; -1 where the rule does not ask."""
    if selection == Selection.FOLLOW:
        total = 0
        for a in range(taken.shape[2]):
            total += taken[table, state, a]
        return total
    if selection == Selection.MATCH:
        total = 0
        for a in range(visits.shape[1]):
            total += visits[state, a]
        return total
    return -1


@inlined
def _merit(
    selection: int,
    visits_first: int,
    scores: FloatArray,
    table: int,
    state: int,
    action: int,
    policy: FloatArray,
    visits: IntArray,
    taken: IntArray,
    total: int,
) -> float:
    """How good an action is; minus infinity for one that is not to be taken.

    The target policy's actions with fewer than `visits_first` visits go first, the least visited
    before the others, except where shares are matched. Shares that are followed or matched may
    lie on other actions too.
    """
    count = visits[state, action]
    score = scores[table, state, action]
    if selection == Selection.MATCH:
        # T(s) times what the action lacks, which ranks actions alike.
        return -np.inf if score == 0.0 else float(score * total - count)
    if policy[state, action] > 0.0 and count < visits_first:
        return np.inf if count == 0 else HUGE / count
    if selection == Selection.FOLLOW:
        if score == 0.0:
            return -np.inf
        return float(score * (total + 1) - taken[table, state, action])
    if policy[state, action] == 0.0:
        return -np.inf
    return float(score / count) if selection == Selection.TRACK else float(score)


def choose(
    selection: int,
    visits_first: int,
    scores: FloatArray,
    table: int,
    state: int,
    policy: FloatArray,
    visits: IntArray,
    taken: IntArray,
    rng: UniformDraws,
) -> tuple[int, float]:
    """The action in `state` by scores[table], and its propensity: NaN unless it was sampled.

    `rng` breaks ties between the best actions, and is used only where there is one.
    """
    if selection == Selection.SAMPLE:
        action = int(sampled_action(scores, table, state, rng.random()))
        return action, float(scores[table, state, action])
    rows = (selection, visits_first, scores, table, state, policy, visits, taken)
    action, ties = best_action(*rows)
    if ties == 0:
        action = sampled_action(scores, table, state, rng.random())
    elif ties > 1:
        action = tied_action(*rows, action, int(rng.random() * ties))
    return int(action), np.nan
