"""Minari: datasets written in its HDF5 form, and read as prior data."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from revar.datasets.minari_episodes import AMOUNT, read_whole_episodes, whole_episodes
from revar.environments.observations import Bins, StateEncoding, is_discrete, make_encoding
from revar.environments.opening import open_environment
from revar.errors import InputError, require_extra
from revar.model.episodes import Episodes
from revar.model.trajectory import ENDED, Dataset, Trajectory
from revar.model.validation import as_floats

PROPENSITY = "propensity"


def to_minari(
    dataset: Dataset | Episodes,
    dataset_id: str,
    env: Any,
    *,
    bins: Bins | None = None,
    **about: Any,
) -> Any:
    """Write the episodes as a local Minari dataset; returns it.

    Propensities and amounts stand in the infos. What was observed after the end is not known: the
    last observation is repeated. Whole Episodes have it, and their noise and features stand in the
    infos, too.

    Parameters
    ----------
    dataset
        A Dataset or Episodes.
    dataset_id
        Such as "lake/flow-v0".
    env
        An environment or its name, which gives the spaces.
    bins
        Those with which the dataset was collected.
    **about
        Goes to Minari: author, description, ...
    """
    minari = require_extra("minari", "minari")
    buffers = require_extra("minari.data_collector.episode_buffer", "minari")
    require_extra("h5py", "minari")
    opened = open_environment(env)
    try:
        for space in (opened.observation_space, opened.action_space):
            _refuse_slashes(_keys_in(space), "key")
        _refuse_slashes(dataset.amounts, "amount")
        if isinstance(dataset, Episodes):
            buffered = whole_episodes(buffers, dataset, opened)
        else:
            buffered = _buffered(buffers, dataset, opened, bins)
        return _write(minari, buffered, dataset_id, opened, about)
    finally:
        if opened is not env:
            opened.close()


def _keys_in(space: Any) -> Iterator[str]:
    """The keys of a Dict space, and of those within it."""
    parts: Any = getattr(space, "spaces", ())
    if hasattr(parts, "keys"):
        yield from parts
        parts = parts.values()
    for part in parts:
        yield from _keys_in(part)


def _refuse_slashes(names: Iterable[str], what: str) -> None:
    """Minari's files take '/' for a folder; nothing is written of what could not be read again."""
    for name in names:
        if "/" in str(name):
            raise InputError(
                f"{what} {name!r} has a '/', which Minari's files cannot hold; rename it, or save "
                f"the episodes with revar.save_dataset, which keeps it"
            )


def _buffered(buffers: Any, dataset: Dataset, env: Any, bins: Bins | None) -> list[Any]:
    """The episodes as Minari takes them."""
    encoding = make_encoding(env.observation_space, bins)
    first = _first_action(env.action_space, dataset, "the environment")
    _check_labels(encoding, dataset)
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
                observations=_stack(env.observation_space, encoding, dataset, met),
                actions=trajectory.actions + first,
                rewards=trajectory.rewards,
                terminations=terminated,
                truncations=truncated,
                infos={
                    PROPENSITY: np.append(np.nan, trajectory.propensities),
                    **{
                        AMOUNT + name: np.append(np.nan, amounts)
                        for name, amounts in trajectory.amounts.items()
                    },
                },
            )
        )
    return episodes


def _write(
    minari: Any, episodes: list[Any], dataset_id: str, env: Any, about: dict[str, Any]
) -> Any:
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


def from_minari(source: Any, *, bins: Bins | None = None) -> Any:
    """The episodes of a local Minari dataset, with states as labels.

    Actions without a stored propensity have none: enough for certainty equivalence.

    Parameters
    ----------
    source
        The id of a dataset, or one that is loaded.
    bins
        Make a table of continuous observations. Without them, where observations or actions are not
        discrete, the episodes are Episodes.
    """
    minari = require_extra("minari", "minari")
    try:
        stored = minari.load_dataset(source) if isinstance(source, str) else source
    except (OSError, ValueError) as error:
        text = str(error).strip().partition("\n")[0]
        raise InputError(f"Minari cannot load dataset {source!r}: {text}") from error
    if bins is None and not is_discrete(stored.observation_space, stored.action_space):
        return read_whole_episodes(stored)
    encoding = make_encoding(stored.observation_space, bins)
    first = _first_action(stored.action_space, None, "the dataset")
    numbers: dict[Any, int] = {}
    trajectories = []
    for episode in stored.iterate_episodes():
        steps = len(episode.rewards)
        keys = _keys(stored.observation_space, encoding, episode.observations, steps + 1)
        # In the order they appear in; the observation after the end is no state.
        ended = bool(episode.terminations[-1])
        met = [numbers.setdefault(key, len(numbers)) for key in keys[: steps + (not ended)]]
        infos = episode.infos or {}
        chances = infos.get(PROPENSITY)
        trajectory = Trajectory.of(
            met[:steps],
            np.asarray(episode.actions) - first,
            episode.rewards,
            last_successor=ENDED if ended else met[-1],
            propensities=None if chances is None else np.asarray(chances)[1:],
        )
        amounts = {
            name.removeprefix(AMOUNT): as_floats(values, name)[1:]
            for name, values in infos.items()
            if name.startswith(AMOUNT)
        }
        trajectories.append(replace(trajectory, amounts=amounts))
    return replace(
        Dataset.of(trajectories, tuple(numbers)),
        action_count=int(stored.action_space.n),
        first_label=encoding.first,
    )


def _first_action(space: Any, dataset: Dataset | None, whose: str) -> int:
    spaces = require_extra("gymnasium.spaces", "gym")
    if not isinstance(space, spaces.Discrete):
        raise InputError(f"actions of {whose} are {space}; they must be Discrete")
    if dataset is not None and dataset.actions.max(initial=-1) >= space.n:
        raise InputError(f"the dataset has action {dataset.actions.max()}, {whose} {space}")
    return int(space.start)


def _check_labels(encoding: StateEncoding, dataset: Dataset) -> None:
    """Every state must be one of the environment's."""
    for state in range(dataset.states_seen):
        encoding.place(state if dataset.labels is None else dataset.labels[state])


def _stack(space: Any, encoding: StateEncoding, dataset: Dataset, met: list[int]) -> Any:
    vector = require_extra("gymnasium.vector.utils", "gym")
    labels = dataset.labels if dataset.labels is not None else range(dataset.states_seen)
    items = [encoding.observation(labels[state]) for state in met]
    return vector.concatenate(space, items, vector.create_empty_array(space, n=len(items)))


def _keys(space: Any, encoding: StateEncoding, seen: Any, count: int) -> list[Any]:
    vector = require_extra("gymnasium.vector.utils", "gym")
    batched = vector.batch_space(space, count)
    return [encoding.key(item) for item in vector.iterate(batched, seen)]
