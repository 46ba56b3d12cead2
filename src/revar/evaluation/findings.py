"""What the table method knows besides the value: statistics of states, limits, alternatives."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, nan
from typing import TYPE_CHECKING

import numpy as np

from revar.estimators.alternatives import (
    Alternatives,
    each_alone,
    find_alternatives,
    on_policy_variances,
)
from revar.evaluation.kept import KeptLimit, impossible_limit, judge_limits
from revar.model.arrays import FloatArray
from revar.model.budget import Budget
from revar.model.limits import Limits
from revar.model.records import in_a_line
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset

if TYPE_CHECKING:
    from revar.evaluation.aggregation import AggregationCheck

TOO_LARGE = 0.5  # of the policy's episodes without data: then the table is too large for them


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TableFindings:
    """What was learned of states and actions, and what other ways to collect would have given."""

    statistics: VisitStatistics  # of all episodes
    task: Task
    method: str = "table"  # and how much of the mean return is mixed with it, and why
    on_policy: bool = False  # all episodes are the policy's own
    limits: Limits = field(default_factory=Limits)  # forbidden pairs are named by state
    aggregation: "AggregationCheck | None" = None  # of bins, where there are any
    aggregation_note: str = ""  # why bins were not checked

    @property
    def caution(self) -> str:
        """What bins may do to the value; "" where there are none."""
        if self.aggregation is not None:
            return self.aggregation.sentence
        return self.aggregation_note and f"bins were not checked: {self.aggregation_note}"

    __repr__ = in_a_line

    def instead_of_table(self, strategy: str, unvisited: float) -> str:
        """What to try where a table is too large for its episodes; "" where that is not so."""
        if unvisited <= TOO_LARGE or strategy == "stored data" or not self.limits.none:
            return ""
        return '; method="critic" plays the policy itself and needs no data of every state'

    @cached_property
    def alternatives(self) -> Alternatives:
        """What on-policy collection would have given for as much of the budget's unit."""
        return find_alternatives(self.task, self.statistics)

    def judge_limits(self, dataset: Dataset, value: float) -> tuple[KeptLimit, ...]:
        """Every limit, with what these episodes came to."""
        return judge_limits(self.limits, dataset, value, self.task.discount)

    def gain(self, error: float) -> float:
        """How many times as much on-policy collection would have to spend for this error."""
        if self.on_policy:
            return 1.0
        if error == 0.0 or not isfinite(error):
            return nan
        return (self.alternatives.on_policy / error) ** 2

    def gain_per_step(self, error: float) -> float:
        """The same in steps, whatever the budget is in."""
        if self.on_policy:
            return 1.0
        if error == 0.0 or not isfinite(error):
            return nan
        return self.alternatives.on_policy_steps(error) / self.alternatives.steps

    @property
    def instead(self) -> str:
        """What an A/B test of policies takes."""
        return "on-policy"

    def how(self, strategy: str) -> str:
        """How episodes were collected, in a few words."""
        return f"strategy {strategy}"

    def variances_alone(self, unit: str) -> FloatArray:
        """The variance of each policy's value, times what is spent on this policy alone, [J]."""
        if unit == "episodes":
            return on_policy_variances(self.task, self.statistics)
        alone = each_alone(self.task, self.statistics)
        if unit == "steps":
            return np.array([each.on_policy_steps(1.0) for each in alone])
        return np.array([each.on_policy_need(1.0) for each in alone])

    def return_variances_alone(self, unit: str) -> FloatArray:
        """The same of the mean returns of these episodes, [J]."""
        task = replace(self.task, budget=None) if unit == "episodes" else self.task
        return np.array([each.monte_carlo_need(1.0) for each in each_alone(task, self.statistics)])

    def rows_of_limits(self, kept: tuple[KeptLimit, ...]) -> list[tuple[str, str]]:
        """The limits as lines of a table."""
        rows = [(limit.title, str(limit)) for limit in kept]
        if not all(limit.kept for limit in kept):
            reason = impossible_limit(self.task, self.statistics)
            rows += [("", reason)] if reason else []
        return rows

    def rows(self, error: float, budget: Budget) -> list[tuple[str, str]]:
        """Whether bins bias, and what on-policy collection would have given, as a table's lines."""
        rows = []
        if self.caution:
            checked = self.caution if self.aggregation is None else str(self.aggregation)
            rows.append(("check of bins", checked))
        if error == 0.0 or not isfinite(self.gain(error)):
            return rows
        instead = self.alternatives
        for name, other, need in (
            ("on-policy instead", instead.on_policy, instead.on_policy_need(error)),
            ("mean return instead", instead.monte_carlo, instead.monte_carlo_need(error)),
        ):
            if isfinite(need):
                needed = f"standard error {other:.3g}; {budget.text(need)} for this error"
                rows.append((name, needed))
        return [*rows, ("bought", self._bought(error, budget))]

    def _bought(self, error: float, budget: Budget) -> str:
        """What collecting as it was done is worth, and if only in episodes, what per step."""
        gain, unit = self.gain(error), budget.unit
        much = "the cost" if unit == "cost" else f"as many {unit}"
        if gain >= 1.05:
            text = f"on-policy would need {gain:.2f} times {much} for this error"
        elif gain > 0.95:
            text = "nothing: on-policy would have given the same error"
        else:
            text = f"less than nothing: on-policy would need {gain:.2f} times {much}"
        if not budget.by_episode:
            return text
        steps = self.gain_per_step(error)
        return f"{text}, {'but ' if steps < 1.0 < gain else ''}{steps:.2f} times as many steps"
