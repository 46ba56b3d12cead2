"""Observations and actions of any space as rows of numbers, and back."""

from collections.abc import Iterable
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from revar.environments.descriptions import dict_parts, read_space
from revar.environments.stand_ins import known_spaces
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes

MOST_INPUTS = 512  # numbers of one array that critics look at; larger ones are averaged over blocks
MOST_ONE_HOT = 64  # values of a discrete number that critics see apart; others are seen as numbers


class Layout(Protocol):
    """How values of a space become rows of numbers.

    Whole numbers count from 0, whatever the space calls the least of them. Numbers of a Box may
    lie outside its bounds, as those of many environments do at times.
    """

    space: Any
    width: int
    dtype: np.dtype[Any]

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The least and the largest that each number of a row should be, [width] each."""

    def row(self, value: Any) -> NDArray[Any]:
        """A new row, [width]; what has another shape or is no such number is refused."""

    def value(self, row: Any) -> Any:
        """What the environment or a policy knows the row as."""

    def inputs(self, rows: NDArray[Any]) -> FloatArray:
        """What critics look at, [n, inputs]: a function of the row alone."""


def layout_of(space: Any, what: str = "observation") -> Layout:
    """The layout of a space; `what` is what messages call its values."""
    spaces = known_spaces()
    if isinstance(space, spaces.Box):
        return ArrayLayout(space, what)
    if isinstance(space, spaces.Discrete):
        return NumberLayout(space, what)
    if isinstance(space, spaces.MultiDiscrete):
        return NumbersLayout(space, space.nvec, space.start, what)
    if isinstance(space, spaces.MultiBinary):
        return NumbersLayout(space, np.full(space.shape, 2), np.zeros(space.shape, dtype=int), what)
    if isinstance(space, spaces.Tuple):
        return PartsLayout(space, range(len(space.spaces)), space.spaces, what)
    if isinstance(space, spaces.Dict):
        parts = dict_parts(space)
        return PartsLayout(space, parts.keys(), parts.values(), what)
    raise InputError(
        f"{what}s are {space}; they must be Box, Discrete, MultiDiscrete, MultiBinary, or a Tuple "
        f"or Dict of these"
    )


def action_layout(env: Any) -> Layout:
    """Of the actions of an environment, or of several side by side."""
    return layout_of(getattr(env, "single_action_space", None) or env.action_space, "action")


def inputs_of(episodes: Episodes) -> FloatArray:
    """What critics look at in every step, [step, inputs]: features where there are any."""
    if episodes.features is not None:
        return episodes.features
    if episodes.observation_space is None:
        return np.asarray(episodes.observations, dtype=np.float64)
    return layout_of(read_space(episodes.observation_space)).inputs(episodes.observations)


def find_outside(layout: Layout, rows: NDArray[Any]) -> str:
    """A sentence about a number of the rows that lies outside its space; "" if none does.

    Rounding in single precision does not count.
    """
    if not rows.size:
        return ""
    low, high = layout.bounds
    room = 1e-5 * np.maximum(1.0, np.minimum(np.abs(low), np.abs(high)))
    least, most = rows.min(axis=0), rows.max(axis=0)
    outside = (least < low - room) | (most > high + room)
    if not outside.any():
        return ""
    number = int(np.argmax(outside))
    reached = most if most[number] > high[number] + room[number] else least
    return (
        f"number {number} of some is {reached[number]:g}, outside [{low[number]:g}, "
        f"{high[number]:g}] of their space"
    )


def check_finite(rows: NDArray[Any], what: str, place: str) -> None:
    """Refuse rows that hold NaN or an infinity, naming the first number that does."""
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        row, number = np.argwhere(~np.isfinite(rows))[0].tolist()
        raise InputError(
            f"number {number} of the {what} at {place} {row} is {rows[row, number]}; it must be "
            f"finite"
        )


class ArrayLayout:
    """A Box: its numbers in their own type."""

    def __init__(self, space: Any, what: str) -> None:
        self.space = space
        self.shape: tuple[int, ...] = space.shape
        self.width = prod(space.shape)
        self.dtype: np.dtype[Any] = np.dtype(space.dtype)
        self.low, self.high = np.ravel(space.low), np.ravel(space.high)
        self._what = what

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Those of the Box."""
        return self.low.astype(np.float64), self.high.astype(np.float64)

    def row(self, value: Any) -> NDArray[Any]:
        """The numbers of an array."""
        try:
            found = np.array(value, dtype=self.dtype)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{self._what} {value!r} does not belong to {self.space}") from None
        if found.shape != self.shape:
            raise InputError(
                f"an {self._what} has shape {found.shape}; in {self.space} it is {self.shape}"
            )
        whole = found.dtype.kind in "iu"
        if whole and getattr(value, "dtype", None) != self.dtype and (found != value).any():
            raise InputError(f"{self._what} {value!r} does not belong to {self.space}")
        return found.ravel()

    def value(self, row: Any) -> Any:
        """The array."""
        return np.array(row, dtype=self.dtype).reshape(self.shape)

    def inputs(self, rows: NDArray[Any]) -> FloatArray:
        """The numbers, or means over blocks of a large array."""
        shape = list(self.shape)
        while prod(shape) > MOST_INPUTS:
            longest = int(np.argmax(shape))
            shape[longest] = -(-shape[longest] // 2)
        if prod(shape) == self.width:
            return np.asarray(rows, dtype=np.float64)
        return _block_means(rows.reshape(-1, *self.shape), shape)


def _block_means(arrays: NDArray[Any], shape: list[int]) -> FloatArray:
    """Arrays [n, ...] averaged over blocks, so that each has this shape, as rows."""
    found = np.empty((arrays.shape[0], prod(shape)))
    for first in range(0, arrays.shape[0], 256):  # so that few are held as floats
        part = arrays[first : first + 256]
        for axis, size in enumerate(shape, 1):
            if size < part.shape[axis]:
                edges = np.arange(size + 1) * part.shape[axis] // size
                sizes = np.diff(edges).reshape(-1, *(1,) * (part.ndim - axis - 1))
                part = np.add.reduceat(part, edges[:-1], axis=axis, dtype=np.float64) / sizes
        found[first : first + 256] = part.reshape(part.shape[0], -1)
    return found


class NumberLayout:
    """A Discrete space: one number."""

    width = 1

    def __init__(self, space: Any, what: str) -> None:
        self.space = space
        self.start, self.count = int(space.start), int(space.n)
        self.dtype: np.dtype[Any] = np.min_scalar_type(self.count - 1)
        self._what = what

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """From 0 on."""
        return np.zeros(1), np.array([self.count - 1.0])

    def row(self, value: Any) -> NDArray[Any]:
        """The number."""
        try:
            number = int(value) - self.start
        except (TypeError, ValueError, OverflowError):
            number = -1
        if not 0 <= number < self.count or number + self.start != value:
            raise InputError(f"{self._what} {value!r} does not belong to {self.space}")
        return np.array([number], dtype=self.dtype)

    def value(self, row: Any) -> Any:
        """The number as the space calls it."""
        return int(row[0]) + self.start

    def inputs(self, rows: NDArray[Any]) -> FloatArray:
        """The number, one-hot where there are few."""
        return _one_hot(rows, [self.count])


class NumbersLayout:
    """A MultiDiscrete or MultiBinary space: its numbers."""

    def __init__(self, space: Any, counts: NDArray[Any], start: NDArray[Any], what: str) -> None:
        self.space = space
        self.counts, self.start = np.ravel(counts), np.ravel(start)
        self.width = self.counts.size
        self.dtype: np.dtype[Any] = np.min_scalar_type(int(self.counts.max()) - 1)
        self.binary = not hasattr(space, "nvec")
        self._what = what

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """From 0 on."""
        return np.zeros(self.width), self.counts - 1.0

    def row(self, value: Any) -> NDArray[Any]:
        """The numbers."""
        try:
            found = np.asarray(value)
        except ValueError:  # parts of different lengths
            found = np.array(None)
        good = found.shape == self.space.shape and found.dtype.kind in "biuf"
        if good:
            numbers = found.ravel() - self.start
            good = bool(np.all((numbers >= 0) & (numbers < self.counts) & (numbers % 1 == 0)))
        if not good:
            raise InputError(f"{self._what} {value!r} does not belong to {self.space}")
        return np.asarray(numbers, dtype=self.dtype)

    def value(self, row: Any) -> Any:
        """The numbers as the space calls them."""
        numbers = np.asarray(row, dtype=np.int64) + self.start
        return numbers.astype(self.space.dtype).reshape(self.space.shape)

    def inputs(self, rows: NDArray[Any]) -> FloatArray:
        """The numbers, one-hot where there are few."""
        return _one_hot(rows, self.counts.tolist())


def _one_hot(rows: NDArray[Any], counts: list[int]) -> FloatArray:
    columns = [
        rows[:, place : place + 1] == np.arange(count)
        if 2 < count <= MOST_ONE_HOT
        else rows[:, place : place + 1]
        for place, count in enumerate(counts)
    ]
    return np.concatenate(columns, axis=1, dtype=np.float64)


class PartsLayout:
    """A Tuple or a Dict: its parts one after the other."""

    def __init__(self, space: Any, keys: Iterable[Any], parts: Iterable[Any], what: str) -> None:
        self.space = space
        self.keys = tuple(keys)
        if not self.keys:
            raise InputError(f"{what}s are {space}, which has no parts; it must have one or more")
        self.parts = tuple(layout_of(part, what) for part in parts)
        self.width = sum(part.width for part in self.parts)
        self.dtype: np.dtype[Any] = np.result_type(*(part.dtype for part in self.parts))
        self.ends = np.cumsum([part.width for part in self.parts]).tolist()
        self._named = hasattr(space, "keys")
        self._what = what

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Those of the parts, joined."""
        low, high = zip(*(part.bounds for part in self.parts), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def row(self, value: Any) -> NDArray[Any]:
        """The rows of the parts, joined."""
        try:
            values = [value[key] for key in self.keys]
        except (TypeError, LookupError):
            raise InputError(f"{self._what} {value!r} does not belong to {self.space}") from None
        if not self._named and len(value) != len(self.keys):
            raise InputError(f"{self._what} {value!r} does not belong to {self.space}")
        rows = [part.row(each) for part, each in zip(self.parts, values, strict=True)]
        return np.concatenate(rows, dtype=self.dtype)

    def split(self, rows: Any) -> list[Any]:
        """The columns of each part, of a row or of many."""
        return np.split(np.asarray(rows), self.ends[:-1], axis=-1)

    def value(self, row: Any) -> Any:
        """The parts by their keys."""
        values = [part.value(each) for part, each in zip(self.parts, self.split(row), strict=True)]
        return dict(zip(self.keys, values, strict=True)) if self._named else tuple(values)

    def inputs(self, rows: NDArray[Any]) -> FloatArray:
        """The inputs of the parts."""
        parts = zip(self.parts, self.split(rows), strict=True)
        return np.concatenate([part.inputs(each) for part, each in parts], axis=1)
