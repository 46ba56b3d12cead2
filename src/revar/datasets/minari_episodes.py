"""Whole episodes of any observations and actions, in Minari's form."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from revar.environments.descriptions import describe_space
from revar.environments.spaces import ArrayLayout, Layout, layout_of
from revar.errors import InputError, require_extra
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes
from revar.model.law import Law
from revar.model.validation import as_floats

AMOUNT = "amount_"  # before the name of what steps cost, or added to a limited sum
NOISE = "noise_"  # before the law that reads it
FEATURES = "features"


def whole_episodes(buffers: Any, episodes: Episodes, env: Any) -> list[Any]:
    """The episodes as Minari takes them; `env` has their spaces."""
    spaces = {"observation": env.observation_space, "action": env.action_space}
    for name, space in spaces.items():
        known = getattr(episodes, f"{name}_space")
        if known is not None and known != describe_space(space):
            raise InputError(f"{name}s of the episodes are {known}; those of env are {space}")
    observations, actions = (layout_of(space, name) for name, space in spaces.items())
    found = []
    for number in range(len(episodes)):
        part = episodes.part(number, number + 1)
        terminated = np.zeros(part.steps, dtype=bool)
        truncated = terminated.copy()
        terminated[-1], truncated[-1] = part.terminated[0], not part.terminated[0]
        infos = {f"{AMOUNT}{name}": _after_steps(each) for name, each in part.amounts.items()}
        if part.law.parts:
            infos[f"{NOISE}{part.law}"] = _after_steps(part.noise)
        if part.features is not None:
            infos[FEATURES] = _after_steps(part.features)
        seen = np.concatenate([part.observations, part.final_observations])
        found.append(
            buffers.EpisodeBuffer(
                id=number,
                observations=_values(observations, seen),
                actions=_values(actions, part.actions),
                rewards=part.rewards,
                terminations=terminated,
                truncations=truncated,
                infos=infos,
            )
        )
    return found


def read_whole_episodes(stored: Any) -> Episodes:
    """The episodes of a Minari dataset; noise is known where we have written it."""
    observations = layout_of(stored.observation_space)
    actions = layout_of(stored.action_space, "action")
    found = []
    for episode in stored.iterate_episodes():
        steps = len(episode.rewards)
        seen = _rows(observations, episode.observations, steps + 1)
        infos = episode.infos or {}
        law, noise = Law(), np.zeros((steps, 0))
        for name, values in infos.items():
            if name.startswith(NOISE):
                law = Law.parse(name.removeprefix(NOISE))
                noise = as_floats(values, name)[1:]
        found.append(
            Episodes(
                start=np.array([0, steps]),
                observations=seen[:-1],
                final_observations=seen[-1:],
                actions=_rows(actions, episode.actions, steps),
                rewards=np.asarray(episode.rewards, dtype=np.float64),
                terminated=np.array([bool(episode.terminations[-1])]),
                noise=noise,
                law=law,
                observation_space=describe_space(stored.observation_space),
                action_space=describe_space(stored.action_space),
                features=as_floats(infos[FEATURES], FEATURES)[1:] if FEATURES in infos else None,
                amounts={
                    name.removeprefix(AMOUNT): as_floats(values, name)[1:]
                    for name, values in infos.items()
                    if name.startswith(AMOUNT)
                },
            )
        )
    if not found:
        raise InputError("the Minari dataset has no episodes")
    return Episodes.join(found)


def _after_steps(values: FloatArray) -> FloatArray:
    """Infos have a row for the reset, too, where there is nothing to say."""
    return np.concatenate([np.full((1, *values.shape[1:]), np.nan), values])


def _values(layout: Layout, rows: NDArray[Any]) -> Any:
    """What the environment knows rows as, along a first axis."""
    if isinstance(layout, ArrayLayout):
        return np.array(rows, dtype=layout.dtype).reshape(-1, *layout.shape)
    vector = require_extra("gymnasium.vector.utils", "gym")
    room = vector.create_empty_array(layout.space, n=len(rows))
    return vector.concatenate(layout.space, [layout.value(row) for row in rows], room)


def _rows(layout: Layout, values: Any, count: int) -> NDArray[Any]:
    vector = require_extra("gymnasium.vector.utils", "gym")
    items = vector.iterate(vector.batch_space(layout.space, count), values)
    return np.array([layout.row(item) for item in items])
