"""Means and sums of powers of deviations, stable however large the mean is.

`push` adds one value (Welford 1962, "Note on a method for calculating corrected sums of squares
and products"). `merge_moments` merges two summaries (Chan, Golub and LeVeque 1983, "Algorithms for
computing the sample variance"; Pebay 2008, "Formulas for robust, one-pass parallel computation of
covariances and arbitrary-order statistical moments"). `EpisodeCounter` summarises whole episodes
at once.
"""

from typing import Any, NamedTuple

import numpy as np

from revar.compilation import compiled_in_place, inlined, like_caller
from revar.model.arrays import FloatArray, IntArray, RunStatistics
from revar.model.trajectory import Dataset

# Smaller shares of a sum of squares are what rounding leaves of a difference.
ROUNDING = 1e-9


@inlined
def push(
    count: int, mean: float, squares: float, cubes: float, quartics: float, value: float
) -> tuple[float, float, float, float]:
    """Mean and sums of powers of deviations after `value` came in as number `count`."""
    delta = value - mean
    step = delta / count
    gain = delta * step * (count - 1)
    quartics += step * (step * (gain * (count * (count - 3.0) + 3.0) + 6.0 * squares) - 4.0 * cubes)
    cubes += step * (gain * (count - 2.0) - 3.0 * squares)
    mean += step
    return mean, squares + delta * (value - mean), cubes, max(0.0, quartics)


class Moments(NamedTuple):
    """Summaries of many samples, place by place."""

    number: IntArray
    mean: FloatArray
    squares: FloatArray  # sums of squared deviations
    cubes: FloatArray
    quartics: FloatArray


@compiled_in_place
def push_steps(
    place: IntArray,
    reward: FloatArray,
    pair: IntArray,
    number: IntArray,
    mean: FloatArray,
    squares: FloatArray,
    cubes: FloatArray,
    quartics: FloatArray,
    count: IntArray,
    outcome_mean: FloatArray,
) -> None:
    """Push the rewards of steps, in their order.

    Numbers of steps and moments are [run, pair]; counts and means of outcomes are [run, slot], and
    slot i belongs to `pair[i]`. Step i fell on `place[i]` = run * slots + slot.
    """
    slots = count.shape[1]
    for i in range(place.size):
        run, slot = place[i] // slots, place[i] % slots
        p = pair[slot]
        number[run, p] += 1
        mean[run, p], squares[run, p], cubes[run, p], quartics[run, p] = push(
            number[run, p],
            mean[run, p],
            squares[run, p],
            cubes[run, p],
            quartics[run, p],
            reward[i],
        )
        count[run, slot] += 1
        outcome_mean[run, slot] += (reward[i] - outcome_mean[run, slot]) / count[run, slot]


def merge_means(
    count: IntArray, mean: FloatArray, other_count: IntArray, other_mean: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Count and mean of both samples together."""
    total = count + other_count
    return total, mean + (other_mean - mean) * (other_count / total.clip(min=1))


def merge_moments(one: Moments, other: Moments) -> Moments:
    """Both samples together."""
    total, mean = merge_means(one.number, one.mean, other.number, other.mean)
    share = other.number / total.clip(min=1)
    rest = one.number / total.clip(min=1)
    delta = other.mean - one.mean
    return Moments(
        total,
        mean,
        one.squares + other.squares + delta**2 * one.number * share,
        one.cubes
        + other.cubes
        + delta**3 * one.number * share * (rest - share)
        + 3.0 * delta * (rest * other.squares - share * one.squares),
        one.quartics
        + other.quartics
        + delta**4 * one.number * share * (rest**2 - rest * share + share**2)
        + 6.0 * delta**2 * (rest**2 * other.squares + share**2 * one.squares)
        + 4.0 * delta * (rest * other.cubes - share * one.cubes),
    )


@like_caller
def reward_noise(
    statistics: RunStatistics, by_outcome: bool, state: int, action: int
) -> tuple[float, int]:
    """A pair's sum of squared deviations of rewards, and its degrees of freedom.

    By outcome, deviations are from the mean of each outcome: where the reward is a function of the
    outcome nothing is left, not even what rounding leaves.
    """
    squares = statistics.reward_squares[state, action]
    count = int(statistics.visits[state, action])
    if not by_outcome or count == 0:
        return squares, max(0, count - 1)
    row_start = statistics.outcomes.row_start
    p = state * statistics.visits.shape[1] + action
    left = squares
    for o in range(row_start[p], row_start[p + 1]):
        if statistics.outcome_count[o] > 0:
            apart = statistics.outcome_reward_mean[o] - statistics.reward_mean[state, action]
            left -= statistics.outcome_count[o] * apart * apart
            count -= 1
    return (left if left > ROUNDING * squares else 0.0), count


class EpisodeCounter:
    """Counts and reward moments of episodes, each taken as often as asked for."""

    def __init__(self, dataset: Dataset, states: int, actions: int) -> None:
        self._states, self._actions = states, actions
        self._rewards = dataset.rewards
        self._first = dataset.states[dataset.start[:-1]]  # [episode]
        self._episode = np.repeat(np.arange(len(dataset)), np.diff(dataset.start))  # [step]
        self._pair = dataset.states * actions + dataset.actions  # [step]
        self._outcome, self._slot = np.unique(
            self._pair * (states + 1) + dataset.successors + 1, return_inverse=True
        )

    def arrays(self, times: IntArray) -> dict[str, Any]:
        """The arrays of `VisitStatistics`, with episode k taken `times[k]` times."""
        weight = times[self._episode].astype(np.float64)  # [step]
        visits, mean = self._average(self._pair, weight, self._states * self._actions)
        count, outcome_mean = self._average(self._slot, weight, self._outcome.size)
        apart = self._rewards - mean[self._pair]
        squares, cubes, quartics = (
            np.bincount(self._pair, weight * apart**power, visits.size) for power in (2, 3, 4)
        )
        pairs = (1, self._states, self._actions)
        return {
            "visits": visits.reshape(pairs),
            "mean": mean.reshape(pairs),
            "squares": squares.reshape(pairs),
            "cubes": cubes.reshape(pairs),
            "quartics": quartics.reshape(pairs),
            "initial": np.bincount(self._first, times, self._states).astype(np.int64)[None],
            "pair": self._outcome // (self._states + 1),
            "successor": self._outcome % (self._states + 1) - 1,
            "count": count[None],
            "outcome_mean": outcome_mean[None],
        }

    def _average(
        self, place: IntArray, weight: FloatArray, size: int
    ) -> tuple[IntArray, FloatArray]:
        """How many rewards fall on each place, and their mean."""
        count = np.bincount(place, weight, size).astype(np.int64)
        return count, np.bincount(place, weight * self._rewards, size) / count.clip(min=1)
