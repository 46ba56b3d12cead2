"""Flow: estimate what every visit is worth, and plan the remaining episodes accordingly."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from revar.compilation import compiled
from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes, RunStatistics
from revar.model.reachability import expand
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.credibility import credible_transitions, doubt, keep_to_policy
from revar.strategies.flow_costs import estimated_costs
from revar.strategies.flow_tuning import EARLY, STUDIED, Tuning
from revar.strategies.rule import CompiledRule, Memory, Path, Question, refresh_frequencies
from revar.strategies.schedule import growing_times, is_due
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies
from revar.theory.flow_steps import accelerated_sweeps, objective_of


@strategies.register("flow")
@dataclass(frozen=True)
class Flow(Strategy):
    """Follow the optimal flow of the estimated model for the episodes that are left.

    Nothing needs to be known but the target policy, the horizon and the discount, and nothing
    needs to be tuned: `tuning` is there for studies. Takes only actions that the target policy
    takes. `known_transitions` says that the true transitions are known to strategy and estimator,
    so that only rewards are learned.
    """

    id: ClassVar[str] = "flow"
    known_transitions: bool = False
    tuning: Tuning = STUDIED

    @property
    def needs_model(self) -> bool:
        """Only where the transitions are known to it."""
        return self.known_transitions

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The optimal behavior for what is left, as far as the statistics tell."""
        observed = statistics.observed(task.states)
        episode = int(observed.initial_count.sum())
        lasts = int(plan_times(episode, self.tuning)[-1]) - episode
        behavior = _without_data(task)
        if episode > 0:
            if self.known_transitions:
                model = task.known_model("flow with known transitions")
                observed = observed._replace(outcomes=model.arrays.outcomes)
            left = self._episodes_left(task, episode)
            _plan_flow(
                Question.of(task, observed, episode + left),
                observed,
                self.known_transitions,
                self.tuning,
                episode,
                behavior,
            )
        first = int(self.tuning.first_visits)
        return Plan(behavior, Selection.FOLLOW, lasts=lasts, visits_first=first)

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:  # noqa: ARG002
        """The same plans at the same times."""
        if task.episodes is None:
            raise InputError("simulating flow needs the number of episodes")
        times = plan_times(task.episodes, self.tuning)
        return CompiledRule(
            memory=Memory.of(_without_data(task), follows=True),
            parameters=np.array([*self.tuning, self.known_transitions, *times]),
            on_episode=_replan,
            known_transitions=self.known_transitions,
        )

    def _episodes_left(self, task: Task, episode: int) -> int:
        """What the budget leaves; without one, as much as a plan ever looks ahead."""
        if task.episodes is None:
            return int(self.tuning.look_ahead * episode) + 10
        return max(task.episodes - episode, 0)


def plan_times(episode: int, tuning: Tuning) -> IntArray:
    """The numbers of finished episodes after which plans are made, to the first past `episode`."""
    return growing_times(
        episode, 1, lambda time: tuning.early_growth if time < EARLY else tuning.growth
    )


def _without_data(task: Task) -> FloatArray:
    """Halfway between the target policy and equal shares of its actions, [L, S, A]."""
    support = (task.policy > 0).astype(np.float64)
    shares = support / support.sum(axis=1, keepdims=True).clip(min=1)
    return np.repeat(0.5 * (task.policy + shares)[None], task.horizon, axis=0)


@compiled
def _plan_flow(
    question: Question,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> None:
    """Overwrite `behavior` [L, S, A] with the plan after `episode` episodes."""
    policy = question.policy
    start, states = expand(statistics.outcomes, question.initial, policy > 0, question.horizon)
    layers = Layers(start, states)
    costs = estimated_costs(question, layers, statistics, known_transitions, tuning, episode)
    for t in range(question.horizon):
        for i in range(start[t], start[t + 1]):
            s = states[i]
            count = 0
            for a in range(policy.shape[1]):
                count += policy[s, a] > 0.0
            for a in range(policy.shape[1]):
                share = 1.0 / count if policy[s, a] > 0.0 else 0.0
                behavior[t, s, a] = 0.5 * (policy[s, a] + share)
    left = float(question.episodes - episode)
    ahead = max(1.0, min(left, tuning.look_ahead * episode + 10.0))
    already = statistics.visits.astype(np.float64)
    ways, prior = statistics.outcomes, 0.0
    if not known_transitions:
        ways, prior = credible_transitions(statistics.outcomes, statistics.visits, policy)
    accelerated_sweeps(
        ways,
        question.initial,
        layers,
        costs,
        already,
        ahead,
        behavior,
        int(min(tuning.sweeps, 3.0 * sqrt(episode))),
        tuning.settled,
    )
    doubted = doubt(prior)
    lacking = doubted * _tried_pairs(statistics.visits, policy) / tuning.many_visits
    if lacking > 1.0:
        gain = _gain(question, ways, layers, costs, already, episode, ahead, behavior)
        doubted *= max(1.0, lacking / gain)
    doubted *= tuning.caution
    if doubted > 0.0:
        keep_to_policy(behavior, layers, policy, statistics.visits, doubted)


@compiled
def _tried_pairs(visits: IntArray, policy: FloatArray) -> int:
    """How many of the target policy's pairs have been visited."""
    count = 0
    for s in range(policy.shape[0]):
        for a in range(policy.shape[1]):
            count += policy[s, a] > 0.0 and visits[s, a] > 0
    return count


@compiled
def _gain(
    question: Question,
    ways: Outcomes,
    layers: Layers,
    costs: FloatArray,
    visits: FloatArray,
    episode: int,
    ahead: float,
    behavior: FloatArray,
) -> float:
    """How many times the error of visits so far and planned the target policy's would be."""
    initial, policy = question.initial, question.policy
    planned = objective_of(ways, initial, layers, costs, visits, ahead, behavior)
    on_policy = np.zeros(behavior.shape)
    on_policy[:] = policy
    nothing = np.zeros(policy.shape)
    instead = objective_of(ways, initial, layers, costs, nothing, episode + ahead, on_policy)
    return max(1.0, instead / planned) if planned > 0.0 else 1.0


@compiled
def _replan(
    question: Question,
    statistics: RunStatistics,
    memory: Memory,
    parameters: FloatArray,
    path: Path,  # noqa: ARG001 - as all rules are called
    steps: int,  # noqa: ARG001 - as all rules are called
    episode: int,
) -> None:
    if not is_due(parameters[13:], episode):
        return
    tuning = Tuning(
        parameters[0],
        parameters[1],
        parameters[2],
        parameters[3],
        parameters[4],
        parameters[5],
        parameters[6],
        parameters[7],
        parameters[8],
        parameters[9],
        parameters[10],
        parameters[11],
    )
    known_transitions = parameters[12] != 0.0
    if not known_transitions:
        refresh_frequencies(statistics)
    _plan_flow(question, statistics, known_transitions, tuning, episode, memory.scores)
    memory.taken[:] = 0
