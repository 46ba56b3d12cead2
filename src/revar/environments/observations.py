"""Observations as states: hashable keys, and back to what a policy expects to see."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from numbers import Integral
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
    space: str  # what messages call it

    def place(self, key: Any) -> tuple[int, ...]:
        """The state's index in a table of this shape; a state of another space is refused."""
        found = place_of(key, self.first)
        if found is None or any(
            index >= size for index, size in zip(found, self.shape, strict=True)
        ):
            raise InputError(f"state {key!r} is none of {self.space}")
        return found


def place_of(key: Any, first: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
    """A state's index in a table, part by part; None where it has no place in one.

    `first` is the least value of each part; where it is not known, parts are taken as they are.
    """
    parts = _flat(key if isinstance(key, tuple) else (key,))
    least = (0,) * len(parts) if first is None else first
    if len(parts) != len(least) or not all(isinstance(part, Integral) for part in parts):
        return None
    found = tuple(int(part) - start for part, start in zip(parts, least, strict=True))
    return None if min(found, default=0) < 0 else found


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

        return Observations(bins.state, centre, bins.counts, (0,) * size, f"the bins of {space}")
    if isinstance(space, spaces.Discrete):
        return _of_number(space)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return _of_array(space, spaces)
    if isinstance(space, spaces.Tuple):
        parts = [_part_of(part, space, spaces) for part in space.spaces]
        return Observations(
            lambda seen: tuple(part.key(value) for part, value in zip(parts, seen, strict=True)),
            lambda key: tuple(
                part.observation(value) for part, value in zip(parts, key, strict=True)
            ),
            *_joined(parts),
            str(space),
        )
    if isinstance(space, spaces.Dict):
        named = {name: _part_of(part, space, spaces) for name, part in space.spaces.items()}
        return Observations(
            lambda seen: tuple(part.key(seen[name]) for name, part in named.items()),
            lambda key: {
                name: part.observation(value)
                for (name, part), value in zip(named.items(), key, strict=True)
            },
            *_joined(list(named.values())),
            str(space),
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


def _part_of(part: Any, whole: Any, spaces: Any) -> Observations:
    if isinstance(part, spaces.Box):
        raise InputError(
            f"observations are {whole}, of which {part} is continuous; wrap the environment in "
            f"gymnasium.wrappers.FlattenObservation, which makes them one Box, and give bins"
        )
    return observations_of(part)


def _of_number(space: Any) -> Observations:
    first, end = int(space.start), int(space.start) + int(space.n)

    def key(seen: Any) -> Hashable:
        try:
            number = int(seen)
        except (TypeError, ValueError, OverflowError):
            raise _outside(seen, space) from None
        if not first <= number < end or number != seen:
            raise _outside(seen, space)
        return number

    return Observations(key, _itself, (end - first,), (first,), str(space))


def _of_array(space: Any, spaces: Any) -> Observations:
    binary = isinstance(space, spaces.MultiBinary)
    sizes = np.full(space.shape, 2) if binary else space.nvec
    first = np.zeros(space.shape, dtype=int) if binary else space.start

    least, end = np.ravel(first), np.ravel(first) + np.ravel(sizes)
    known: set[Hashable] = set()  # to check each state once only

    def key(seen: Any) -> Hashable:
        numbers = np.ravel(seen)
        state = tuple(numbers.tolist())
        if state not in known:
            if numbers.shape != end.shape or numbers.dtype.kind not in "biuf":
                raise _outside(seen, space)
            if not np.all((numbers >= least) & (numbers < end) & (numbers % 1 == 0)):
                raise _outside(seen, space)
            state = tuple(map(int, state))
            known.add(state)
        return state

    def observation(state: Any) -> Any:
        return np.array(state, dtype=space.dtype).reshape(space.shape)

    return Observations(
        key,
        observation,
        tuple(np.ravel(sizes).tolist()),
        tuple(np.ravel(first).tolist()),
        str(space),
    )


def _outside(seen: Any, space: Any) -> InputError:
    return InputError(f"observation {seen!r} does not belong to {space}")


def _joined(parts: list[Observations]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = tuple(size for part in parts for size in part.shape)
    return shape, tuple(size for part in parts for size in part.first)


def _flat(parts: tuple[Any, ...]) -> list[Any]:
    return [
        value for part in parts for value in (_flat(part) if isinstance(part, tuple) else [part])
    ]


def _itself(key: Any) -> Any:
    return key
