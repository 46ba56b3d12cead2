"""What a compiled run notes of its steps: statistics, and the log where steps are kept."""

from typing import Any, NamedTuple

import numpy as np

from revar.compilation import compiled_in_place, inlined
from revar.model.arrays import FloatArray, IntArray, RunStatistics
from revar.model.moments import push
from revar.model.trajectory import ENDED, Dataset


@inlined
def record_step(
    statistics: RunStatistics, state: int, action: int, slot: int, reward: float
) -> None:
    """Add one step to the run's statistics, as VisitStatistics.record_step does."""
    count = statistics.visits[state, action] + 1
    statistics.visits[state, action] = count
    mean, squares, cubes, quartics = push(
        count,
        statistics.reward_mean[state, action],
        statistics.reward_squares[state, action],
        statistics.reward_cubes[state, action],
        statistics.reward_quartics[state, action],
        reward,
    )
    statistics.reward_mean[state, action] = mean
    statistics.reward_squares[state, action] = squares
    statistics.reward_cubes[state, action] = cubes
    statistics.reward_quartics[state, action] = quartics
    statistics.outcome_count[slot] += 1
    statistics.outcome_reward_mean[slot] += (
        reward - statistics.outcome_reward_mean[slot]
    ) / statistics.outcome_count[slot]


class RunResults(NamedTuple):
    """Where a run writes its results: rows of arrays that all runs share."""

    values: FloatArray  # [checkpoint, J]
    covariances: FloatArray  # [checkpoint, J, J]
    freedom: FloatArray  # [checkpoint, J] degrees of freedom of the variances
    unvisited: FloatArray  # [checkpoint, J]
    visits: IntArray  # [S, A]
    finished: IntArray  # [1] episodes played so far
    checkpoint: IntArray  # [1] how many were reached
    spent: FloatArray  # [1] of the budget so far, read by the progress display
    logged: IntArray  # [1] episodes in the log so far
    logged_at: IntArray  # [checkpoint] the same, then
    played_at: IntArray  # [checkpoint] all episodes, then
    thin_share: FloatArray  # [checkpoint, J] as `PluggedIn` has it


class Log(NamedTuple):
    """Every step of the run; kept only where `states` has room for any."""

    start: IntArray  # [episode + 1]
    states: IntArray  # [step]
    actions: IntArray  # [step]
    rewards: FloatArray  # [step]
    successors: IntArray  # [step]; the number of states where the episode ended
    propensities: FloatArray  # [step]


def empty_log(episodes: int, steps: int) -> Log:
    """A log with room for so many, which grows; without room for steps none are kept."""
    return Log(
        np.zeros(episodes + 1, dtype=np.int64),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps),
    )


@compiled_in_place
def has_room(log: Log, finished: int, episodes: int, horizon: int) -> bool:
    """Whether a log of `finished` episodes has room for so many more of any length."""
    steps = log.start[finished] + episodes * horizon
    return log.start.size > finished + episodes and log.states.size >= steps


def with_room(log: Log, finished: int, episodes: int, horizon: int) -> Log:
    """The log of `finished` episodes with room for so many more of any length."""
    steps = int(log.start[finished]) + episodes * horizon
    columns: Any = (_grown(column, steps) for column in log[1:])
    return Log(_grown(log.start, finished + episodes + 1), *columns)


def _grown(values: Any, least: int) -> Any:
    """The values with zeros after them, so that there are at least so many."""
    if values.size >= least:
        return values
    grown = np.zeros(max(least, 2 * values.size), dtype=values.dtype)
    grown[: values.size] = values
    return grown


@compiled_in_place
def log_step(
    log: Log,
    episode: int,
    step: int,
    state: int,
    action: int,
    reward: float,
    successor: int,
    propensity: float,
) -> None:
    """Note a step of an episode."""
    place = log.start[episode] + step
    log.states[place] = state
    log.actions[place] = action
    log.rewards[place] = reward
    log.successors[place] = successor
    log.propensities[place] = propensity


def dataset_of(log: Log, states: int, episodes: int) -> Dataset:
    """The first episodes of a log, on a model of so many states."""
    steps = int(log.start[episodes])
    return Dataset(
        log.start[: episodes + 1],
        log.states[:steps],
        log.actions[:steps],
        log.rewards[:steps],
        np.where(log.successors[:steps] == states, ENDED, log.successors[:steps]),
        log.propensities[:steps],
    )
