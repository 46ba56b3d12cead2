"""The model that a run's statistics suggest, where few visits say little about the noise."""

from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, like_caller
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.moments import reward_noise
from revar.theory.importance import OutcomeModel

# Below so many visits the usual reward variance fills in.
PRIOR_VISITS = 4.0
# And below so many rewards of a kind that is rare.
PRIOR_RARE = 8.0


class PooledNoise(NamedTuple):
    """The noise of rewards within pairs: over all pairs, and of each action in all states."""

    variance: float
    rare: float  # the square of a rare reward's size
    squares: FloatArray  # [A] sums of squares
    freedom: FloatArray  # [A] their degrees of freedom
    rares: FloatArray  # [A] sums of squares times squares of sizes


@like_caller
def rare_size(squares: float, quartics: float, count: int) -> float:
    """The square of the size of rewards that make a law's fourth moment more than a normal one's.

    Rewards of 1 that are nearly always 0 have size 1, however rare they are. Normal rewards have
    size 0: the kurtosis of a sample must be two standard errors above theirs. A variance is known
    by the rare rewards seen, not by the visits.
    """
    if squares == 0.0 or not isfinite(quartics):
        return 0.0
    normal = 3.0 + 2.0 * sqrt(24.0 / count)
    return max(0.0, quartics / squares - normal * squares / count)


@compiled
def pooled_noise(statistics: RunStatistics, by_outcome: bool) -> PooledNoise:
    """The noise within pairs; before there is any, the mean square reward."""
    states, actions = statistics.visits.shape
    freedom = np.zeros(actions)
    squares = np.zeros(actions)
    rares = np.zeros(actions)
    visits = 0
    moments = 0.0
    for s in range(states):
        for a in range(actions):
            count = statistics.visits[s, a]
            if count > 0:
                noise, free = reward_noise(statistics, by_outcome, s, a)
                freedom[a] += free
                squares[a] += noise
                rares[a] += noise * rare_size(
                    statistics.reward_squares[s, a], statistics.reward_quartics[s, a], count
                )
                visits += count
                moments += count * statistics.reward_mean[s, a] ** 2
    if freedom.sum() == 0.0:
        return PooledNoise(moments / visits, 0.0, squares, freedom, rares)
    rare = rares.sum() / squares.sum() if squares.sum() > 0.0 else 0.0
    return PooledNoise(squares.sum() / freedom.sum(), rare, squares, freedom, rares)


@like_caller
def filled_variance(
    statistics: RunStatistics,
    by_outcome: bool,
    state: int,
    action: int,
    pooled: PooledNoise,
    prior_visits: float,
) -> float:
    """The variance of a pair's reward, filled up with what is usual.

    That is the variance of the same action in other states, to which all pairs add as much as
    `prior_visits` would: what is rare and large is often the doing of an action. It fills what
    visits lack to `prior_visits`; and as many visits as are expected to show PRIOR_RARE rare
    rewards, of the size that the pair's own rewards suggest, or the usual one where its own were
    equal so far.
    """
    squares, free = reward_noise(statistics, by_outcome, state, action)
    rare = 0.0
    if squares > 0.0:
        rare = rare_size(
            statistics.reward_squares[state, action],
            statistics.reward_quartics[state, action],
            statistics.visits[state, action],
        )
    elsewhere = max(0.0, pooled.squares[action] - squares) + prior_visits * pooled.variance
    rares = max(0.0, pooled.rares[action] - squares * rare)
    rares += prior_visits * pooled.variance * pooled.rare
    usual = elsewhere / (pooled.freedom[action] - free + prior_visits)
    filled = prior_visits - 1.0
    if squares > 0.0:
        filled = max(0.0, filled - free)
        rare *= squares / statistics.reward_squares[state, action]
    elif elsewhere > 0.0:
        rare = rares / elsewhere
    if usual > 0.0:
        filled = max(filled, PRIOR_RARE * rare / usual)
    return float((squares + filled * usual) / (free + filled))


@compiled
def estimate_model(statistics: RunStatistics) -> OutcomeModel:
    """Frequencies and estimated moments in the place of what is true.

    Statistics hold the reward's spread by pair and its mean by outcome. What the means of a
    pair's outcomes do not explain is taken to be the noise of each of them.
    """
    states, actions = statistics.visits.shape
    row_start = statistics.outcomes.row_start
    pooled = pooled_noise(statistics, True)
    variance: FloatArray = np.zeros(statistics.outcomes.probability.size)
    for s in range(states):
        for a in range(actions):
            if statistics.visits[s, a] > 0:
                p = s * actions + a
                noise = filled_variance(statistics, True, s, a, pooled, PRIOR_VISITS)
                for o in range(row_start[p], row_start[p + 1]):
                    variance[o] = noise
    return OutcomeModel(statistics.outcomes, statistics.outcome_reward_mean, variance)
