"""What results rest on; EvaluationResult: a policy's value and its interval."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from revar.datasets.files import Conditions, save_dataset
from revar.estimators.alternatives import Alternatives
from revar.estimators.estimator import Estimate
from revar.evaluation.amounts import spent_on
from revar.evaluation.findings import TableFindings
from revar.evaluation.kept import KeptLimit
from revar.evaluation.returns.result import ReturnFindings
from revar.evaluation.returns.saving import FittedCritics
from revar.evaluation.tables import columns_of_value, html_of_value, numbers_of_value
from revar.model.budget import Budget
from revar.model.limits import Limits
from revar.model.records import HasColumns
from revar.model.statistics import VisitStatistics
from revar.model.task import Task


@dataclass(frozen=True)
class Checkpoint:
    """The estimate after so many episodes."""

    episodes: int  # collected now; the estimate also counts those of a prior dataset
    estimate: Estimate
    spent: float  # in the budget's unit


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CollectedResult(HasColumns):
    """What a result rests on, whatever was asked.

    `findings` are what only one method knows.
    """

    dataset: Any  # the episodes collected now: a Dataset, or Episodes where there is no table
    findings: Any  # TableFindings, ReturnFindings, or of several policies PairedFindings
    strategy: str
    seed: int
    stopped: str  # "budget", "half-width", "decided", "interrupted" or "error"
    budget: Budget  # what could be spent
    prior_episodes: int = 0
    conditions: Conditions | None = None  # what resuming needs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    @property
    def method(self) -> str:
        """How the value was estimated: "table", "critic" or "mean".

        Where a table was asked for and is thin, the mean return errs less: then it says so.
        """
        return str(self.findings.method)

    @property
    def episodes(self) -> int:
        """How many were collected now; those of a prior dataset are not among them."""
        return len(self.dataset)

    @property
    def steps(self) -> int:
        """How many steps these episodes have."""
        return int(self.dataset.rewards.size)

    @property
    def spent(self) -> float:
        """What these episodes have taken from the budget, in its unit."""
        return spent_on(self.dataset, self.budget)

    @property
    def target_value(self) -> float:
        """What a floor on the return is a share of: of several policies, the mean of the values."""
        raise NotImplementedError

    @property
    def table_findings(self) -> TableFindings:
        """What only the table method knows."""
        if not isinstance(self.findings, TableFindings):
            raise AttributeError(
                f"method {self.method!r} has no table of states: no statistics, task, limits or "
                f"alternatives"
            )
        return self.findings

    @property
    def return_findings(self) -> ReturnFindings:
        """What only methods "critic" and "mean" know."""
        if not isinstance(self.findings, ReturnFindings):
            raise AttributeError(f"method {self.method!r} has no returns, resets or critics")
        return self.findings

    @property
    def statistics(self) -> VisitStatistics:
        """Of all episodes, by state and action."""
        return self.table_findings.statistics

    @property
    def task(self) -> Task:
        """What was asked, over the states that were met."""
        return self.table_findings.task

    @property
    def limits(self) -> Limits:
        """What collection was not to do; forbidden pairs are named by state."""
        return self.table_findings.limits

    @property
    def alternatives(self) -> Alternatives:
        """What on-policy collection would have given for as much of the budget's unit."""
        return self.table_findings.alternatives

    @property
    def kept(self) -> tuple[KeptLimit, ...]:
        """Every limit, with what the episodes collected now came to."""
        if not isinstance(self.findings, TableFindings):
            return ()
        return self.findings.judge_limits(self.dataset, self.target_value)

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
        if not self.budget.by_episode:
            text += f" ({self.budget.text(self.spent)})"
        if self.prior_episodes:
            text += f" and {self.prior_episodes:,} earlier ones"
        return text

    def _rows_of_spending(self, why: str) -> list[tuple[str, str]]:
        """What was collected, what it took, and why it ended there."""
        by_episode = self.budget.by_episode
        rows = [("episodes", f"{self.episodes:,}, {why}" if by_episode else f"{self.episodes:,}")]
        if self.prior_episodes:
            rows.append(("earlier episodes", f"{self.prior_episodes:,}"))
        rows.append(("steps", f"{self.steps:,}"))
        if not by_episode:
            amount = f"{self.budget.amount:,.6g}"
            rows.append(("spent", f"{self.budget.text(self.spent)} of {amount}, {why}"))
        return rows

    def _rows_of_limits(self) -> list[tuple[str, str]]:
        if not isinstance(self.findings, TableFindings):
            return []
        return self.findings.rows_of_limits(self.kept)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EvaluationResult(CollectedResult):
    """What `evaluate` returns."""

    findings: TableFindings | ReturnFindings
    estimate: Estimate
    quantile: float  # the interval is value +- quantile * standard_error
    checkpoints: tuple[Checkpoint, ...]  # the last one is `estimate`
    half_width_wanted: float | None = None

    @property
    def value(self) -> float:
        """The policy's estimated value."""
        return self.estimate.value

    @property
    def target_value(self) -> float:
        """The value itself."""
        return self.value

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
        return self.estimate.reach(self.quantile)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval; it allows for every checkpoint that could have been the last.

        Where every reward is 0 or 1 it stays between 0 and what a 1 at every step would give. It is
        moved there and not cut: of something rare more may have been missed than was seen.
        """
        low, high = self.value - self.half_width, self.value + self.half_width
        if isinstance(self.findings, TableFindings) and np.isin(self.dataset.rewards, (0, 1)).all():
            most = float((self.task.discount ** np.arange(self.task.horizon)).sum())
            moved = 0.0 if self.estimate.unrewarded else max(0.0, -low) - max(0.0, high - most)
            return max(0.0, low + moved), min(most, high + moved)
        return low, high

    @property
    def gain(self) -> float:
        """How many times as much plain collection would have to spend for this error.

        Against on-policy collection, and with critics against the mean return. In the unit of the
        budget: episodes, steps, or cost. Of on-policy episodes alone it is 1.
        """
        return self.findings.gain(self.standard_error)

    @property
    def gain_per_step(self) -> float:
        """The same in steps, whatever the budget is in."""
        return self.findings.gain_per_step(self.standard_error)

    @property
    def return_findings(self) -> ReturnFindings:
        """What only methods "critic" and "mean" know."""
        if isinstance(self.findings, TableFindings):
            raise AttributeError("method 'table' has no returns of whole episodes, and no critic")
        return self.findings

    @property
    def critic(self) -> FittedCritics:
        """Critics of all episodes, for the next evaluation: `critics=[result.critic]`."""
        return self.return_findings.critic

    def save_critic(self, path: str | Path) -> None:
        """Write the critic (.npz), for the next evaluation: `critics=[path]`.

        Parameters
        ----------
        path
            A file that ends in .npz.
        """
        self.critic.save(path)

    def __str__(self) -> str:
        low, high = self.interval
        text = (
            f"value {self.value:.4g}, {self.confidence:.0%} interval [{low:.4g}, {high:.4g}] "
            f"{self._source()}"
        )
        if self.unvisited_probability > 0:
            text += f"; {self.unvisited_probability:.2%} of the policy's episodes rest on no data"
        if isinstance(self.findings, TableFindings) and self.half_width == inf:
            text += self.findings.instead_of_table(self.strategy, self.unvisited_probability)
        if self.standard_error == 0.0:
            text += "; nothing varied so far, which does not show that nothing can"
        if self.estimate.unrewarded:
            text += ": a first reward is taken to be 1 and to have been missed"
        if self.findings.caution:
            text += f"; {self.findings.caution}"
        if not self.complete:
            text += f" ({self.stopped})"
        return text

    def table(self) -> str:
        """The result in a few lines, with what plain collection would have given."""
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def rows(self) -> list[tuple[str, str]]:
        """The lines of the table: names and texts."""
        low, high = self.interval
        rows = [
            ("value", f"{self.value:.6g}"),
            ("standard error", f"{self.standard_error:.3g}"),
            (f"{self.confidence:.0%} interval", f"[{low:.6g}, {high:.6g}]"),
        ]
        if isinstance(self.findings, TableFindings):
            return [
                *rows,
                *self._rows_of_spending(self._why()),
                ("states met", f"{self.task.states:,}"),
                ("without data", f"{self.unvisited_probability:.2%} of the policy's episodes"),
                ("strategy", self.strategy),
                ("estimate", self.method),
                *self._rows_of_limits(),
                *self.findings.rows(self.standard_error, self.budget),
            ]
        return [
            *rows,
            *self.findings.rows_of_mean_return(self.quantile),
            *self._rows_of_spending(self._why()),
            *self.findings.rows(self.standard_error, self.budget.unit),
        ]

    def columns(self) -> dict[str, list[Any]]:
        """A row for each checkpoint."""
        return columns_of_value(self)

    def to_dict(self) -> dict[str, Any]:
        """What was found, as plain numbers."""
        return numbers_of_value(self)

    def _repr_html_(self) -> str:
        return html_of_value(self)

    def plot(self, path: Any = None) -> Any:
        """The interval as it shrank, as a matplotlib figure; saved where a path is given.

        Parameters
        ----------
        path
            A file; its ending says which kind.
        """
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
