"""What a visit is worth: flow's estimate of the one-step costs, from little data."""

from math import log
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, compiled_in_place
from revar.model.arrays import FloatArray, IntArray, Layers, RunStatistics
from revar.model.tables import dot
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.estimated_model import PooledNoise, filled_variance, pooled_noise
from revar.strategies.flow.tuning import Tuning
from revar.theory.gap_errors import errors_of_actions
from revar.theory.gaps import FilledValues, filled_values, known_values, tried_policy
from revar.theory.influence import influence
from revar.theory.preference import correct_for_preference


class Influence(NamedTuple):
    """How the values of the policies depend on each pair's reward and outcomes."""

    weights: FloatArray  # [J, S, A]
    gains: FloatArray  # [J, slot]
    futures: FloatArray  # [J, slot] the weight of all steps after an outcome
    values: FloatArray  # [J]


class Worth(NamedTuple):
    """What the outcomes seen are worth to a combination, W r + g: means and mean squares."""

    mean: FloatArray  # [S, A]
    square: FloatArray  # [S, A]
    everywhere_mean: FloatArray  # [S, A] of all outcomes of the state, had this action led there
    everywhere_square: FloatArray  # [S, A]


def estimate_influence(
    task: TaskArrays, layers: Layers, statistics: RunStatistics, known_transitions: bool
) -> tuple[Influence, FilledValues]:
    """The influences in the estimated model, and the values of the policies' mean."""
    outcomes, discount = statistics.outcomes, task.discount
    count, states, _ = task.policies.shape
    weights = np.zeros(task.policies.shape)
    gains = np.zeros((count, outcomes.successor.size))
    futures = np.zeros((count, outcomes.successor.size))
    first_values = np.zeros(count)
    going_on = np.zeros((task.horizon + 1, states + 1))
    going_on[:-1] = 1.0
    for j in range(count):
        policy = task.policies[j]
        if known_transitions:
            found = known_values(statistics, task.initial, policy, layers, discount)
            weights[j], gains[j] = found.weights, found.gains
        else:
            tried = tried_policy(policy, statistics.visits)
            found = filled_values(statistics, task.initial, policy, tried, layers, discount)
            _share_out(
                *(outcomes.row_start, policy, tried, found.weights, found.gains, found.unknown),
                *(weights[j], gains[j]),
            )
            _, futures[j] = influence(
                *(outcomes, task.initial, task.policies[j : j + 1], going_on, layers, discount)
            )
        first_values[j] = dot(task.initial, found.table[0])
    if count > 1 and not known_transitions:
        tried = tried_policy(task.policy, statistics.visits)
        found = filled_values(statistics, task.initial, task.policy, tried, layers, discount)
    return Influence(weights, gains, futures, first_values), found


@compiled_in_place
def _share_out(
    row_start: IntArray,
    policy: FloatArray,
    tried: FloatArray,
    tried_weights: FloatArray,
    tried_gains: FloatArray,
    unknown: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
) -> None:
    """What tried actions stand in for is what the others will weigh once they are tried.

    A state in which none was tried, for which others stand in, will weigh what falls on it.
    """
    states, actions = policy.shape
    for s in range(states):
        entered = 0.0
        for a in range(actions):
            entered += tried_weights[s, a]
        if entered == 0.0:
            entered = unknown[s]
        for a in range(actions):
            weights[s, a] = entered * policy[s, a]
            if tried[s, a] > 0.0:
                p = s * actions + a
                own = policy[s, a] / tried[s, a]
                for o in range(row_start[p], row_start[p + 1]):
                    gains[o] = own * tried_gains[o]


def estimate_costs(
    task: TaskArrays,
    influences: Influence,
    row: FloatArray,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
) -> FloatArray:
    """C(s,a) = Var[W R + g(S')] of the estimated model, on the safe side where data is scarce.

    W and g are those of the combination `row` [J] of values. The cost is the noise of the reward
    within outcomes plus the spread of what the outcomes are worth. Outcomes not seen yet add to it.
    All are 0 where nothing has varied.
    """
    weight = combine(row, influences.weights)
    # What both policies of a difference need weighs little in it. What is typical of all pairs is
    # told by how much they weigh in either.
    size = combine(np.abs(row), influences.weights)
    by_outcome = not known_transitions
    pooled = pooled_noise(statistics, by_outcome)
    costs = np.zeros(size.shape)
    worth = _worth(statistics, task.policies, influences, row)
    if by_outcome:
        costs = _spread(statistics, worth, size, tuning.likeness)
    typical, mass = _add_noise(
        statistics, by_outcome, size, weight, pooled, tuning.prior_visits, costs
    )
    if by_outcome and typical > 0.0:
        novelty = _novelty(
            statistics.outcomes.row_start, statistics.outcome_count, statistics.visits
        )
        future = combine(np.abs(row), influences.futures)
        _add_unseen(statistics, size, worth, future, typical / mass, novelty, costs)
    return costs


@compiled_in_place
def _add_noise(
    statistics: RunStatistics,
    by_outcome: bool,
    size: FloatArray,
    weight: FloatArray,
    pooled: PooledNoise,
    prior_visits: float,
    costs: FloatArray,
) -> tuple[float, float]:
    """Add what rewards vary by; the sums of costs in units of `size`, and of `size`."""
    typical = 0.0
    mass = 0.0
    for s in range(size.shape[0]):
        for a in range(size.shape[1]):
            if size[s, a] == 0.0:
                continue
            costs[s, a] += weight[s, a] ** 2 * filled_variance(
                statistics, by_outcome, s, a, pooled, prior_visits
            )
            typical += costs[s, a] / size[s, a]
            mass += size[s, a]
    return typical, mass


def least_seen(found: FilledValues, visits: IntArray) -> FloatArray:
    """What is at stake where nothing has varied yet, [S, A]: nobody knows, of what was seen least.

    Where rewards vary unseen, error is in proportion to the squared weight.
    """
    size = np.maximum(found.weights, found.untried)
    least = np.min(np.where(size > 0.0, visits, visits.max()))
    return np.where(visits == least, size * size, 0.0)


def gap_errors(
    task: TaskArrays,
    layers: Layers,
    statistics: RunStatistics,
    found: FilledValues,
    costs: FloatArray,
) -> FloatArray:
    """What each pair without data adds to the squared error while it is filled, [S, A].

    What an action does differently everywhere adds up over the states in which it was not tried. Of
    several policies it is taken to be what one visit would leave.
    """
    if task.policies.shape[0] > 1:
        return np.where(statistics.visits == 0, costs, 0.0)
    errors = _errors_while_filling(task.policy, statistics.visits, found.weights, costs)
    corrected = correct_for_preference(
        *(statistics, task.initial, task.policy, found, errors, layers, task.discount, False)
    )
    apart = errors_of_actions(statistics, task.policy, corrected, errors)
    return _errors_of_filling(found.untried, apart.alone, apart.common)


@compiled
def _errors_while_filling(
    policy: FloatArray, visits: IntArray, weights: FloatArray, costs: FloatArray
) -> FloatArray:
    """What each pair with data adds to the squared error, standing in for others, [S, A]."""
    errors = np.zeros(costs.shape)
    for s in range(costs.shape[0]):
        entered = 0.0
        for a in range(costs.shape[1]):
            entered += weights[s, a]
        for a in range(costs.shape[1]):
            if visits[s, a] > 0 and policy[s, a] > 0.0:
                larger = weights[s, a] / (entered * policy[s, a]) if entered > 0.0 else 0.0
                errors[s, a] = larger**2 * costs[s, a] / visits[s, a]
    return errors


@compiled
def _errors_of_filling(untried: FloatArray, alone: FloatArray, common: FloatArray) -> FloatArray:
    """What pairs of those weights add, by what their actions may do differently, [S, A]."""
    gaps = np.zeros(untried.shape)
    for a in range(untried.shape[1]):
        together = 0.0
        for s in range(untried.shape[0]):
            together += untried[s, a]
        together *= common[a] ** 2
        for s in range(untried.shape[0]):
            gaps[s, a] = untried[s, a] * (untried[s, a] * alone[a] ** 2 + together)
    return gaps


def combine(row: FloatArray, tables: FloatArray) -> FloatArray:
    """The sum of tables [J, ...], each times its number in `row` [J]."""
    combined = np.zeros(tables.shape[1:])
    for j in range(row.size):
        combined += row[j] * tables[j]
    return combined


@compiled
def _worth(
    statistics: RunStatistics, policies: FloatArray, influences: Influence, row: FloatArray
) -> Worth:
    """To a policy an outcome is worth its share in the policy, times what the state makes of it.

    So the outcomes of one action tell what they would be worth to the others.
    """
    count, states, actions = policies.shape
    worth = Worth(
        np.zeros((states, actions)),
        np.zeros((states, actions)),
        np.zeros((states, actions)),
        np.zeros((states, actions)),
    )
    everywhere_mean, everywhere_square = worth.everywhere_mean, worth.everywhere_square
    moments = np.zeros((count, count + 1))
    seen = np.zeros((count, count + 1))
    scaled = np.zeros(count)
    for s in range(states):
        for j in range(count):
            for k in range(count + 1):
                moments[j, k] = seen[j, k] = 0.0
        _add_outcomes(statistics, policies, influences, row, s, worth, moments, seen, scaled)
        for j in range(count):
            for k in range(count + 1):
                moments[j, k] /= max(seen[j, k], 1.0)
        for a in range(actions):
            for j in range(count):
                scale = row[j] * policies[j, s, a]
                if scale != 0.0:
                    everywhere_mean[s, a] += scale * moments[j, count]
                    for k in range(count):
                        both = scale * row[k] * policies[k, s, a]
                        everywhere_square[s, a] += both * moments[j, k]
    return worth


@compiled
def _add_outcomes(
    statistics: RunStatistics,
    policies: FloatArray,
    influences: Influence,
    row: FloatArray,
    state: int,
    worth: Worth,
    moments: FloatArray,
    seen: FloatArray,
    scaled: FloatArray,
) -> None:
    """The mean and square of each pair of a state, and sums over it of what outcomes are worth.

    `moments` [J, J + 1] gets products of two policies, and in the last column what is worth to one;
    `seen` counts visits by actions that the policies take. `scaled` [J] is room.
    """
    count, _, actions = policies.shape
    row_start, visits = statistics.outcomes.row_start, statistics.visits
    weights, gains = influences.weights, influences.gains
    for a in range(actions):
        if visits[state, a] == 0:
            continue
        pair = state * actions + a
        for o in range(row_start[pair], row_start[pair + 1]):
            times = float(statistics.outcome_count[o])
            reward = statistics.outcome_reward_mean[o]
            total = 0.0
            for j in range(count):
                own = weights[j, state, a] * reward + gains[j, o]
                total += row[j] * own
                share = policies[j, state, a]
                scaled[j] = own / share if share > 0.0 else 0.0
            worth.mean[state, a] += times * total / visits[state, a]
            worth.square[state, a] += times * total * total / visits[state, a]
            for j in range(count):
                if policies[j, state, a] > 0.0:
                    moments[j, count] += times * scaled[j]
                    seen[j, count] += times
                    for k in range(count):
                        if policies[k, state, a] > 0.0:
                            moments[j, k] += times * scaled[j] * scaled[k]
                            seen[j, k] += times


@compiled
def _spread(
    statistics: RunStatistics, worth: Worth, size: FloatArray, likeness: float
) -> FloatArray:
    """The variance of what an outcome is worth, [S, A].

    A few visits that happened to go the same way must not make a pair look certain, for then it
    would not be visited again: what it shows is filled up, as if by `likeness` visits, with what
    is usual. Usual is a share of the spread over all actions of the state, the same everywhere. A
    pair without data may lead wherever its state was seen to lead.
    """
    spread = np.zeros(size.shape)
    usual = np.zeros(size.shape)
    shown = 0.0
    possible = 0.0
    for s in range(size.shape[0]):
        for a in range(size.shape[1]):
            count = statistics.visits[s, a]
            if size[s, a] == 0.0:
                continue
            everywhere = worth.everywhere_square[s, a] - worth.everywhere_mean[s, a] ** 2
            usual[s, a] = max(0.0, everywhere)
            if count > 1:
                own = max(0.0, worth.square[s, a] - worth.mean[s, a] ** 2)
                spread[s, a] = own * count / (count - 1)
                shown += spread[s, a] / size[s, a]
                possible += usual[s, a] / size[s, a]
    share = min(1.0, shown / possible) if possible > 0.0 else 0.0
    for s in range(size.shape[0]):
        for a in range(size.shape[1]):
            count = statistics.visits[s, a]
            if count == 0:
                spread[s, a] = usual[s, a]
            else:
                filled = count * spread[s, a] + likeness * share * usual[s, a]
                spread[s, a] = filled / (count + likeness)
    return spread


@compiled_in_place
def _novelty(row_start: IntArray, outcome_count: IntArray, visits: IntArray) -> float:
    """How often a visit shows an outcome that is new for its pair: about this / visits.

    The concentration of a Chinese restaurant process: of T visits about 1 + novelty * log(T) showed
    something new. One more of each is taken to have been seen, so that there is a first guess.
    """
    states, actions = visits.shape
    new = 1.0
    chances = 1.0
    for s in range(states):
        for a in range(actions):
            if visits[s, a] > 1:
                pair = s * actions + a
                seen = 0
                for o in range(row_start[pair], row_start[pair + 1]):
                    seen += outcome_count[o] > 0
                new += seen - 1
                chances += log(float(visits[s, a]))
    return new / chances


@compiled
def _add_unseen(
    statistics: RunStatistics,
    size: FloatArray,
    worth: Worth,
    future: FloatArray,
    typical: float,
    novelty: float,
    costs: FloatArray,
) -> None:
    """Add what outcomes that were not seen yet may change.

    Another action of the same state has shown where it may lead. Or it leads elsewhere, and
    changes what follows as much as is typical.
    """
    states, actions = size.shape
    row_start = statistics.outcomes.row_start
    for s in range(states):
        for a in range(actions):
            if size[s, a] == 0.0 or statistics.visits[s, a] == 0:
                continue
            p = s * actions + a
            reach = 0.0
            for o in range(row_start[p], row_start[p + 1]):
                reach = max(reach, future[o])
            own = worth.mean[s, a]
            cross = 2.0 * own * worth.everywhere_mean[s, a]
            apart = worth.everywhere_square[s, a] - cross + own * own
            chance = novelty / (statistics.visits[s, a] + novelty)
            costs[s, a] += chance * max(typical * reach**2, apart)
