"""From a state's scores to an action: the one definition, compiled and step by step."""

from enum import IntEnum

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, IntArray


# Ranks an action that must go first above every score.
HUGE = np.finfo(np.float64).max


class Selection(IntEnum):
    """What the scores of a plan mean."""

    SAMPLE = 0  # probabilities to draw the action from
    TRACK = 1  # shares to be matched: the largest score / visits
    LARGEST = 2  # an index: the largest score


@compiled
def choose(
    selection: int,
    visits_first: int,
    scores: FloatArray,
    policy: FloatArray,
    visits: IntArray,
    rng: np.random.Generator,
) -> tuple[int, float]:
    """The action in a state, and its propensity: NaN unless it was sampled.

    `scores`, `policy` and `visits` are the state's rows. Tracked actions come from the target
    policy's support; those with fewer than `visits_first` visits go first, the least visited of
    them before the others; ties are broken from `rng`, which is used only where there is a tie.
    """
    actions = scores.size
    if selection == Selection.SAMPLE:
        draw = rng.random()
        reached = 0.0
        action = -1
        for a in range(actions):
            if scores[a] > 0.0:
                action = a
                reached += scores[a]
                if draw < reached:
                    break
        return action, scores[action]
    best = -1.0
    ties = 0
    for a in range(actions):
        if policy[a] > 0.0:
            merit = _merit(selection, visits_first, scores[a], visits[a])
            if merit > best:
                best = merit
                ties = 1
            elif merit == best:
                ties += 1
    place = int(rng.random() * ties) if ties > 1 else 0
    for a in range(actions):
        if policy[a] > 0.0 and _merit(selection, visits_first, scores[a], visits[a]) == best:
            if place == 0:
                return a, np.nan
            place -= 1
    return -1, np.nan


@compiled
def _merit(selection: int, visits_first: int, score: float, visits: int) -> float:
    if visits < visits_first:
        return np.inf if visits == 0 else HUGE / visits
    return score / visits if selection == Selection.TRACK else score
