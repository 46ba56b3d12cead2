"""The law of a policy's actions: what was drawn, and scores of it whose mean is zero.

A policy draws an action from noise of a known law. Scores are functions of that draw with mean
exactly zero at every observation, whatever the policy does there: any sum of them, each times a
number that the observation tells, may be subtracted from a return without changing its mean.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray

MOST_CROSS_TERMS = 15  # products of two numbers of normal noise: those of the first six numbers


@dataclass(frozen=True)
class Categorical:
    """One of `count` actions; its noise is the probabilities of all of them."""

    count: int

    @property
    def noise_width(self) -> int:
        """Numbers of noise: a probability for each action."""
        return self.count

    @property
    def score_width(self) -> int:
        """One less than there are actions: all of them together sum to zero."""
        return self.count - 1

    def scores(self, actions: FloatArray, noise: FloatArray) -> FloatArray:
        """Whether each action was taken, less its probability, [n, count - 1]."""
        taken = actions[:, :1] == np.arange(self.count - 1)
        return np.asarray(taken - noise[:, :-1])


@dataclass(frozen=True)
class Normal:
    """An action that is a function of `count` independent standard normal numbers."""

    count: int

    @property
    def noise_width(self) -> int:
        """The normal numbers."""
        return self.count

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The numbers whose products are scores."""
        every = [(i, j) for j in range(self.count) for i in range(j)]
        return every[:MOST_CROSS_TERMS]

    @property
    def score_width(self) -> int:
        """Each number, its square, and products of two."""
        return 2 * self.count + len(self.pairs)

    def scores(self, actions: FloatArray, noise: FloatArray) -> FloatArray:
        """Hermite polynomials of the noise up to degree 2, each of variance 1, [n, score_width]."""
        del actions
        squares = (noise**2 - 1.0) / np.sqrt(2.0)
        products = [noise[:, i] * noise[:, j] for i, j in self.pairs]
        return np.column_stack([noise, squares, *products])


@dataclass(frozen=True)
class Law:
    """Independent parts that make up an action; without parts nothing is known of the draw."""

    parts: tuple[Categorical | Normal, ...] = ()

    @property
    def noise_width(self) -> int:
        """Numbers of noise in a step."""
        return sum(part.noise_width for part in self.parts)

    @property
    def score_width(self) -> int:
        """Scores of a step."""
        return sum(part.score_width for part in self.parts)

    def scores(self, actions: Any, noise: Any) -> FloatArray:
        """The scores of every step, [n, score_width].

        `actions` has a column for each number of an action; part i of the law reads the columns
        that are its own: one for a categorical part, as many as it has noise for a normal one.
        """
        taken, drawn = np.asarray(actions, dtype=np.float64), np.asarray(noise, dtype=np.float64)
        found = [np.zeros((drawn.shape[0], 0))]
        column = place = 0
        for part in self.parts:
            width = part.noise_width
            found.append(part.scores(taken[:, column:], drawn[:, place : place + width]))
            column += 1 if isinstance(part, Categorical) else part.count
            place += width
        return np.concatenate(found, axis=1)

    def __str__(self) -> str:
        return "+".join(f"{type(part).__name__.lower()} {part.count}" for part in self.parts)

    @classmethod
    def parse(cls, text: str) -> "Law":
        """The law that `str` wrote."""
        kinds: dict[str, type[Categorical] | type[Normal]] = {
            "categorical": Categorical,
            "normal": Normal,
        }
        parts: list[Categorical | Normal] = []
        for piece in text.split("+") if text else ():
            kind, _, count = piece.partition(" ")
            if kind not in kinds or not count.isdigit() or int(count) < 1:
                raise InputError(f"{piece!r} is no law of actions")
            parts.append(kinds[kind](int(count)))
        return cls(tuple(parts))
