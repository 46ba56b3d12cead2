"""Importance sampling: ordinary, weighted and per decision (Precup, Sutton and Singh 2000)."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar

import numpy as np

from revar.errors import InputError
from revar.estimators.episodes import Episodes, mean_estimate
from revar.estimators.estimator import Estimate, Estimator, estimators
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset


@estimators.register("importance-sampling")
@dataclass(frozen=True)
class ImportanceSampling(Estimator):
    """The mean of returns times the ratio of the whole episode; unbiased.

    Needs the behavior's probability of every action taken, and a behavior that takes every
    action the target policy takes.
    """

    id: ClassVar[str] = "importance-sampling"

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From episodes of a sampled behavior; tracked data is refused."""
        episodes = Episodes.of(task, data, "importance sampling")
        returns = (episodes.discounts * episodes.rewards).sum(axis=1)
        return mean_estimate(episodes.ratios.prod(axis=1) * returns)


@estimators.register("weighted-importance-sampling")
@dataclass(frozen=True)
class WeightedImportanceSampling(Estimator):
    """Returns averaged with the episodes' ratios as weights; biased, and far less noisy.

    Needs what ordinary importance sampling needs. The standard error is the delta method's.
    """

    id: ClassVar[str] = "weighted-importance-sampling"

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From episodes of a sampled behavior; tracked data is refused."""
        episodes = Episodes.of(task, data, "weighted importance sampling")
        returns = (episodes.discounts * episodes.rewards).sum(axis=1)
        weights = episodes.ratios.prod(axis=1)
        if weights.sum() == 0:
            raise InputError(
                "weighted importance sampling needs an episode that the target policy could "
                "have produced; every one of these has ratio 0"
            )
        shares = weights / weights.sum()
        value = float(shares @ returns)
        count = weights.size
        spread = float(np.sum(shares**2 * (returns - value) ** 2))
        error = sqrt(spread * count / (count - 1)) if count > 1 else inf
        return Estimate(value, error, count)


@estimators.register("per-decision-importance-sampling")
@dataclass(frozen=True)
class PerDecisionImportanceSampling(Estimator):
    """Each reward times the ratio of the actions up to it; unbiased, less noisy than ordinary.

    Needs what ordinary importance sampling needs.
    """

    id: ClassVar[str] = "per-decision-importance-sampling"

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From episodes of a sampled behavior; tracked data is refused."""
        episodes = Episodes.of(task, data, "per-decision importance sampling")
        ratios = np.cumprod(episodes.ratios, axis=1)
        return mean_estimate((episodes.discounts * ratios * episodes.rewards).sum(axis=1))
