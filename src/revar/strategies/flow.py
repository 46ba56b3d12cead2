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
from revar.strategies.plug_in import filled_variance, pooled_variance, reward_noise
from revar.strategies.rule import CompiledRule, Memory, Path, Question, Seen, refresh_frequencies
from revar.strategies.schedule import growing_times, is_due
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies
from revar.theory.flow_steps import accelerated_sweeps
from revar.theory.recursions import backward_values, influence


class Tuning(NamedTuple):
    """The constants of the rule, as the study in docs/flow.md chose them.

    None of them has a unit, so that multiplying all rewards by a number changes no decision.
    """

    growth: float = 2.0  # a plan is made anew when the episodes have grown by this factor
    early_growth: float = 1.5  # and by this one below 50 episodes
    sweeps: float = 30.0  # for a plan, at most; 3 sqrt(k) after few episodes k
    prior_visits: float = 4.0  # below so many visits the pooled reward variance fills in
    bonus: float = 1.0  # times sqrt(2 log(k+1) / (T+1)), on the standard deviation
    novelty: float = 1.0  # times the rate at which visits showed outcomes new for their pair
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
    """C(s,a) = Var[W R + g(S')] of the estimated model, on the safe side where data is scarce.

    It is the noise of the reward within outcomes plus the spread of what the outcomes are worth,
    and carries a bonus for few visits. Outcomes not seen yet add to it: with nothing known all
    variances are equal, and then the target policy itself is the optimal behavior.
    """
    policy, discount = question.policy, question.discount
    states, actions = policy.shape
    values = backward_values(believed, seen.reward_mean, policy, layers, discount)
    weight, gain = influence(believed, question.initial, policy, values, layers, discount)
    by_outcome = not known_transitions
    pooled = pooled_variance(believed, seen, by_outcome)
    costs = np.zeros((states, actions))
    typical = 0.0
    mass = 0.0
    for s in range(states):
        for a in range(actions):
            if weight[s, a] == 0.0:
                continue
            count = seen.visits[s, a]
            squares, free = reward_noise(believed, seen, by_outcome, s, a)
            cost = weight[s, a] ** 2 * filled_variance(squares, free, pooled, tuning.prior_visits)
            if count > 1 and by_outcome:
                mean, square = _worth(believed, seen, weight, gain, s, a)
                cost += max(0.0, square - mean * mean) * count / (count - 1)
            bonus = tuning.bonus * sqrt(2.0 * log(episode + 1.0) / (count + 1.0))
            costs[s, a] = cost * (1.0 + bonus) ** 2
            typical += costs[s, a] / weight[s, a]
            mass += weight[s, a]
    if typical == 0.0:
        return weight**2
    if by_outcome:
        values[:] = 1.0
        values[-1] = 0.0
        _, future = influence(believed, question.initial, policy, values, layers, discount)
        novelty = tuning.novelty * _novelty(believed, seen)
        _add_unseen(believed, seen, policy, weight, gain, future, typical / mass, novelty, costs)
    return costs


@compiled
def _worth(
    believed: Outcomes, seen: Seen, weight: FloatArray, gain: FloatArray, state: int, action: int
) -> tuple[float, float]:
    """Mean and mean square, over the outcomes seen, of what one is worth: W r + g."""
    p = state * weight.shape[1] + action
    count = max(1, seen.visits[state, action])
    mean = 0.0
    square = 0.0
    for o in range(believed.row_start[p], believed.row_start[p + 1]):
        share = seen.outcome_count[o] / count
        worth = weight[state, action] * seen.outcome_reward_mean[o] + gain[o]
        mean += share * worth
        square += share * worth * worth
    return mean, square


@compiled
def _novelty(believed: Outcomes, seen: Seen) -> float:
    """How often a visit shows an outcome that is new for its pair: about this / visits.

    The concentration of Chinese restaurants: of T visits about 1 + novelty * log(T) showed
    something new. One more of each is taken to have been seen, so that there is a first guess.
    """
    states, actions = seen.visits.shape
    new = 1.0
    chances = 1.0
    for s in range(states):
        for a in range(actions):
            count = seen.visits[s, a]
            if count > 1:
                _, free = reward_noise(believed, seen, True, s, a)
                new += count - free - 1
                chances += log(float(count))
    return new / chances


@compiled
def _add_unseen(
    believed: Outcomes,
    seen: Seen,
    policy: FloatArray,
    weight: FloatArray,
    gain: FloatArray,
    future: FloatArray,
    typical: float,
    novelty: float,
    costs: FloatArray,
) -> None:
    """Add what outcomes that were not seen yet may change.

    Another action of the same state has shown where it may lead: what an outcome is worth there
    differs by the action's share in the target policy alone. Or it leads elsewhere, and changes
    what follows as much as is typical.
    """
    states, actions = policy.shape
    for s in range(states):
        visits = 0.0
        mean = 0.0
        square = 0.0
        for a in range(actions):
            if policy[s, a] > 0.0 and seen.visits[s, a] > 0:
                first, second = _worth(believed, seen, weight, gain, s, a)
                visits += seen.visits[s, a]
                mean += seen.visits[s, a] * first / policy[s, a]
                square += seen.visits[s, a] * second / policy[s, a] ** 2
        for a in range(actions):
            if weight[s, a] == 0.0 or seen.visits[s, a] == 0:
                continue
            p = s * actions + a
            reach = 0.0
            for o in range(believed.row_start[p], believed.row_start[p + 1]):
                reach = max(reach, future[o])
            own, _ = _worth(believed, seen, weight, gain, s, a)
            share = policy[s, a]
            apart = share**2 * square / visits - 2.0 * share * own * mean / visits + own * own
            chance = novelty / (seen.visits[s, a] + novelty)
            costs[s, a] += chance * max(typical * reach**2, apart)


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
