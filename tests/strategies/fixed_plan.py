"""A strategy that follows one given plan, and what it asks for in given circumstances."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from revar import Task, VisitStatistics
from revar.model.budget import Budget
from revar.model.trajectory import ENDED
from revar.simulation.plain import PlainRun
from revar.strategies import Plan, Strategy


@dataclass(frozen=True, eq=False)
class FixedPlan(Strategy):
    """Whatever has been seen, the same plan."""

    id: ClassVar[str] = "fixed-plan"
    fixed: Plan

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        return self.fixed


def run_in_one_state(plan: Plan, policy: ArrayLike, visits: ArrayLike, seed: int = 0) -> PlainRun:
    """A run whose only state has been visited so often, action by action."""
    shares = np.atleast_2d(np.asarray(policy, dtype=np.float64))
    statistics = VisitStatistics(1, shares.shape[1])
    for action, count in enumerate(np.asarray(visits).tolist()):
        for _ in range(count):
            statistics.record_step(0, action, 0.0, ENDED)
    task = Task(shares, 1, budget=Budget(100))
    return PlainRun(FixedPlan(plan), task, statistics, np.random.default_rng(seed))


def asked(
    plan: Plan, policy: ArrayLike, visits: ArrayLike, times: int = 1, seed: int = 0
) -> NDArray[np.int64]:
    """How often each action is asked for when the question is repeated in that situation."""
    run = run_in_one_state(plan, policy, visits, seed)
    actions = [run.act(0, 0)[0] for _ in range(times)]
    return np.bincount(actions, minlength=np.size(policy))
