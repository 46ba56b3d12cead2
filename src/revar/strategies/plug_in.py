"""The model that a run's statistics suggest, where few visits say little about the noise."""

import numpy as np

from revar.compilation import compiled, inlined
from revar.model.arrays import FloatArray, Outcomes
from revar.strategies.rule import Seen
from revar.theory.importance_steps import OutcomeModel

# Below so many visits the pooled reward variance fills in.
PRIOR_VISITS = 4.0


@compiled
def pooled_variance(seen: Seen) -> float:
    """The reward variance within pairs; before there is any, the mean square reward."""
    freedom = 0
    squares = 0.0
    visits = 0
    moments = 0.0
    for s in range(seen.visits.shape[0]):
        for a in range(seen.visits.shape[1]):
            count = seen.visits[s, a]
            if count > 0:
                freedom += count - 1
                squares += seen.reward_squares[s, a]
                visits += count
                moments += count * seen.reward_mean[s, a] ** 2
    if freedom > 0:
        return squares / freedom
    return moments / visits


@inlined
def filled_variance(count: int, squares: float, pooled: float, prior_visits: float) -> float:
    """A pair's reward variance, filled up with the pooled one below `prior_visits` visits."""
    filled = max(0.0, prior_visits - count)
    return (squares + filled * pooled) / (count - 1 + filled)


@compiled
def plug_in_model(believed: Outcomes, seen: Seen) -> OutcomeModel:
    """Frequencies and estimated moments in the place of what is true.

    Statistics hold the reward's spread by pair and its mean by outcome. What the means of a
    pair's outcomes do not explain is taken to be the noise of each of them.
    """
    states, actions = seen.visits.shape
    pooled = pooled_variance(seen)
    variance: FloatArray = np.zeros(believed.probability.size)
    for s in range(states):
        for a in range(actions):
            count = seen.visits[s, a]
            if count == 0:
                continue
            p = s * actions + a
            first, end = believed.row_start[p], believed.row_start[p + 1]
            explained = 0.0
            for o in range(first, end):
                apart = seen.outcome_reward_mean[o] - seen.reward_mean[s, a]
                explained += seen.outcome_count[o] / count * apart * apart
            whole = filled_variance(count, seen.reward_squares[s, a], pooled, PRIOR_VISITS)
            for o in range(first, end):
                variance[o] = max(0.0, whole - explained)
    return OutcomeModel(believed, seen.outcome_reward_mean, variance)
