"""ReVar (Algorithm 1): Theorem 1 with upper confidence bounds in place of what is unknown."""

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np

from revar.compilation import compiled_in_place, inlined
from revar.errors import InputError
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.validation import check_count
from revar.strategies.compiled_rule import (
    CompiledPlan,
    CompiledRule,
    EpisodePath,
    RuleParameters,
    TaskArrays,
    most_episodes,
    refresh_frequencies,
    sample_budget,
)
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies
from revar.theory.recursions import proportion_score, proportion_sweeps


@strategies.register("revar")
@dataclass(frozen=True)
class ReducedVariance(Strategy):
    """Track Theorem 1's proportions for sigma + 2c sqrt(log(SAn(n+1)/delta)/T) and estimated P.

    `confidence_scale` is c, `failure_probability` delta. Plans are made anew after every
    `replan_every` episodes, by Algorithm 2's sweeps. On a tree that re-plans every episode the
    compiled rule updates only the path just taken, which gives the same plan.

    Every action is first taken `initial_visits` times: by default once, and three times for c = 0,
    where nothing else protects a pair whose first rewards happen to agree. (The chance that two
    rewards agree to within 1/K is of order 1/K and would cost as much as the whole error; with
    three it is of order 1/K^2.) A pair below two visits enters its state's normalizer with the
    bound of one visit.
    """

    id: ClassVar[str] = "revar"
    confidence_scale: float = 1.0
    failure_probability: float = 0.05
    replan_every: int = 1
    initial_visits: int | None = None
    known_transitions: bool = False

    def __post_init__(self) -> None:
        check_bound(self.confidence_scale, self.failure_probability, self.initial_visits)
        check_count(self.replan_every, "replan_every")

    @property
    def needs_model(self) -> bool:
        """Only where the transitions are known to it."""
        return self.known_transitions

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """Proportions to track, from the statistics of all pairs."""
        scores = self._plan(task, statistics).scores
        first = first_visits(self.confidence_scale, self.initial_visits)
        return Plan(scores, Selection.TRACK, lasts=self.replan_every, visits_first=first)

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:
        """The same plan, along the path where that is enough."""
        by_path = tree and self.replan_every == 1
        every = self.replan_every
        times = range(every, most_episodes(task) + every, every)  # to the first past the budget
        return CompiledRule(
            self._plan(task, VisitStatistics(task.states, task.actions)),
            RuleParameters.of(
                [self._bonus(task), by_path],
                plan_times=times if every > 1 else (),
                known_transitions=self.known_transitions,
            ),
            on_episode=_replan,
            in_loop=True,
        )

    def _plan(self, task: Task, statistics: VisitStatistics) -> CompiledPlan:
        """Scores, normalizers and upper deviations that follow from the statistics."""
        observed = statistics.run_statistics(task.states)
        outcomes = observed.outcomes
        if self.known_transitions:
            outcomes = task.known_model("revar with known transitions").arrays.outcomes
        plan = CompiledPlan.of(
            np.zeros((1, task.states, task.actions)),
            normalizers=np.zeros(task.states + 1),
            deviation=np.zeros((task.states, task.actions)),
        )
        refresh_deviations(observed, self._bonus(task), plan.deviation)
        proportion_sweeps(
            outcomes,
            plan.deviation,
            task.policy,
            task.discount,
            task.horizon,
            plan.scores[0],
            plan.normalizers,
            plan.scratch,
        )
        return plan

    def _bonus(self, task: Task) -> float:
        return bonus_of_one_visit(self.confidence_scale, self.failure_probability, task, "revar")


def check_bound(scale: float, failure_probability: float, initial_visits: int | None) -> None:
    """Refuse parameters of the upper bound that make no sense."""
    if not 0.0 <= scale < float("inf"):
        raise InputError(f"confidence_scale is {scale}; it must be at least 0")
    if not 0.0 < failure_probability < 1.0:
        raise InputError(
            f"failure_probability is {failure_probability}; it must lie between 0 and 1"
        )
    if initial_visits is not None:
        check_count(initial_visits, "initial_visits")


def first_visits(scale: float, initial_visits: int | None) -> int:
    """As many as asked for; else one where the bound protects a pair, three where it does not."""
    return initial_visits or (1 if scale > 0 else 3)


def bonus_of_one_visit(scale: float, failure_probability: float, task: Task, asker: str) -> float:
    """2c sqrt(log(SAn(n+1)/delta)): what the bound adds to a deviation of one visit."""
    samples = sample_budget(task, asker)
    pairs = task.states * task.actions
    return 2.0 * scale * sqrt(log(pairs * samples * (samples + 1) / failure_probability))


@inlined
def upper_deviation(visits: int, squares: float, bonus: float) -> float:
    """sigma-hat + bonus / sqrt(T); fewer than two visits count as one without spread."""
    if visits < 2:
        return bonus
    return sqrt(squares / (visits - 1)) + bonus / sqrt(visits)


@compiled_in_place
def refresh_deviations(statistics: RunStatistics, bonus: float, deviation: FloatArray) -> None:
    """The upper bound of every pair."""
    visits, squares = statistics.visits, statistics.reward_squares
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            deviation[s, a] = upper_deviation(visits[s, a], squares[s, a], bonus)


@compiled_in_place
def _replan(
    task: TaskArrays,
    statistics: RunStatistics,
    plan: CompiledPlan,
    parameters: RuleParameters,
    path: EpisodePath,
    steps: int,
    episode: int,  # noqa: ARG001
) -> None:
    bonus, by_path = parameters.constants
    known = parameters.known_transitions
    policy, discount = task.policy, task.discount
    scores, normalizers, deviation, scratch, _, _ = plan
    outcomes = statistics.outcomes
    row_start, _, probability = outcomes
    visits, outcome_count = statistics.visits, statistics.outcome_count
    squares = statistics.reward_squares
    states, actions = path
    if by_path:
        for step in range(steps - 1, -1, -1):
            s, a = states[step], actions[step]
            count = visits[s, a]
            deviation[s, a] = upper_deviation(count, squares[s, a], bonus)
            if not known:
                p = s * policy.shape[1] + a
                first, end = row_start[p], row_start[p + 1]
                if end - first == 1:
                    probability[first] = 1.0
                else:
                    for o in range(first, end):
                        probability[o] = outcome_count[o] / count
            # On a tree nothing else below this state has changed.
            scores[0, s, a] = proportion_score(
                outcomes, deviation, policy, normalizers, discount, s, a
            )
            total = 0.0
            for i in range(policy.shape[1]):
                total += scores[0, s, i]
            normalizers[s] = total
    else:
        refresh_deviations(statistics, bonus, deviation)
        if not known:
            refresh_frequencies(statistics)
        proportion_sweeps(
            outcomes, deviation, policy, discount, task.horizon, scores[0], normalizers, scratch
        )
