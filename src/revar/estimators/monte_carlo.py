"""Monte Carlo: the mean return of episodes that the target policy itself produced."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from revar.errors import InputError
from revar.estimators.episodes import Episodes, mean_estimate
from revar.estimators.estimator import Estimate, Estimator, estimators
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset


@estimators.register("monte-carlo")
@dataclass(frozen=True)
class MonteCarlo(Estimator):
    """The mean return. Needs on-policy data: actions drawn from the target policy."""

    id: ClassVar[str] = "monte-carlo"

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From on-policy episodes; any other behavior is refused."""
        episodes = Episodes.of(task, data, "Monte Carlo")
        off = (np.abs(episodes.ratios - 1.0) > 1e-9) & episodes.played
        if off.any():
            k, t = (int(i) for i in np.argwhere(off)[0])
            raise InputError(
                f"Monte Carlo needs on-policy data; step {t} of episode {k} was taken with "
                f"{1.0 / episodes.ratios[k, t]:.4g} times the target policy's probability"
                if episodes.ratios[k, t] > 0
                else f"Monte Carlo needs on-policy data; step {t} of episode {k} took an action "
                f"that the target policy never takes"
            )
        return mean_estimate((episodes.discounts * episodes.rewards).sum(axis=1))
