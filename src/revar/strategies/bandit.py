"""Bandit ReVar: every state a bandit of its own, without a look at what follows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from revar.compilation import compiled_in_place
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.reduced_variance import (
    bonus_of_one_visit,
    check_bound,
    first_visits,
    refresh_deviations,
    upper_deviation,
)
from revar.strategies.rule import CompiledRule, Memory, Path, Question
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies


@strategies.register("bandit")
@dataclass(frozen=True)
class BanditReducedVariance(Strategy):
    """Track pi times the upper confidence bound on sigma in every state: no look-ahead.

    Carpentier, Munos and Antos (2015), "Adaptive Strategy for Stratified Monte Carlo Sampling"
    (MC-UCB), with a state's actions as strata. The bound and its parameters are ReVar's; on a
    bandit the two are one strategy. The estimator is the stratified mean, which is certainty
    equivalence.
    """

    id: ClassVar[str] = "bandit"
    confidence_scale: float = 1.0
    failure_probability: float = 0.05
    initial_visits: int | None = None

    def __post_init__(self) -> None:
        check_bound(self.confidence_scale, self.failure_probability, self.initial_visits)

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """Shares of every pair, from its own rewards alone, for one episode."""
        observed = statistics.observed(task.states)
        deviation = np.empty(task.policy.shape)
        refresh_deviations(observed.visits, observed.reward_squares, self._bonus(task), deviation)
        first = first_visits(self.confidence_scale, self.initial_visits)
        scores = task.policy * deviation
        return Plan(scores[None], Selection.TRACK, lasts=1, visits_first=first)

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:  # noqa: ARG002
        """Only pairs of the episode just played have a new bound."""
        nothing = VisitStatistics(task.states, task.actions)
        memory = Memory.of(self.plan(task, nothing).scores)
        return CompiledRule(memory, np.array([self._bonus(task)]), on_episode=_refresh_path)

    def _bonus(self, task: Task) -> float:
        return bonus_of_one_visit(self.confidence_scale, self.failure_probability, task, "bandit")


@compiled_in_place
def _refresh_path(
    question: Question,
    statistics: RunStatistics,
    memory: Memory,
    parameters: FloatArray,
    path: Path,
    steps: int,
    episode: int,  # noqa: ARG001
) -> None:
    for step in range(steps):
        s, a = path.states[step], path.actions[step]
        memory.scores[0, s, a] = question.policy[s, a] * upper_deviation(
            statistics.visits[s, a], statistics.reward_squares[s, a], parameters[0]
        )
