"""The model that the data suggests, for questions that are asked of a model."""

import numpy as np
from scipy import sparse

from revar.errors import InputError
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.mdp import TabularMDP
from revar.model.task import Task


def believed_model(
    task: Task, observed: RunStatistics, *, extra_variance: FloatArray | None = None
) -> TabularMDP:
    """Frequencies in the place of probabilities, means and deviations in the place of laws.

    Pairs without data give nothing and end the episode, as in certainty equivalence.
    `extra_variance` [S, A] is added to the reward noise of each pair.
    """
    episodes = int(observed.initial_count.sum())
    if episodes == 0:
        raise InputError("a model of the data needs at least one episode")
    row_start, successor, probability = observed.outcomes
    pairs = np.repeat(np.arange(task.states * task.actions), np.diff(row_start))
    shape = (task.states * task.actions, task.states + 1)
    mean = observed.outcome_reward_mean
    # Noise given the outcome: what is left of a pair's variance beside that of outcome means.
    between = np.bincount(
        pairs,
        probability * (mean - observed.reward_mean.ravel()[pairs]) ** 2,
        minlength=shape[0],
    )
    visits = observed.visits.ravel()
    variance = observed.reward_squares.ravel() / visits.clip(min=1)
    left = np.clip(variance - between, 0.0, None)
    if extra_variance is not None:
        left = left + extra_variance.ravel()
    noise = np.sqrt(left)[pairs]
    goes_on = successor < task.states
    return TabularMDP(
        sparse.csr_array(
            (probability[goes_on], (pairs[goes_on], successor[goes_on])),
            shape=(shape[0], task.states),
        ),
        sparse.csr_array((mean, (pairs, successor)), shape=shape),
        sparse.csr_array((noise, (pairs, successor)), shape=shape),
        observed.initial_count / episodes if task.initial is None else task.initial,
        task.horizon,
        task.discount,
    )
