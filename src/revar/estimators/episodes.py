"""Whole episodes as rectangular arrays, with the importance ratios of their actions."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.estimators.estimator import Estimate, episodes_of
from revar.model.arrays import BoolArray, FloatArray
from revar.model.policy import check_sums
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset


@dataclass(frozen=True, eq=False)
class Episodes:
    """K episodes side by side; past an episode's end rewards are 0 and ratios are 1."""

    dataset: Dataset
    played: BoolArray  # [K, L]
    rewards: FloatArray  # [K, L]
    ratios: FloatArray  # [K, L] pi(a|s) / b(a|s)
    discounts: FloatArray  # [L] gamma^t

    @classmethod
    def of(cls, task: Task, data: Dataset | VisitStatistics, asker: str) -> "Episodes":
        """The data laid out, or an error where an action's propensity is not known."""
        dataset = episodes_of(data, task, asker)
        lengths = np.diff(dataset.start)
        broken = (lengths < task.horizon) & (dataset.successors[dataset.start[1:] - 1] != ENDED)
        if broken.any():
            episode = int(np.argmax(broken))
            raise InputError(
                f"{asker} needs whole episodes; episode {episode} stops after {lengths[episode]} "
                f"of {task.horizon} steps without having ended"
            )
        check_sums(task.policy, "policy", np.unique(dataset.states))
        shape = (len(dataset), int(lengths.max()))
        row = np.repeat(np.arange(len(dataset)), lengths)
        place = (row, dataset.step_in_episode)
        unknown = np.isnan(dataset.propensities)
        if unknown.any():
            first = int(np.argmax(unknown))
            raise InputError(
                f"{asker} needs the probability of every action taken; step "
                f"{place[1][first]} of episode {row[first]} was chosen deterministically "
                f"(tracked data has no propensities; use certainty equivalence)"
            )
        played = np.zeros(shape, dtype=bool)
        played[place] = True
        rewards = np.zeros(shape)
        rewards[place] = dataset.rewards
        ratios = np.ones(shape)
        ratios[place] = task.policy[dataset.states, dataset.actions] / dataset.propensities
        return cls(
            dataset, played, rewards, ratios, task.discount ** np.arange(shape[1], dtype=np.float64)
        )

    def padded(self, values: Any, fill: float | int) -> Any:
        """Values per step of the dataset as [K, L]."""
        array = np.full(self.played.shape, fill, dtype=np.asarray(values).dtype)
        array[self.played] = values
        return array


def mean_estimate(samples: FloatArray) -> Estimate:
    """The mean of independent unbiased samples, one an episode."""
    count = samples.size
    error = float(samples.std(ddof=1)) / sqrt(count) if count > 1 else inf
    return Estimate(float(samples.mean()), error, count)
