"""From a state's scores to an action: the one definition, compiled and step by step.

The rules are functions of a uniform draw, not of a generator: the caller draws, and only where
there is something to decide.
"""

from enum import IntEnum

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
) -> tuple[int, int]:
    """The first of the target policy's best actions in `state`, and how many are equally good."""
    best = -1.0
    action = -1
    ties = 0
    for a in range(policy.shape[1]):
        if policy[state, a] > 0.0:
            merit = _merit(selection, visits_first, scores[table, state, a], visits[state, a])
            if merit > best:
                best = merit
                action = a
                ties = 1
            elif merit == best:
                ties += 1
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
    first: int,
    place: int,
) -> int:
    """Number `place`, from 0, of the actions in `state` that are as good as action `first`."""
    merit = _merit(selection, visits_first, scores[table, state, first], visits[state, first])
    for a in range(first, policy.shape[1]):
        if (
            policy[state, a] > 0.0
            and _merit(selection, visits_first, scores[table, state, a], visits[state, a]) == merit
        ):
            if place == 0:
                return a
            place -= 1
    return first


@inlined
def _merit(selection: int, visits_first: int, score: float, visits: int) -> float:
    """Actions with fewer than `visits_first` visits go first, the least visited before the rest."""
    if visits < visits_first:
        return np.inf if visits == 0 else HUGE / visits
    return score / visits if selection == Selection.TRACK else score


def choose(
    selection: int,
    visits_first: int,
    scores: FloatArray,
    table: int,
    state: int,
    policy: FloatArray,
    visits: IntArray,
    rng: np.random.Generator,
) -> tuple[int, float]:
    """The action in `state` by scores[table], and its propensity: NaN unless it was sampled.

    Tracked actions come from the target policy's support; `rng` breaks ties between them, and is
    used only where there is one.
    """
    if selection == Selection.SAMPLE:
        action = int(sampled_action(scores, table, state, rng.random()))
        return action, float(scores[table, state, action])
    rows = (selection, visits_first, scores, table, state, policy, visits)
    action, ties = best_action(*rows)
    if ties > 1:
        action = tied_action(*rows, action, int(rng.random() * ties))
    return int(action), np.nan
