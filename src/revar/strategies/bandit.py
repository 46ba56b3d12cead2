"""Strategies that take every state for a bandit of its own: Bandit ReVar and CB-Var."""

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np

from revar.compilation import compiled_in_place, inlined
from revar.errors import InputError
from revar.model.arrays import RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.compiled_rule import (
    CompiledPlan,
    CompiledRule,
    EpisodePath,
    RuleParameters,
    TaskArrays,
    sample_budget,
)
from revar.strategies.revar import (
    bonus_of_one_visit,
    check_bound,
    first_visits,
    refresh_deviations,
    upper_deviation,
)
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
        observed = statistics.run_statistics(task.states)
        deviation = np.empty(task.policy.shape)
        refresh_deviations(observed, self._bonus(task), deviation)
        first = first_visits(self.confidence_scale, self.initial_visits)
        scores = task.policy * deviation
        return Plan(scores[None], Selection.TRACK, lasts=1, visits_first=first)

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:  # noqa: ARG002
        """Only pairs of the episode just played have a new bound."""
        nothing = VisitStatistics(task.states, task.actions)
        return CompiledRule(
            CompiledPlan.of(self.plan(task, nothing).scores),
            RuleParameters.of([self._bonus(task)]),
            on_episode=_refresh_path,
        )

    def _bonus(self, task: Task) -> float:
        return bonus_of_one_visit(self.confidence_scale, self.failure_probability, task, "bandit")


@compiled_in_place
def _refresh_path(
    task: TaskArrays,
    statistics: RunStatistics,
    plan: CompiledPlan,
    parameters: RuleParameters,
    path: EpisodePath,
    steps: int,
    episode: int,  # noqa: ARG001
) -> None:
    (bonus,) = parameters.constants
    for step in range(steps):
        s, a = path.states[step], path.actions[step]
        plan.scores[0, s, a] = task.policy[s, a] * upper_deviation(
            statistics.visits[s, a], statistics.reward_squares[s, a], bonus
        )


@strategies.register("cb-var")
@dataclass(frozen=True)
class ConfidenceBoundVariance(Strategy):
    """The paper's bandit baseline, an empirical Bernstein index.

    argmax (2 eta + 4 eta^2) sqrt(2 pi sigma^2 log(SAn(n+1)) / T) + 7 log(SAn(n+1)) / (3 T), where
    `reward_bound` is eta; the paper does not give its value, 1 is assumed.
    """

    id: ClassVar[str] = "cb-var"
    reward_bound: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.reward_bound < float("inf"):
            raise InputError(f"reward_bound is {self.reward_bound}; it must be positive, finite")

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The index of every pair, for one step: it moves with every visit."""
        observed = statistics.run_statistics(task.states)
        constants = self._constants(task)
        scores = np.zeros((1, task.states, task.actions))
        for s, a in np.argwhere(observed.visits > 0):
            visits, squares = observed.visits[s, a], observed.reward_squares[s, a]
            scores[0, s, a] = _index(task.policy[s, a], visits, squares, *constants)
        return Plan(scores, Selection.LARGEST, lasts=0)

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:  # noqa: ARG002
        """Only the pair just visited has a new index."""
        return CompiledRule(
            CompiledPlan.of(np.zeros((1, task.states, task.actions))),
            RuleParameters.of(self._constants(task)),
            on_step=_refresh_last,
        )

    def _constants(self, task: Task) -> tuple[float, float]:
        """2 eta + 4 eta^2 and log(SAn(n+1))."""
        samples = sample_budget(task, "cb-var")
        logarithm = log(task.states * task.actions * samples * (samples + 1))
        return 2 * self.reward_bound + 4 * self.reward_bound**2, logarithm


@inlined
def _index(
    probability: float, visits: int, squares: float, constant: float, logarithm: float
) -> float:
    variance = squares / (visits - 1) if visits > 1 else 0.0
    spread = constant * sqrt(2.0 * probability * variance * logarithm / visits)
    return float(spread + 7.0 * logarithm / (3.0 * visits))


@compiled_in_place
def _refresh_last(
    task: TaskArrays,
    statistics: RunStatistics,
    plan: CompiledPlan,
    parameters: RuleParameters,
    path: EpisodePath,
    steps: int,
    episode: int,  # noqa: ARG001
) -> None:
    constant, logarithm = parameters.constants
    s, a = path.states[steps - 1], path.actions[steps - 1]
    visits, squares = statistics.visits[s, a], statistics.reward_squares[s, a]
    plan.scores[0, s, a] = _index(task.policy[s, a], visits, squares, constant, logarithm)
