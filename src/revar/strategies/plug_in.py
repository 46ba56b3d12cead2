"""The model that a run's statistics suggest, where few visits say little about the noise."""

import numpy as np

from revar.compilation import compiled, inlined
from revar.model.arrays import FloatArray, Outcomes
from revar.strategies.rule import Seen
from revar.theory.importance_steps import OutcomeModel

# Below so many visits the pooled reward variance fills in.
PRIOR_VISITS = 4.0
# Smaller shares of a sum of squares are what rounding leaves of a difference.
ROUNDING = 1e-9


@compiled
def reward_noise(
    believed: Outcomes, seen: Seen, by_outcome: bool, state: int, action: int
) -> tuple[float, int]:
    """A pair's sum of squares of rewards, and how many visits it tells of.

    By outcome, it is about the mean of each outcome: where the reward is a function of the outcome
    nothing is left, not even what rounding leaves.
    """
    squares = seen.reward_squares[state, action]
    count = int(seen.visits[state, action])
    if not by_outcome or count == 0:
        return squares, max(0, count - 1)
    p = state * seen.visits.shape[1] + action
    left = squares
    for o in range(believed.row_start[p], believed.row_start[p + 1]):
        if seen.outcome_count[o] > 0:
            apart = seen.outcome_reward_mean[o] - seen.reward_mean[state, action]
            left -= seen.outcome_count[o] * apart * apart
            count -= 1
    return (left if left > ROUNDING * squares else 0.0), count


@compiled
def pooled_variance(believed: Outcomes, seen: Seen, by_outcome: bool) -> float:
    """The reward variance within pairs; before there is any, the mean square reward."""
    freedom = 0
    squares = 0.0
    visits = 0
    moments = 0.0
    for s in range(seen.visits.shape[0]):
        for a in range(seen.visits.shape[1]):
            count = seen.visits[s, a]
            if count > 0:
                noise, free = reward_noise(believed, seen, by_outcome, s, a)
                freedom += free
                squares += noise
                visits += count
                moments += count * seen.reward_mean[s, a] ** 2
    if freedom > 0:
        return squares / freedom
    return moments / visits


@inlined
def filled_variance(squares: float, free: int, pooled: float, prior_visits: float) -> float:
    """The variance of a pair's reward, filled up with the pooled one.

    It fills what visits lack to `prior_visits`. Rewards that were equal so far, as rare ones may
    be for long, are filled up by as many visits at any time.
    """
    filled = prior_visits - 1.0
    if squares > 0.0:
        filled = max(0.0, filled - free)
    return (squares + filled * pooled) / (free + filled)


@compiled
def plug_in_model(believed: Outcomes, seen: Seen) -> OutcomeModel:
    """Frequencies and estimated moments in the place of what is true.

    Statistics hold the reward's spread by pair and its mean by outcome. What the means of a
    pair's outcomes do not explain is taken to be the noise of each of them.
    """
    states, actions = seen.visits.shape
    pooled = pooled_variance(believed, seen, True)
    variance: FloatArray = np.zeros(believed.probability.size)
    for s in range(states):
        for a in range(actions):
            if seen.visits[s, a] > 0:
                p = s * actions + a
                squares, free = reward_noise(believed, seen, True, s, a)
                noise = filled_variance(squares, free, pooled, PRIOR_VISITS)
                for o in range(believed.row_start[p], believed.row_start[p + 1]):
                    variance[o] = noise
    return OutcomeModel(believed, seen.outcome_reward_mean, variance)
