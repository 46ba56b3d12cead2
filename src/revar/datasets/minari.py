"""Minari: datasets written in its HDF5 form, and read as prior data."""

import warnings
from typing import Any

import numpy as np

from revar.environments.bins import Bins
from revar.environments.observations import Observations, observations_of
from revar.errors import InputError, require_extra
from revar.model.trajectory import ENDED, Dataset, Trajectory

PROPENSITY = "propensity"


def to_minari(
    dataset: Dataset, dataset_id: str, env: Any, *, bins: Bins | None = None, **about: Any
) -> Any:
    """Write the episodes as a local Minari dataset, e.g. "lake/flow-v0"; returns it.

    `env` gives the spaces; `about` goes to Minari (author, description, ...). Propensities stand
    in the infos. What was observed after the end is not known: the last observation is repeated.
    """
    minari = require_extra("minari", "minari")
    buffers = require_extra("minari.data_collector.episode_buffer", "minari")
    require_extra("h5py", "minari")
    observations = observations_of(env.observation_space, bins)
    first = int(env.action_space.start)
    episodes = []
    for number, trajectory in enumerate(dataset):
        met = [*trajectory.states.tolist(), int(trajectory.successors[-1])]
        if met[-1] == ENDED:
            met[-1] = met[-2]
        terminated = np.zeros(len(trajectory), dtype=bool)
        truncated = terminated.copy()
        terminated[-1], truncated[-1] = trajectory.terminated, not trajectory.terminated
        episodes.append(
            buffers.EpisodeBuffer(
                id=number,
                observations=_stacked(env.observation_space, observations, dataset, met),
                actions=trajectory.actions + first,
                rewards=trajectory.rewards,
                terminations=terminated,
                truncations=truncated,
                infos={PROPENSITY: np.append(np.nan, trajectory.propensities)},
            )
        )
    about.setdefault("description", "collected by revar")
    try:
        with warnings.catch_warnings():
            # It warns about everything that could be said about a dataset and was not.
            warnings.simplefilter("ignore", UserWarning)
            return minari.create_dataset_from_buffers(
                dataset_id,
                episodes,
                env=env if getattr(env, "spec", None) is not None else None,
                observation_space=env.observation_space,
                action_space=env.action_space,
                **about,
            )
    except ValueError as error:
        raise InputError(f"Minari refuses dataset {dataset_id!r}: {error}") from error


def from_minari(source: Any, *, bins: Bins | None = None) -> Dataset:
    """The episodes of a local Minari dataset, by id or as loaded, with states as labels.

    Actions without a stored propensity have none: enough for certainty equivalence.
    """
    minari = require_extra("minari", "minari")
    spaces = require_extra("gymnasium.spaces", "gym")
    stored = minari.load_dataset(source) if isinstance(source, str) else source
    if not isinstance(stored.action_space, spaces.Discrete):
        raise InputError(f"actions of the dataset are {stored.action_space}; they must be Discrete")
    observations = observations_of(stored.observation_space, bins)
    first = int(stored.action_space.start)
    numbers: dict[Any, int] = {}
    trajectories = []
    for episode in stored.iterate_episodes():
        steps = len(episode.rewards)
        keys = _keys(stored.observation_space, observations, episode.observations, steps + 1)
        # In the order they appear in; the observation after the end is no state.
        ended = bool(episode.terminations[-1])
        met = [numbers.setdefault(key, len(numbers)) for key in keys[: steps + (not ended)]]
        chances = (episode.infos or {}).get(PROPENSITY)
        trajectories.append(
            Trajectory.of(
                met[:steps],
                np.asarray(episode.actions) - first,
                episode.rewards,
                last_successor=ENDED if ended else met[-1],
                propensities=None if chances is None else np.asarray(chances)[1:],
            )
        )
    return Dataset.of(trajectories, tuple(numbers))


def _stacked(space: Any, observations: Observations, dataset: Dataset, met: list[int]) -> Any:
    vector = require_extra("gymnasium.vector.utils", "gym")
    labels = dataset.labels if dataset.labels is not None else range(dataset.states_seen)
    items = [observations.observation(labels[state]) for state in met]
    return vector.concatenate(space, items, vector.create_empty_array(space, n=len(items)))


def _keys(space: Any, observations: Observations, seen: Any, count: int) -> list[Any]:
    vector = require_extra("gymnasium.vector.utils", "gym")
    batched = vector.batch_space(space, count)
    return [observations.key(item) for item in vector.iterate(batched, seen)]
