"""Observations as states: hashable keys, and back to what a policy expects to see."""

from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import isnan, prod
from numbers import Integral
from typing import Any

import numpy as np

from revar.environments.stand_ins import known_spaces
from revar.errors import InputError, kind_of
from revar.model.arrays import FloatArray
from revar.model.validation import as_floats, check_count


@dataclass(frozen=True)
class Bins:
    """Cuts every number of an observation at inner edges; n edges make n + 1 bins.

    Observations that share all bins become one state. That state is Markov only by luck, so
    that certainty equivalence can be biased: see `check_aggregation`. The target policy is asked
    at the centre of each state's bins, and what is evaluated is the policy that acts so.

    Parameters
    ----------
    edges
        The inner edges of every number of an observation, in order.

    Examples
    --------
    >>> Bins([[0.0], [-1.0, 1.0]]).state([0.5, -3.0])
    (1, 0)
    """

    edges: tuple[tuple[float, ...], ...]  # for each number of the observation, ascending

    def __init__(self, edges: Any) -> None:
        try:
            parts = [] if isinstance(edges, str | dict) else list(edges)
        except TypeError:
            parts = []
        if not parts:
            raise InputError(
                f"bins are {edges!r}; they must be a list of edges for each number of an "
                f"observation, such as [[-1.0, 0.0, 1.0], [0.0]]"
            )
        checked = tuple(
            tuple(_check_edges(part, number).tolist()) for number, part in enumerate(parts)
        )
        object.__setattr__(self, "edges", checked)

    @classmethod
    def uniform(cls, low: Any, high: Any, counts: Any) -> "Bins":
        """Bins of equal width between `low` and `high`; the outermost reach to infinity.

        Parameters
        ----------
        low, high
            Bounds of every number of an observation.
        counts
            How many bins each has.
        """
        lows, highs = (np.atleast_1d(as_floats(end, "ends of bins")) for end in (low, high))
        numbers = [check_count(count, "a number of bins") for count in np.atleast_1d(counts)]
        if not lows.shape == highs.shape == (len(numbers),):
            raise InputError(
                f"low, high and counts of bins have lengths {lows.size}, {highs.size} and "
                f"{len(numbers)}; they must be the same"
            )
        if not np.all(np.isfinite(lows) & np.isfinite(highs) & (lows < highs)):
            raise InputError("low and high of bins must be finite, and low below high")
        return cls(
            [
                np.linspace(first, last, count + 1)[1:-1]
                for first, last, count in zip(lows, highs, numbers, strict=True)
            ]
        )

    @property
    def counts(self) -> tuple[int, ...]:
        """How many bins each number has."""
        return tuple(len(part) + 1 for part in self.edges)

    def state(self, observation: Any) -> tuple[int, ...]:
        """The bin of every number of an observation.

        Parameters
        ----------
        observation
            As the environment gives it.
        """
        numbers = np.asarray(observation, dtype=np.float64).ravel().tolist()
        if len(numbers) != len(self.edges):
            raise InputError(
                f"an observation has {len(numbers)} numbers; bins are given for {len(self.edges)}"
            )
        for place, number in enumerate(numbers):
            if isnan(number):
                raise InputError(f"number {place} of an observation is nan; it fits no bin")
        return tuple(map(bisect_right, self.edges, numbers))

    def centre(self, state: tuple[int, ...]) -> FloatArray:
        """The observation in the middle of the bins; outermost bins count as wide as the next.

        Parameters
        ----------
        state
            The bin of every number.
        """
        return np.array([_centre(part, i) for part, i in zip(self.edges, state, strict=True)])


def _centre(edges: tuple[float, ...], place: int) -> float:
    if not edges:
        return 0.0
    if 0 < place < len(edges):
        return 0.5 * (edges[place - 1] + edges[place])
    width = abs(edges[0]) if len(edges) == 1 else edges[1] - edges[0]
    if place == 0:
        return edges[0] - 0.5 * (width or 1.0)
    width = width if len(edges) == 1 else edges[-1] - edges[-2]
    return edges[-1] + 0.5 * (width or 1.0)


def _check_edges(edges: Any, number: int) -> FloatArray:
    values = np.atleast_1d(as_floats(edges, f"edges of number {number}"))
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(np.diff(values) <= 0):
        raise InputError(f"edges of number {number} are {values.tolist()}; they must ascend")
    return values


@dataclass(frozen=True)
class StateEncoding:
    """How the observations of one space become states and back.

    `shape` holds how many values each part has and `first` the least of each, so that a table
    [*shape, A] can be looked up by `place(key)`; `key_at` is its inverse.
    """

    key: Callable[[Any], Hashable]
    observation: Callable[[Any], Any]
    shape: tuple[int, ...]
    first: tuple[int, ...]
    space: str  # what messages call it
    single: bool = False  # a key is a number, not a tuple
    parts: tuple["StateEncoding", ...] = ()  # whose keys make up the key, where there are any

    def place(self, key: Any) -> tuple[int, ...]:
        """The state's index in a table of this shape; a state of another space is refused."""
        found = place_of(key, self.first)
        if found is None or any(
            index >= size for index, size in zip(found, self.shape, strict=True)
        ):
            raise InputError(f"state {key!r} is none of {self.space}")
        return found

    def key_at(self, place: tuple[int, ...]) -> Any:
        """The state at an index of a table of this shape."""
        if not self.parts:
            key = tuple(index + least for index, least in zip(place, self.first, strict=True))
            return key[0] if self.single else key
        keys = []
        for part in self.parts:
            size = len(part.shape)
            keys.append(part.key_at(place[:size]))
            place = place[size:]
        return tuple(keys)


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


def encoding_of(env: Any, bins: Bins | None = None) -> StateEncoding:
    """The states of an environment, or of several side by side."""
    return make_encoding(
        getattr(env, "single_observation_space", None) or env.observation_space, bins
    )


def is_discrete(observation_space: Any, action_space: Any) -> bool:
    """Whether a table can hold observations and actions as they are."""
    spaces = known_spaces()
    return count_values(observation_space) is not None and isinstance(action_space, spaces.Discrete)


def count_values(space: Any) -> int | None:
    """How many observations a discrete space has; None where it is not discrete."""
    try:
        return prod(make_encoding(space).shape)
    except InputError:
        return None


def make_encoding(space: Any, bins: Bins | None = None) -> StateEncoding:
    """The states of an observation space; continuous spaces need bins."""
    spaces = known_spaces()
    if bins is not None:
        if not isinstance(bins, Bins):
            raise InputError(
                f"bins is {kind_of(bins)}; it must be revar.Bins(...), made of the edges "
                f"of every number"
            )
        if not isinstance(space, spaces.Box):
            raise InputError(f"bins are given, but observations are {space}, not a Box")
        size = int(np.prod(space.shape))
        if size != len(bins.edges):
            raise InputError(
                f"observations have {size} numbers; bins are given for {len(bins.edges)}"
            )

        def centre(key: Any) -> Any:
            return bins.centre(key).reshape(space.shape).astype(space.dtype)

        return StateEncoding(bins.state, centre, bins.counts, (0,) * size, f"the bins of {space}")
    if isinstance(space, spaces.Discrete):
        return _of_number(space)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return _of_array(space, spaces)
    if isinstance(space, spaces.Tuple):
        parts = [_part_of(part, space, spaces) for part in space.spaces]
        return StateEncoding(
            lambda seen: tuple(part.key(value) for part, value in zip(parts, seen, strict=True)),
            lambda key: tuple(
                part.observation(value) for part, value in zip(parts, key, strict=True)
            ),
            *_merge_shapes(parts),
            str(space),
            parts=tuple(parts),
        )
    if isinstance(space, spaces.Dict):
        named = {name: _part_of(part, space, spaces) for name, part in space.spaces.items()}
        return StateEncoding(
            lambda seen: tuple(part.key(seen[name]) for name, part in named.items()),
            lambda key: {
                name: part.observation(value)
                for (name, part), value in zip(named.items(), key, strict=True)
            },
            *_merge_shapes(list(named.values())),
            str(space),
            parts=tuple(named.values()),
        )
    if isinstance(space, spaces.Box):
        if len(space.shape) > 1:
            raise InputError(
                f"observations are images or arrays of shape {space.shape}, which no table holds; "
                f"leave method= out: critics look at them, or at what features= makes of them"
            )
        raise InputError(
            f"observations are {space}, which is continuous; say how to discretise them with "
            f"bins=revar.Bins(...), or leave method= out"
        )
    raise InputError(
        f"observations are {space}; they must be Discrete, MultiDiscrete, MultiBinary, a Tuple or "
        f"Dict of these, or a Box with bins"
    )


def _part_of(part: Any, whole: Any, spaces: Any) -> StateEncoding:
    if isinstance(part, spaces.Box):
        raise InputError(
            f"observations are {whole}, of which {part} is continuous; wrap the environment in "
            f"gymnasium.wrappers.FlattenObservation, which makes them one Box, and give bins"
        )
    return make_encoding(part)


def _of_number(space: Any) -> StateEncoding:
    first, end = int(space.start), int(space.start) + int(space.n)

    def key(seen: Any) -> Hashable:
        try:
            number = int(seen)
        except (TypeError, ValueError, OverflowError):
            raise _outside(seen, space) from None
        if not first <= number < end or number != seen:
            raise _outside(seen, space)
        return number

    return StateEncoding(key, _itself, (end - first,), (first,), str(space), single=True)


def _of_array(space: Any, spaces: Any) -> StateEncoding:
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

    return StateEncoding(
        key,
        observation,
        tuple(np.ravel(sizes).tolist()),
        tuple(np.ravel(first).tolist()),
        str(space),
    )


def _outside(seen: Any, space: Any) -> InputError:
    return InputError(f"observation {seen!r} does not belong to {space}")


def _merge_shapes(parts: list[StateEncoding]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = tuple(size for part in parts for size in part.shape)
    return shape, tuple(size for part in parts for size in part.first)


def _flat(parts: tuple[Any, ...]) -> list[Any]:
    return [
        value for part in parts for value in (_flat(part) if isinstance(part, tuple) else [part])
    ]


def _itself(key: Any) -> Any:
    return key
