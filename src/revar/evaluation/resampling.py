"""Episodes drawn anew from a dataset (Efron 1979, "Bootstrap methods"), counted all at once."""

import numpy as np

from revar.model.arrays import FloatArray, IntArray, Outcomes, RunStatistics
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset


class Resampler:
    """Statistics of resampled episodes in the layout of compiled loops."""

    def __init__(self, data: Dataset, task: Task) -> None:
        self._task = task
        self._episodes = len(data)
        self._episode = np.repeat(np.arange(len(data)), np.diff(data.start))  # [step]
        self._first = data.states[data.start[:-1]]  # [episode]
        self._rewards = data.rewards
        self._pair = data.states * task.actions + data.actions  # [step]
        successor = np.where(data.successors == ENDED, task.states, data.successors)
        outcomes, self._slot = np.unique(
            self._pair * (task.states + 1) + successor, return_inverse=True
        )
        pairs = task.states * task.actions
        self._pair_of_slot = outcomes // (task.states + 1)
        self._successor: IntArray = (outcomes % (task.states + 1)).astype(np.int64)
        self._row_start: IntArray = np.searchsorted(
            self._pair_of_slot, np.arange(pairs + 1)
        ).astype(np.int64)

    def draw(self, rng: np.random.Generator) -> RunStatistics:
        """As many episodes as there are, drawn with replacement."""
        chosen = rng.integers(self._episodes, size=self._episodes)
        return self.counted(np.bincount(chosen, minlength=self._episodes))

    def counted(self, times: IntArray) -> RunStatistics:
        """Statistics of the episodes, each counted so many times."""
        task = self._task
        weight = times[self._episode].astype(np.float64)  # [step]
        pairs = task.states * task.actions
        shape = (task.states, task.actions)
        visits = _summed(self._pair, weight, pairs)
        mean = self._mean(self._pair, weight, visits, pairs)
        apart = self._rewards - mean[self._pair]
        powers = [_summed(self._pair, weight * apart**power, pairs) for power in (2, 3, 4)]
        count = _summed(self._slot, weight, self._successor.size)
        return RunStatistics(
            outcomes=Outcomes(
                self._row_start, self._successor, count / visits[self._pair_of_slot].clip(min=1)
            ),
            visits=visits.reshape(shape).astype(np.int64),
            reward_mean=mean.reshape(shape),
            reward_squares=powers[0].reshape(shape),
            reward_cubes=powers[1].reshape(shape),
            reward_quartics=powers[2].reshape(shape),
            outcome_count=count.astype(np.int64),
            outcome_reward_mean=self._mean(self._slot, weight, count, count.size),
            initial_count=np.bincount(self._first, times, minlength=task.states).astype(np.int64),
        )

    def _mean(
        self, place: IntArray, weight: FloatArray, count: FloatArray, size: int
    ) -> FloatArray:
        return np.asarray(_summed(place, weight * self._rewards, size) / count.clip(min=1))


def _summed(place: IntArray, weight: FloatArray, size: int) -> FloatArray:
    return np.bincount(place, weight, minlength=size).astype(np.float64)
