"""Uniform collection: every action of the target policy equally often."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.selection import Selection
from revar.strategies.strategy import FOR_SAMPLED, Plan, Strategy, strategies


@strategies.register("uniform")
@dataclass(frozen=True)
class Uniform(Strategy):
    """Actions drawn evenly from those the target policy takes; others teach nothing."""

    id: ClassVar[str] = "uniform"
    estimators: ClassVar[tuple[str, ...]] = FOR_SAMPLED

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:  # noqa: ARG002
        """Equal shares, for good."""
        support = (task.policy > 0).astype(np.float64)
        shares = support / support.sum(axis=1, keepdims=True).clip(min=1)
        return Plan(shares[None], Selection.SAMPLE)
