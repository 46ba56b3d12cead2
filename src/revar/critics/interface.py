"""What critics learn from, what they say, and how they are kept from what they serve.

Episodes fall into FOLDS folds. World j never touches fold j: in it, fold l is served by critics
that were trained without folds j and l, and fold j by critics trained without fold j. Weights of
critics are fitted inside the world, and used on fold j. So what is subtracted from a return was
chosen without it, and its mean is exactly zero.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from revar.model.arrays import FloatArray, IntArray
from revar.model.law import Law
from revar.model.records import in_a_line

FOLDS = 4
LEAST_TO_LEARN = 3  # episodes: critics are trained without two folds, and need one besides

Numbers: TypeAlias = NDArray[np.floating[Any]]  # of single or double precision


def folds_of(episodes: int) -> IntArray:
    """The fold of each of so many episodes: they are dealt in turn."""
    return np.arange(episodes) % FOLDS


@dataclass(frozen=True, eq=False, repr=False)
class Experience:
    """Episodes as critics see them; `inputs` are features of observations."""

    start: IntArray  # [episodes + 1]
    inputs: FloatArray  # [step, D]
    elapsed: FloatArray  # [step] of the horizon: 0 at the first step, below 1
    rewards: FloatArray  # [step]
    scores: FloatArray  # [step, m] with mean zero given the input
    actions: FloatArray  # [step, A]
    noise: FloatArray  # [step, W]
    law: Law
    discount: float
    resets: FloatArray  # [R, D] inputs of first observations that were not played

    __repr__ = in_a_line

    @property
    def folds(self) -> IntArray:
        """The fold of every episode, in turn."""
        return folds_of(self.start.size - 1)

    @property
    def episode_of_step(self) -> IntArray:
        """For each step the place of its episode."""
        return np.repeat(np.arange(self.start.size - 1), np.diff(self.start))

    @property
    def discounts(self) -> FloatArray:
        """What a reward of each step is worth at the start of its episode, [step]."""
        number = np.arange(self.start[-1]) - self.start[self.episode_of_step]
        return np.asarray(self.discount ** number.astype(np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """What one or several critics say in every world, as columns of a stack.

    In world j, step t is served by a critic that has not seen its fold, nor fold j. Advantages are
    sums of scores, so that their mean is zero. A column may be zero where its critic has no say.
    """

    names: tuple[str, ...]  # [C]
    advantages: Numbers  # [world, step, C]
    first_values: Numbers  # [world, episode, C] at first observations
    reset_values: Numbers  # [world, R, C] by the critic that serves fold j of world j
    values: Numbers | None = None  # [world, step, C]; they make the weights more certain
    reset_means: Numbers | None = None  # [world, fold, C] over resets, by who serves that fold

    __repr__ = in_a_line


class ValueFunction(Protocol):
    """Values as a function of inputs: fixed, and not going to learn any more."""

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        """Expected return from here on, [n]."""


class Critic(ValueFunction, Protocol):
    """Values and advantages as functions of inputs."""

    def coefficients(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        """What each score adds to the return, [n, m]: the advantage is their sum over scores."""


class CriticFamily(Protocol):
    """A way to learn critics."""

    @property
    def name(self) -> str:
        """What its columns are called after."""

    def cross_fit(self, experience: Experience, seed: int) -> Columns:
        """Critics for every world, and what they say of the steps that they serve."""

    def fit(self, experience: Experience, seed: int) -> Critic:
        """One critic from all episodes, for later use."""
