"""ComparisonResult: the values of several policies, their differences, and which is the best."""

from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite
from statistics import mean
from typing import Any, NamedTuple

from revar.errors import InputError
from revar.estimators.estimator import Estimate, JointEstimate
from revar.estimators.ranking import Ranking, Verdict
from revar.evaluation.findings import TableFindings
from revar.evaluation.result import CollectedResult
from revar.evaluation.returns.result import PairedFindings
from revar.evaluation.tables import (
    columns_of_comparison,
    html_of_comparison,
    numbers_of_comparison,
)
from revar.model.arrays import FloatArray
from revar.theory.costs import best_split_variance


class JointCheckpoint(NamedTuple):
    """Estimates of all policies after so many episodes."""

    episodes: int
    estimate: JointEstimate
    spent: float  # in the budget's unit


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ComparisonResult(CollectedResult):
    """What `compare` returns."""

    findings: TableFindings | PairedFindings
    ranking: Ranking
    question: str
    indifference: float | None = None
    checkpoints: tuple[JointCheckpoint, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The policies, in the order they were given in."""
        return self.ranking.names

    @property
    def values(self) -> dict[str, Estimate]:
        """The value of each policy; every interval stands for itself."""
        return self.ranking.values

    @property
    def best(self) -> str:
        """The policy whose estimated value is the largest."""
        return self.names[self.ranking.leader]

    @property
    def differences(self) -> dict[str, Estimate]:
        """By how much the best exceeds each of the others; these intervals hold together."""
        return self.ranking.differences

    @property
    def chances_of_best(self) -> dict[str, float]:
        """The chance that each policy is the best, if errors are jointly normal."""
        return self.ranking.chances_of_best

    @property
    def verdict(self) -> Verdict:
        """Whom the best beats, whom it equals, and who is still open."""
        return self.ranking.verdict(self.indifference)

    @property
    def decided(self) -> bool:
        """Whether the best is known, or that no other differs by more than `indifference`."""
        return self.verdict.decided

    @property
    def confidence(self) -> float:
        """Of intervals and of the verdict."""
        return self.ranking.joint.confidence

    def difference(self, first: str, second: str) -> Estimate:
        """v(first) - v(second), from the errors that both have in common; it stands for itself.

        Parameters
        ----------
        first, second
            Names of policies.
        """
        return self.ranking.joint.difference(
            self._number(first), self._number(second), self.ranking.quantile
        )

    @property
    def target_value(self) -> float:
        """The mean of the values."""
        return mean(each.value for each in self.values.values())

    @cached_property
    def on_policy_episodes(self) -> dict[str, float]:
        """Episodes of an A/B test that tells the best from each other policy equally well.

        Episodes of the two policies, split in the best way, each estimated from its own: by
        certainty equivalence, or by the mean return where there is no table.
        """
        return self._needed("episodes")

    @cached_property
    def on_policy_steps(self) -> dict[str, float]:
        """The same in steps, of which the split is the best."""
        return self._needed("steps")

    @property
    def on_policy_spending(self) -> dict[str, float]:
        """The same in the unit of the budget."""
        if self.budget.by_episode:
            return self.on_policy_episodes
        return self._needed(self.budget.unit)

    @cached_property
    def mean_return_spending(self) -> dict[str, float]:
        """The same in the unit of the budget, where each value is a mean return."""
        return self._split(self.findings.return_variances_alone(self.budget.unit))

    def _needed(self, unit: str) -> dict[str, float]:
        """What the split takes in a unit."""
        return self._split(self.findings.variances_alone(unit))

    def _split(self, variances: FloatArray) -> dict[str, float]:
        """What telling the best from each other policy takes, by the variances [J] of values."""
        needed = {}
        for name, difference in self.differences.items():
            ends = [self.ranking.leader, self._number(name)]
            variance = best_split_variance(variances[ends])
            error = difference.standard_error
            needed[name] = variance / error**2 if 0.0 < error < inf else inf
        return needed

    def __str__(self) -> str:
        text = f"{self.verdict}, {self._source()}"
        return text if self.complete else f"{text} ({self.stopped})"

    def table(self) -> str:
        """The policies, the best first, and below them how they were judged."""
        instead = self.findings.instead
        needs = {f"{instead} {self.budget.unit}": self.on_policy_spending}
        needs[f"{instead} steps"] = self.on_policy_steps
        columns = {
            title: {
                name: f"{amount:,.6g}" if "cost" in title else f"{amount:,.0f}"
                for name, amount in needed.items()
                if isfinite(amount)
            }
            for title, needed in needs.items()
        }
        taken = f"{self.steps:,} steps"
        if self.budget.unit == "cost":
            taken += f", {self.budget.text(self.spent)}"
        if not self.budget.by_episode:
            taken += f" of {self.budget.amount:,.6g}"
        return "\n".join(
            [
                *(self.ranking.table(columns), "", str(self)),
                f"{self.findings.how(self.strategy)}, {self._why()}; {taken}",
                *self._lines_of_mean_returns(),
                *(f"{name} {text}".strip() for name, text in self._rows_of_limits()),
            ]
        )

    def _lines_of_mean_returns(self) -> list[str]:
        """What they would need, where the table is about certainty equivalence."""
        needed = self.mean_return_spending
        parts = [
            f"{self.budget.text(needed[name])} against {name}"
            for name in self.ranking.best_first
            if isfinite(needed.get(name, inf))
        ]
        if not isinstance(self.findings, TableFindings) or not parts:
            return []
        return [f"by mean returns it would take {', '.join(parts)}"]

    def columns(self) -> dict[str, list[Any]]:
        """A row for each policy, the best first."""
        return columns_of_comparison(self)

    def to_dict(self) -> dict[str, Any]:
        """What was found, as plain numbers."""
        return numbers_of_comparison(self)

    def _repr_html_(self) -> str:
        return html_of_comparison(self)

    def plot(self, path: Any = None) -> Any:
        """A forest plot as a matplotlib figure; saved where a path is given.

        Parameters
        ----------
        path
            A file; its ending says which kind.
        """
        from revar.evaluation.plot import plot_comparison  # noqa: PLC0415 - needs matplotlib

        return plot_comparison(self, path)

    def _why(self) -> str:
        if self.stopped == "budget":
            return "the whole budget"
        return "stopped as soon as it was decided" if self.stopped == "decided" else self.stopped

    def _number(self, name: str) -> int:
        if name not in self.names:
            raise InputError(f"there is no policy {name!r}; there are {', '.join(self.names)}")
        return self.names.index(name)
