"""Doubly robust estimation (Jiang and Li 2016), with the model fitted on the other episodes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from revar.errors import InputError
from revar.estimators.estimator import Estimate, Estimator, estimators
from revar.estimators.importance_sampling import PaddedEpisodes, mean_estimate
from revar.model.arrays import FloatArray, IntArray
from revar.model.moments import EpisodeCounter
from revar.model.statistics import VisitStatistics
from revar.model.structure import all_layers
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.theory.recursions import backward_values


@estimators.register("doubly-robust")
@dataclass(frozen=True)
class DoublyRobust(Estimator):
    """Per-decision importance sampling with a certainty-equivalence model as control variate.

    Needs the behavior's probability of every action taken, and at least two episodes: even and
    odd episodes take their model from each other, so that each correction is unbiased.
    """

    id: ClassVar[str] = "doubly-robust"
    least_episodes: ClassVar[int] = 2
    folds: ClassVar[int] = 2

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From episodes of a sampled behavior; tracked data is refused."""
        episodes = PaddedEpisodes.of(task, data, "doubly robust estimation")
        count = len(episodes.dataset)
        if count < self.least_episodes:
            raise InputError("doubly robust estimation needs at least two episodes")
        parity = np.arange(count) % 2
        samples = np.empty(count)
        counter = EpisodeCounter(episodes.dataset, task.states, task.actions)
        for half in (0, 1):
            action_values, values = _fit(task, counter, (parity != half).astype(np.int64))
            members = np.flatnonzero(parity == half)
            samples[members] = _correct(task, episodes, action_values, values)[members]
        return mean_estimate(samples)


def _fit(task: Task, counter: EpisodeCounter, times: IntArray) -> tuple[FloatArray, FloatArray]:
    """q_t(s,a) [L, S, A] and v_t(s) [L+1, S+1] of the model estimated from those episodes."""
    states, actions = task.states, task.actions
    known = VisitStatistics.from_arrays(counter.arrays(times)).run_statistics(states)
    layers = all_layers(states, task.horizon)
    values = backward_values(
        known.outcomes, known.reward_mean, task.policy[None], layers, task.discount
    )
    frequencies = sparse.csr_array(
        (known.outcomes.probability, known.outcomes.successor, known.outcomes.row_start),
        shape=(states * actions, states + 1),
    )
    ahead = (frequencies @ values[1:].T).T.reshape(task.horizon, states, actions)
    return known.reward_mean + task.discount * ahead, values


def _correct(
    task: Task, episodes: PaddedEpisodes, action_values: FloatArray, values: FloatArray
) -> FloatArray:
    """V = v(s) + ratio (r + gamma V' - q(s,a)), from the last step back, [K]."""
    states = episodes.pad(episodes.dataset.states, 0)
    actions = episodes.pad(episodes.dataset.actions, 0)
    corrected = np.zeros(len(episodes.dataset))
    for t in range(episodes.played.shape[1] - 1, -1, -1):
        s, a = states[:, t], actions[:, t]
        surprise = episodes.rewards[:, t] + task.discount * corrected - action_values[t, s, a]
        now = values[t, s] + episodes.ratios[:, t] * surprise
        corrected = np.where(episodes.played[:, t], now, 0.0)
    return corrected
