"""What an estimator is, what it returns, and where estimators are found."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, isfinite
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.question import combined_variances
from revar.model.records import in_a_line
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.model.validation import as_floats, check_confidence
from revar.registry import Registry


def normal_quantile(confidence: float) -> float:
    """z of the interval value +- z * standard_error that a normal error stays in."""
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


def together(confidence: float, count: int) -> float:
    """The confidence of each of `count` intervals that hold together (Bonferroni's inequality)."""
    return 1.0 - (1.0 - confidence) / count


@dataclass(frozen=True)
class Estimate:
    """A policy's estimated value, how sure of it one may be, and what it rests on."""

    value: float
    standard_error: float  # infinite while the data cannot tell
    episodes: int
    unvisited_probability: float = 0.0  # target-policy episodes that meet a pair without data
    confidence: float = 0.95
    quantile: float | None = None  # of the interval; None stands for the normal one
    unrewarded: bool = False  # no reward but 0 has come yet

    def __post_init__(self) -> None:
        check_confidence(self.confidence)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval, value +- quantile * standard_error."""
        quantile = self.quantile
        if quantile is None:
            quantile = normal_quantile(self.confidence)
        reach = self.reach(quantile)
        return self.value - reach, self.value + reach

    def reach(self, quantile: float) -> float:
        """Half the length of the interval with that quantile.

        What has not come in n episodes comes in at most 1 - (1 - confidence)^(1/n) of them. So far
        it reaches at least where no reward has come yet: a first one is taken to be 1.
        """
        if not isfinite(self.standard_error):
            return inf
        missed = 0.0
        if self.unrewarded and self.episodes > 0:
            missed = 1.0 - (1.0 - self.confidence) ** (1.0 / self.episodes)
        return max(quantile * self.standard_error, missed)

    def __str__(self) -> str:
        low, high = self.interval
        text = (
            f"value {self.value:.6g}, {self.confidence:.0%} interval [{low:.6g}, {high:.6g}] "
            f"from {self.episodes} episodes"
        )
        if self.unvisited_probability > 0:
            text += f"; {self.unvisited_probability:.2%} of the policy's episodes rest on no data"
        return text


# Draws of the joint normal law by which the best policy is told.
BEST_DRAWS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class JointEstimate:
    """The estimated values of several policies, and how their errors go together."""

    values: FloatArray  # [J]
    covariance: FloatArray  # [J, J]
    episodes: int
    unvisited_probability: FloatArray  # [J] by policy, as in `Estimate`
    confidence: float = 0.95
    mean_of: int | None = None  # episodes, of each policy at least, where values are mean returns
    # [J] of the steps, those in pairs that always did the same, in few visits, where others vary
    silent_share: FloatArray | None = None
    method: str = "table"  # and how much of the mean return is mixed with it, and why
    unrewarded: bool = False  # no reward but 0 has come yet

    __repr__ = in_a_line

    def value_of(self, policy: int, quantile: float | None = None) -> Estimate:
        """The value of one of the policies, by its number."""
        return self.combination(np.eye(self.values.size)[policy], quantile)

    def difference(self, first: int, second: int, quantile: float | None = None) -> Estimate:
        """By how much the value of one policy exceeds that of another."""
        rows = np.eye(self.values.size)
        return self.combination(rows[first] - rows[second], quantile)

    def combination(self, coefficients: Any, quantile: float | None = None) -> Estimate:
        """A linear combination of the values, with the error that their errors leave in it."""
        row = as_floats(coefficients, "coefficients")
        if row.shape != self.values.shape or not np.isfinite(row).all():
            raise InputError(
                f"coefficients are {row.tolist()}; there must be a finite number for each of "
                f"{self.values.size} policies"
            )
        return Estimate(
            float(row @ self.values),
            float(np.sqrt(combined_variances(row[None], self.covariance)[0])),
            self.episodes,
            float(self.unvisited_probability[row != 0].max(initial=0.0)),
            self.confidence,
            quantile,
            self.unrewarded,
        )

    def simultaneous(self, coefficients: Any) -> list[Estimate]:
        """Combinations [Q, J] whose intervals hold together (by Bonferroni's inequality)."""
        rows = np.atleast_2d(as_floats(coefficients, "coefficients"))
        quantile = normal_quantile(together(self.confidence, len(rows)))
        return [self.combination(row, quantile) for row in rows]

    def chances_of_best(self) -> FloatArray:
        """The chance that each policy is the best, if errors are jointly normal, [J].

        Equal values share it.
        """
        count = self.values.size
        if not np.isfinite(self.covariance).all():
            return np.full(count, 1.0 / count)
        sizes, directions = np.linalg.eigh(self.covariance)
        draws = np.random.default_rng(0).standard_normal((BEST_DRAWS, count))
        spread = draws * np.sqrt(sizes.clip(min=0.0)) @ directions.T  # [draw, J]
        drawn = self.values + spread
        # What differs by rounding alone is equal: of a zero eigenvalue 1e-16 may be left.
        near = 1e-6 * np.sqrt(self.covariance.diagonal().max())
        leads = drawn >= drawn.max(axis=1, keepdims=True) - near
        return np.asarray((leads / leads.sum(axis=1, keepdims=True)).mean(axis=0))


class Estimator(ABC):
    """Turns data into an estimate; raises where the data does not meet what it needs."""

    id: ClassVar[str]
    needs_episodes: ClassVar[bool] = True  # whole episodes with propensities, not statistics
    least_episodes: ClassVar[int] = 1
    folds: ClassVar[int] = 1  # episodes are dealt to them in turn, and held out fold by fold

    @abstractmethod
    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """The task's policy value, from the data."""


estimators: Registry[type[Estimator]] = Registry("estimator", "revar.estimators")


def find_estimator(estimator: str | Estimator) -> Estimator:
    """The estimator itself, or the one of that id with its defaults."""
    if isinstance(estimator, str):
        return estimators.find(estimator)()
    if not isinstance(estimator, Estimator):
        raise InputError(
            f"estimator is {estimator!r}; it must be an id (one of {', '.join(estimators.ids())}) "
            f"or an Estimator"
        )
    return estimator


def episodes_of(data: Dataset | VisitStatistics, task: Task, asker: str) -> Dataset:
    """The data as whole episodes, for estimators that cannot work from statistics."""
    if not isinstance(data, Dataset):
        raise InputError(f"{asker} needs whole episodes (a Dataset), not visit statistics")
    if len(data) == 0:
        raise InputError(f"{asker} needs at least one episode")
    longest = int((data.start[1:] - data.start[:-1]).max())
    if longest > task.horizon:
        raise InputError(f"an episode has {longest} steps; the horizon is {task.horizon}")
    if data.actions.max() >= task.actions:
        raise InputError(
            f"action {data.actions.max()} in the data; the policy has {task.actions} actions"
        )
    largest = max(int(data.states.max()), int(data.successors.max()))
    if largest >= task.states:
        raise InputError(f"state {largest} in the data; the policy covers {task.states} states")
    return data
