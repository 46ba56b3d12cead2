"""How safe a plan is: its sums with their errors, estimated as far as the data goes."""

from math import isnan, sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, Layers, RunStatistics
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.costs import Influence, estimate_costs
from revar.strategies.flow.tuning import Tuning
from revar.theory.influence import influence
from revar.theory.recursions import backward_values


class Safety(NamedTuple):
    """What is known of a sum, to assess plans by."""

    number: int  # of the limit; the floor on the return comes last
    seen: RunStatistics  # with negative amounts in the place of rewards, but for the return
    discount: float
    known_transitions: bool
    tuning: Tuning


def safety_of(
    task: TaskArrays,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    number: int,
) -> Safety:
    """What is known of the sum of that number.

    What follows a pair without data is taken to lose as much as is usual in all steps of an
    episode, or to end: it must not look better than what is known.
    """
    amounts = task.limits.amounts
    is_return = number == len(amounts)
    mean = statistics.reward_mean.copy() if is_return else -amounts[number]
    usual = np.sum(mean * statistics.visits) / np.sum(statistics.visits)
    mean[statistics.visits == 0] = min(0.0, usual * task.horizon)
    squares, outcome_mean = statistics.reward_squares, statistics.outcome_reward_mean
    if not is_return:
        squares = task.limits.variances[number] * statistics.visits
        outcome_mean = _by_outcome(statistics, mean)
    seen = statistics._replace(
        reward_mean=mean, reward_squares=squares, outcome_reward_mean=outcome_mean
    )
    discount = task.discount if is_return else 1.0
    return Safety(number, seen, discount, known_transitions, tuning)


@compiled
def _by_outcome(statistics: RunStatistics, mean: FloatArray) -> FloatArray:
    """What pairs have in the mean, for each of their outcomes, [slot]."""
    by_outcome = np.zeros(statistics.outcome_reward_mean.size)
    row_start = statistics.outcomes.row_start
    actions = mean.shape[1]
    for s in range(mean.shape[0]):
        for a in range(actions):
            pair = s * actions + a
            for o in range(row_start[pair], row_start[pair + 1]):
                by_outcome[o] = mean[s, a]
    return by_outcome


def assess(
    task: TaskArrays, layers: Layers, limit: Safety, behavior: FloatArray
) -> tuple[float, FloatArray]:
    """How far G(b) - c G(pi) is above the limit, with the standard errors taken off.

    And what one more visit of each pair adds to that, [S, A]: its reward, less what it adds to the
    error, to first order.
    """
    limits = task.limits
    seen, discount = limit.seen, limit.discount
    own = _influence_of(task, layers, seen, discount, behavior)
    target = _influence_of_targets(task, layers, seen, discount)
    share, least = 0.0, 0.0
    if limit.number < limits.most.size:
        least = -limits.most[limit.number]
    elif isnan(limits.share):
        least = limits.floor
    else:
        share = limits.share if target.values[0] >= 0.0 else 2.0 - limits.share
    influences = Influence(
        np.concatenate((own.weights, target.weights)),
        np.concatenate((own.gains, target.gains)),
        np.concatenate((own.futures, target.futures)),
        np.concatenate((own.values, target.values)),
    )
    # Of a behavior that changes with the step, the mean.
    mean = np.zeros((2, *task.policy.shape))
    mean[1] = task.policy
    entered = own.weights[0].sum(axis=1, keepdims=True)
    np.divide(own.weights[0], entered, out=mean[0], where=entered > 0.0)
    asked = task._replace(discount=discount, policies=mean)
    costs = estimate_costs(
        *(asked, influences, np.array([1.0, -share]), seen, limit.known_transitions, limit.tuning)
    )
    errors = costs / np.maximum(seen.visits, 1)
    error = sqrt(np.sum(errors))
    slope = seen.reward_mean.copy()
    apart = own.weights[0] - share * target.weights[0]
    if error > 0.0:
        weighs = apart != 0.0
        slope[weighs] -= limits.quantile * errors[weighs] / (apart[weighs] * error)
    room = own.values[0] - share * target.values[0] - least - limits.quantile * error
    return float(room), slope


def _influence_of_targets(
    task: TaskArrays, layers: Layers, seen: RunStatistics, discount: float
) -> Influence:
    """The same of the target policy; of several, the mean."""
    first = _influence_of(task, layers, seen, discount, task.policies[:1])
    count = len(task.policies)
    if count == 1:
        return first
    weights, gains = first.weights / count, first.gains / count
    futures, values = first.futures / count, first.values / count
    for j in range(1, count):
        other = _influence_of(task, layers, seen, discount, task.policies[j : j + 1])
        weights += other.weights / count
        gains += other.gains / count
        futures += other.futures / count
        values += other.values / count
    return Influence(weights, gains, futures, values)


def _influence_of(
    task: TaskArrays, layers: Layers, seen: RunStatistics, discount: float, behavior: FloatArray
) -> Influence:
    """How G of a behavior [1 or L, S, A] depends on each pair."""
    outcomes = seen.outcomes
    values = backward_values(outcomes, seen.reward_mean, behavior, layers, discount)
    weight, gain = influence(outcomes, task.initial, behavior, values, layers, discount)
    first = 0.0
    for s in range(task.initial.size):
        first += task.initial[s] * values[0, s]
    values[:] = 1.0
    values[-1] = 0.0
    _, future = influence(outcomes, task.initial, behavior, values, layers, discount)
    return Influence(
        weight.reshape((1, *weight.shape)),
        gain.reshape((1, gain.size)),
        future.reshape((1, future.size)),
        np.full(1, first),
    )
