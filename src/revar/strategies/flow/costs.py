"""What a visit is worth: flow's estimate of the one-step costs, from little data."""

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, Layers, RunStatistics
from revar.model.moments import reward_noise
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.estimated_model import filled_variance, pooled_noise
from revar.strategies.flow.tuning import Tuning
from revar.theory.recursions import backward_values, influence


class Worth(NamedTuple):
    """What the outcomes seen are worth, W r + g: means and mean squares."""

    mean: FloatArray  # [S, A]
    square: FloatArray  # [S, A]
    state_mean: FloatArray  # [S] over all actions, as if each were the target policy's only one
    state_square: FloatArray  # [S]


@compiled
def estimate_costs(
    task: TaskArrays,
    layers: Layers,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
) -> FloatArray:
    """C(s,a) = Var[W R + g(S')] of the estimated model, on the safe side where data is scarce.

    It is the noise of the reward within outcomes plus the spread of what the outcomes are worth,
    and carries a bonus for few visits. Outcomes not seen yet add to it: with nothing known all
    variances are equal, and then the target policy itself is the optimal behavior.
    """
    policy, discount = task.policy, task.discount
    outcomes = statistics.outcomes
    values = backward_values(outcomes, statistics.reward_mean, policy, layers, discount)
    weight, gain = influence(outcomes, task.initial, policy, values, layers, discount)
    by_outcome = not known_transitions
    pooled = pooled_noise(statistics, by_outcome)
    costs = np.zeros(policy.shape)
    worth = _worth(statistics, policy, weight, gain)
    if by_outcome:
        costs = _spread(statistics, policy, weight, worth, tuning.likeness)
    typical = 0.0
    mass = 0.0
    for s in range(policy.shape[0]):
        for a in range(policy.shape[1]):
            if weight[s, a] == 0.0:
                continue
            costs[s, a] += weight[s, a] ** 2 * filled_variance(
                statistics, by_outcome, s, a, pooled, tuning.prior_visits
            )
            bonus = tuning.bonus * sqrt(2.0 * log(episode + 1.0) / (statistics.visits[s, a] + 1.0))
            costs[s, a] *= (1.0 + bonus) ** 2
            typical += costs[s, a] / weight[s, a]
            mass += weight[s, a]
    if typical == 0.0:
        return weight**2
    if by_outcome:
        values[:] = 1.0
        values[-1] = 0.0
        _, future = influence(outcomes, task.initial, policy, values, layers, discount)
        novelty = tuning.novelty * _novelty(statistics)
        _add_unseen(statistics, policy, weight, worth, future, typical / mass, novelty, costs)
    return costs


@compiled
def _worth(
    statistics: RunStatistics, policy: FloatArray, weight: FloatArray, gain: FloatArray
) -> Worth:
    states, actions = policy.shape
    row_start = statistics.outcomes.row_start
    mean = np.zeros((states, actions))
    square = np.zeros((states, actions))
    state_mean = np.zeros(states)
    state_square = np.zeros(states)
    for s in range(states):
        visits = 0
        for a in range(actions):
            count = statistics.visits[s, a]
            if count == 0:
                continue
            p = s * actions + a
            for o in range(row_start[p], row_start[p + 1]):
                share = statistics.outcome_count[o] / count
                worth = weight[s, a] * statistics.outcome_reward_mean[o] + gain[o]
                mean[s, a] += share * worth
                square[s, a] += share * worth * worth
            if policy[s, a] > 0.0:
                visits += count
                state_mean[s] += count * mean[s, a] / policy[s, a]
                state_square[s] += count * square[s, a] / policy[s, a] ** 2
        state_mean[s] /= max(1, visits)
        state_square[s] /= max(1, visits)
    return Worth(mean, square, state_mean, state_square)


@compiled
def _spread(
    statistics: RunStatistics, policy: FloatArray, weight: FloatArray, worth: Worth, likeness: float
) -> FloatArray:
    """The variance of what an outcome is worth, [S, A].

    A few visits that happened to go the same way must not make a pair look certain, for then it
    would not be visited again: what it shows is filled up, as if by `likeness` visits, with what
    is usual. Usual is a share of the spread over all actions of the state, the same everywhere.
    """
    spread = np.zeros(policy.shape)
    usual = np.zeros(policy.shape)
    shown = 0.0
    possible = 0.0
    for s in range(policy.shape[0]):
        everywhere = max(0.0, worth.state_square[s] - worth.state_mean[s] ** 2)
        for a in range(policy.shape[1]):
            count = statistics.visits[s, a]
            if weight[s, a] > 0.0 and count > 1:
                own = max(0.0, worth.square[s, a] - worth.mean[s, a] ** 2)
                spread[s, a] = own * count / (count - 1)
                usual[s, a] = policy[s, a] ** 2 * everywhere
                shown += spread[s, a] / weight[s, a]
                possible += usual[s, a] / weight[s, a]
    share = min(1.0, shown / possible) if possible > 0.0 else 0.0
    for s in range(policy.shape[0]):
        for a in range(policy.shape[1]):
            count = statistics.visits[s, a]
            if usual[s, a] > 0.0:
                filled = count * spread[s, a] + likeness * share * usual[s, a]
                spread[s, a] = filled / (count + likeness)
    return spread


@compiled
def _novelty(statistics: RunStatistics) -> float:
    """How often a visit shows an outcome that is new for its pair: about this / visits.

    The concentration of a Chinese restaurant process: of T visits about 1 + novelty * log(T) showed
    something new. One more of each is taken to have been seen, so that there is a first guess.
    """
    states, actions = statistics.visits.shape
    new = 1.0
    chances = 1.0
    for s in range(states):
        for a in range(actions):
            count = statistics.visits[s, a]
            if count > 1:
                _, free = reward_noise(statistics, True, s, a)
                new += count - free - 1
                chances += log(float(count))
    return new / chances


@compiled
def _add_unseen(
    statistics: RunStatistics,
    policy: FloatArray,
    weight: FloatArray,
    worth: Worth,
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
    row_start = statistics.outcomes.row_start
    for s in range(states):
        for a in range(actions):
            if weight[s, a] == 0.0 or statistics.visits[s, a] == 0:
                continue
            p = s * actions + a
            reach = 0.0
            for o in range(row_start[p], row_start[p + 1]):
                reach = max(reach, future[o])
            own = worth.mean[s, a]
            share = policy[s, a]
            cross = 2.0 * share * own * worth.state_mean[s]
            apart = share**2 * worth.state_square[s] - cross + own * own
            chance = novelty / (statistics.visits[s, a] + novelty)
            costs[s, a] += chance * max(typical * reach**2, apart)
