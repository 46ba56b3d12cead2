"""Observations as states: hashable keys, and back to what a policy expects to see."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.environments.bins import Bins
from revar.errors import InputError, require_extra


@dataclass(frozen=True)
class Observations:
    """How the observations of one space become states and back.

    `shape` holds how many values each part has and `first` the least of each, so that a table
    [*shape, A] can be looked up by `place(key)`.
    """

    key: Callable[[Any], Hashable]
    observation: Callable[[Any], Any]
    shape: tuple[int, ...]
    first: tuple[int, ...]

    def place(self, key: Any) -> tuple[int, ...]:
        """The state's index in a table of this shape."""
        parts = key if isinstance(key, tuple) else (key,)
        return tuple(
            int(part) - first for part, first in zip(_flat(parts), self.first, strict=True)
        )


def observations_of(space: Any, bins: Bins | None = None) -> Observations:
    """The states of an observation space; continuous spaces need bins."""
    spaces = require_extra("gymnasium.spaces", "gym")
    if bins is not None:
        if not isinstance(space, spaces.Box):
            raise InputError(f"bins are given, but observations are {space}, not a Box")
        size = int(np.prod(space.shape))
        if size != len(bins.edges):
            raise InputError(
                f"observations have {size} numbers; bins are given for {len(bins.edges)}"
            )

        def centre(key: Any) -> Any:
            return bins.centre(key).reshape(space.shape).astype(space.dtype)

        return Observations(bins.state, centre, bins.counts, (0,) * size)
    if isinstance(space, spaces.Discrete):
        return Observations(int, _itself, (int(space.n),), (int(space.start),))
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return _of_array(space, spaces)
    if isinstance(space, spaces.Tuple):
        parts = [observations_of(part) for part in space.spaces]
        return Observations(
            lambda seen: tuple(part.key(value) for part, value in zip(parts, seen, strict=True)),
            lambda key: tuple(
                part.observation(value) for part, value in zip(parts, key, strict=True)
            ),
            *_joined(parts),
        )
    if isinstance(space, spaces.Dict):
        named = {name: observations_of(part) for name, part in space.spaces.items()}
        return Observations(
            lambda seen: tuple(part.key(seen[name]) for name, part in named.items()),
            lambda key: {
                name: part.observation(value)
                for (name, part), value in zip(named.items(), key, strict=True)
            },
            *_joined(list(named.values())),
        )
    if isinstance(space, spaces.Box):
        raise InputError(
            f"observations are {space}, which is continuous; say how to discretise them with "
            f"bins=revar.Bins(...)"
        )
    raise InputError(
        f"observations are {space}; they must be Discrete, MultiDiscrete, MultiBinary, a Tuple or "
        f"Dict of these, or a Box with bins"
    )


def _of_array(space: Any, spaces: Any) -> Observations:
    binary = isinstance(space, spaces.MultiBinary)
    sizes = np.full(space.shape, 2) if binary else space.nvec
    first = np.zeros(space.shape, dtype=int) if binary else space.start

    def key(seen: Any) -> Hashable:
        return tuple(np.ravel(seen).tolist())

    def observation(state: Any) -> Any:
        return np.array(state, dtype=space.dtype).reshape(space.shape)

    return Observations(
        key, observation, tuple(np.ravel(sizes).tolist()), tuple(np.ravel(first).tolist())
    )


def _joined(parts: list[Observations]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = tuple(size for part in parts for size in part.shape)
    return shape, tuple(size for part in parts for size in part.first)


def _flat(parts: tuple[Any, ...]) -> list[Any]:
    return [
        value for part in parts for value in (_flat(part) if isinstance(part, tuple) else [part])
    ]


def _itself(key: Any) -> Any:
    return key
