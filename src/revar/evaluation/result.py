"""What results rest on; EvaluationResult: a policy's value and its interval."""

from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

from revar.datasets.files import Conditions, save_dataset
from revar.estimators.alternatives import Alternatives, find_alternatives
from revar.estimators.estimator import Estimate
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset


@dataclass(frozen=True)
class Checkpoint:
    """The estimate after so many episodes."""

    episodes: int  # collected now; the estimate also counts those of a prior dataset
    estimate: Estimate


@dataclass(frozen=True, eq=False, kw_only=True)
class CollectedResult:
    """What a result rests on, whatever was asked."""

    dataset: Dataset  # the episodes collected now
    statistics: VisitStatistics  # of all episodes
    task: Task
    strategy: str
    seed: int
    stopped: str  # "budget", "half-width", "decided", "interrupted" or "error"
    prior_episodes: int = 0
    conditions: Conditions | None = None  # what resuming needs

    @property
    def episodes(self) -> int:
        """How many were collected now; those of a prior dataset are not among them."""
        return len(self.dataset)

    @property
    def complete(self) -> bool:
        """Whether the collection ended as it was meant to."""
        return self.stopped in ("budget", "half-width", "decided")

    def save(self, path: str | Path) -> None:
        """Write the episodes (.npz or .parquet), so that the collection can be resumed."""
        save_dataset(self.dataset, path, conditions=self.conditions)

    def _source(self) -> str:
        """How many episodes there are."""
        text = f"from {self.episodes:,} episode{'' if self.episodes == 1 else 's'}"
        if self.prior_episodes:
            text += f" and {self.prior_episodes:,} earlier ones"
        return text


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluationResult(CollectedResult):
    """What `evaluate` returns."""

    estimate: Estimate
    quantile: float  # the interval is value +- quantile * standard_error
    checkpoints: tuple[Checkpoint, ...]  # the last one is `estimate`
    half_width_wanted: float | None = None

    @property
    def value(self) -> float:
        """The policy's estimated value."""
        return self.estimate.value

    @property
    def standard_error(self) -> float:
        """Of the value; infinite while the data cannot tell."""
        return self.estimate.standard_error

    @property
    def unvisited_probability(self) -> float:
        """The share of the target policy's episodes that meet a pair without data."""
        return self.estimate.unvisited_probability

    @property
    def confidence(self) -> float:
        """Of the interval."""
        return self.estimate.confidence

    @property
    def half_width(self) -> float:
        """Half the interval's length."""
        return self.quantile * self.standard_error if isfinite(self.standard_error) else inf

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval; it allows for every checkpoint that could have been the last."""
        return self.value - self.half_width, self.value + self.half_width

    @cached_property
    def alternatives(self) -> Alternatives:
        """What on-policy collection would have given with as many episodes."""
        return find_alternatives(self.task, self.statistics)

    @property
    def gain(self) -> float:
        """How many times as many on-policy episodes would have been needed for this error."""
        if self.standard_error == 0.0 or not isfinite(self.standard_error):
            return nan
        return (self.alternatives.on_policy / self.standard_error) ** 2

    def __str__(self) -> str:
        low, high = self.interval
        text = (
            f"value {self.value:.4g}, {self.confidence:.0%} interval [{low:.4g}, {high:.4g}] "
            f"{self._source()}"
        )
        if self.unvisited_probability > 0:
            text += f"; {self.unvisited_probability:.2%} of the policy's episodes rest on no data"
        if self.standard_error == 0.0:
            text += "; nothing varied so far, which does not show that nothing can"
        if not self.complete:
            text += f" ({self.stopped})"
        return text

    def table(self) -> str:
        """The result in a few lines, with what on-policy collection would have given."""
        low, high = self.interval
        rows = [
            ("value", f"{self.value:.6g}"),
            ("standard error", f"{self.standard_error:.3g}"),
            (f"{self.confidence:.0%} interval", f"[{low:.6g}, {high:.6g}]"),
            ("episodes", f"{self.episodes:,}, {self._why()}"),
            ("states met", f"{self.task.states:,}"),
            ("without data", f"{self.unvisited_probability:.2%} of the policy's episodes"),
            ("strategy", self.strategy),
        ]
        if self.prior_episodes:
            rows.insert(4, ("earlier episodes", f"{self.prior_episodes:,}"))
        if isfinite(self.gain):
            rows += [
                ("on-policy instead", f"standard error {self.alternatives.on_policy:.3g}"),
                ("mean return instead", f"standard error {self.alternatives.monte_carlo:.3g}"),
                ("bought", self._bought()),
            ]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def plot(self, path: Any = None) -> Any:
        """The interval as it shrank, as a matplotlib figure; saved where a path is given."""
        from revar.evaluation.plot import plot_result  # noqa: PLC0415 - needs matplotlib

        return plot_result(self, path)

    def _why(self) -> str:
        if self.stopped == "half-width":
            return f"enough for a half-width of {self.half_width_wanted:g}"
        if self.stopped == "budget":
            if self.half_width_wanted is not None and self.half_width > self.half_width_wanted:
                return f"not enough for a half-width of {self.half_width_wanted:g}"
            return "the whole budget"
        return self.stopped

    def _bought(self) -> str:
        gain = self.gain
        if gain >= 1.05:
            return f"on-policy would need {gain:.2f} times as many episodes for this error"
        if gain > 0.95:
            return "nothing: on-policy would have given the same error"
        return f"less than nothing: on-policy would need {gain:.2f} times as many episodes"
