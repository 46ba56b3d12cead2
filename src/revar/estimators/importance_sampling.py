"""Estimators of whole episodes: the mean return, and importance sampling in three forms.

Ordinary, weighted and per decision: Precup, Sutton and Singh 2000.
"""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np

from revar.errors import InputError
from revar.estimators.estimator import Estimate, Estimator, episodes_of, estimators
from revar.model.arrays import BoolArray, FloatArray
from revar.model.statistics import VisitStatistics
from revar.model.task import Task, check_sums
from revar.model.trajectory import ENDED, Dataset


@dataclass(frozen=True, eq=False)
class PaddedEpisodes:
    """K episodes side by side; past an episode's end rewards are 0 and ratios are 1."""

    dataset: Dataset
    played: BoolArray  # [K, L]
    rewards: FloatArray  # [K, L]
    ratios: FloatArray  # [K, L] pi(a|s) / b(a|s)
    discounts: FloatArray  # [L] gamma^t

    @classmethod
    def of(cls, task: Task, data: Dataset | VisitStatistics, asker: str) -> "PaddedEpisodes":
        """The data laid out, or an error where an action's propensity is not known."""
        if len(task.policies) > 1:
            raise InputError(
                f"{asker} estimates the value of one policy; for {len(task.policies)} of them use "
                f"certainty equivalence"
            )
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

    def pad(self, values: Any, fill: float | int) -> Any:
        """Values per step of the dataset as [K, L]."""
        array = np.full(self.played.shape, fill, dtype=np.asarray(values).dtype)
        array[self.played] = values
        return array


def check_on_policy(episodes: PaddedEpisodes, asker: str) -> None:
    """Refuse episodes whose actions were not drawn from the target policy."""
    off = (np.abs(episodes.ratios - 1.0) > 1e-9) & episodes.played
    if off.any():
        k, t = (int(i) for i in np.argwhere(off)[0])
        raise InputError(
            f"{asker} needs on-policy data; step {t} of episode {k} was taken with "
            f"{1.0 / episodes.ratios[k, t]:.4g} times the target policy's probability"
            if episodes.ratios[k, t] > 0
            else f"{asker} needs on-policy data; step {t} of episode {k} took an action "
            f"that the target policy never takes"
        )


def mean_estimate(samples: FloatArray) -> Estimate:
    """The mean of independent unbiased samples, one an episode."""
    count = samples.size
    error = float(samples.std(ddof=1)) / sqrt(count) if count > 1 else inf
    return Estimate(float(samples.mean()), error, count)


@estimators.register("monte-carlo")
@dataclass(frozen=True)
class MonteCarlo(Estimator):
    """The mean return. Needs on-policy data: actions drawn from the target policy."""

    id: ClassVar[str] = "monte-carlo"

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From on-policy episodes; any other behavior is refused."""
        episodes = PaddedEpisodes.of(task, data, "Monte Carlo")
        check_on_policy(episodes, "Monte Carlo")
        return mean_estimate((episodes.discounts * episodes.rewards).sum(axis=1))


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
        episodes = PaddedEpisodes.of(task, data, "importance sampling")
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
        episodes = PaddedEpisodes.of(task, data, "weighted importance sampling")
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
        episodes = PaddedEpisodes.of(task, data, "per-decision importance sampling")
        ratios = np.cumprod(episodes.ratios, axis=1)
        return mean_estimate((episodes.discounts * ratios * episodes.rewards).sum(axis=1))
