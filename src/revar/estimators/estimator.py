"""What an estimator is, what it returns, and where estimators are found."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

from revar.errors import InputError
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.registry import Registry


@dataclass(frozen=True)
class Estimate:
    """A policy's estimated value, how sure of it one may be, and what it rests on."""

    value: float
    standard_error: float  # infinite while the data cannot tell
    episodes: int
    unvisited_probability: float = 0.0  # target-policy episodes that meet a pair without data
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise InputError(f"confidence is {self.confidence}; it must lie between 0 and 1")

    @property
    def interval(self) -> tuple[float, float]:
        """The normal confidence interval, value +- z * standard_error."""
        reach = NormalDist().inv_cdf(0.5 + self.confidence / 2.0) * self.standard_error
        return self.value - reach, self.value + reach

    def __str__(self) -> str:
        low, high = self.interval
        text = (
            f"value {self.value:.6g}, {self.confidence:.0%} interval [{low:.6g}, {high:.6g}] "
            f"from {self.episodes} episodes"
        )
        if self.unvisited_probability > 0:
            text += f"; {self.unvisited_probability:.2%} of the policy's episodes rest on no data"
        return text


class Estimator(ABC):
    """Turns data into an estimate; raises where the data does not meet what it needs."""

    id: ClassVar[str]
    needs_episodes: ClassVar[bool] = True  # whole episodes with propensities, not statistics
    least_episodes: ClassVar[int] = 1

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
