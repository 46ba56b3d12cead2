"""Flow: estimate what every visit is worth, and plan the remaining episodes accordingly."""

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes
from revar.model.reachability import expand
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.plug_in import filled_variance, pooled_variance
from revar.strategies.rule import CompiledRule, Memory, Path, Question, Seen, refresh_frequencies
from revar.strategies.schedule import growing_times, is_due
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies
from revar.theory.flow_steps import accelerated_sweeps
from revar.theory.recursions import backward_values, influence, pair_costs


class Tuning(NamedTuple):
    """The constants of the rule, as the study in docs/flow.md chose them.

    None of them has a unit, so that multiplying all rewards by a number changes no decision.
    """

    growth: float = 2.0  # a plan is made anew when the episodes have grown by this factor
    early_growth: float = 1.5  # and by this one below 50 episodes
    sweeps: float = 30.0  # for a plan, at most; 3 sqrt(k) after few episodes k
    prior_visits: float = 4.0  # below so many visits the pooled reward variance fills in
    variance_bonus: float = 1.0  # times sqrt(2 log(k+1) / (T+1)), on the standard deviation
    unseen_outcomes: float = 0.5  # times the typical variance / (T+1): successors not seen yet
    look_ahead: float = 2.0  # a plan is made for at most so many times the episodes so far
    first_visits: float = 2.0  # every action goes first so often: one visit shows no variance


STUDIED = Tuning()
EARLY = 50  # episodes


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
            believed = observed.outcomes
            if self.known_transitions:
                believed = task.known_model("flow with known transitions")._outcomes
            left = self._episodes_left(task, episode)
            _plan_flow(
                Question.of(task, observed, episode + left),
                believed,
                Seen.of(observed),
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
    believed: Outcomes,
    seen: Seen,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> None:
    """Overwrite `behavior` [L, S, A] with the plan after `episode` episodes."""
    policy = question.policy
    start, states = expand(believed, question.initial, policy > 0, question.horizon)
    layers = Layers(start, states)
    costs = _estimated_costs(question, believed, layers, seen, known_transitions, tuning, episode)
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
    accelerated_sweeps(
        believed,
        question.initial,
        layers,
        costs,
        seen.visits.astype(np.float64),
        max(1.0, min(left, tuning.look_ahead * episode + 10.0)),
        behavior,
        int(min(tuning.sweeps, 3.0 * sqrt(episode))),
    )


@compiled
def _estimated_costs(
    question: Question,
    believed: Outcomes,
    layers: Layers,
    seen: Seen,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
) -> FloatArray:
    """C(s,a) of the estimated model, on the safe side where data is scarce.

    The reward's part shrinks to the pooled variance below `prior_visits` visits and carries a
    bonus; the transition's part carries Bessel's correction. Successors not seen yet add to the
    variance of what may follow: with nothing known all variances are equal, and then the target
    policy itself is the optimal behavior.
    """
    policy, discount = question.policy, question.discount
    states, actions = policy.shape
    values = backward_values(believed, seen.reward_mean, policy, layers, discount)
    weight, gain = influence(believed, question.initial, policy, values, layers, discount)
    # What the value would change if every step but the last led to one unit more.
    values[:] = 1.0
    values[-1] = 0.0
    _, future = influence(believed, question.initial, policy, values, layers, discount)
    pooled = pooled_variance(seen)
    nothing = np.zeros((states, actions))
    moves = pair_costs(believed, weight, gain, nothing, seen.outcome_reward_mean, known_transitions)
    costs = np.zeros((states, actions))
    typical = 0.0
    mass = 0.0
    for s in range(states):
        for a in range(actions):
            if weight[s, a] == 0.0:
                continue
            count = seen.visits[s, a]
            variance = filled_variance(
                count, seen.reward_squares[s, a], pooled, tuning.prior_visits
            )
            bonus = tuning.variance_bonus * sqrt(2.0 * log(episode + 1.0) / (count + 1.0))
            costs[s, a] = variance * (weight[s, a] * (1.0 + bonus)) ** 2
            if count > 1:
                costs[s, a] += moves[s, a] * count / (count - 1)
            typical += costs[s, a] / weight[s, a]
            mass += weight[s, a]
    typical = typical / mass if mass > 0.0 else 0.0
    for s in range(states):
        for a in range(actions):
            if typical == 0.0:
                costs[s, a] = weight[s, a] ** 2
            elif not known_transitions:
                p = s * actions + a
                reach = 0.0
                for o in range(believed.row_start[p], believed.row_start[p + 1]):
                    reach = max(reach, future[o])
                unseen = tuning.unseen_outcomes * typical / (seen.visits[s, a] + 1.0)
                costs[s, a] += unseen * reach**2
    return costs


@compiled
def _replan(
    question: Question,
    believed: Outcomes,
    seen: Seen,
    memory: Memory,
    parameters: FloatArray,
    path: Path,  # noqa: ARG001
    steps: int,  # noqa: ARG001
    episode: int,
) -> None:
    if not is_due(parameters[9:], episode):
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
    )
    known_transitions = parameters[8] != 0.0
    if not known_transitions:
        refresh_frequencies(believed, seen.visits, seen.outcome_count)
    _plan_flow(question, believed, seen, known_transitions, tuning, episode, memory.scores)
    memory.taken[:] = 0
