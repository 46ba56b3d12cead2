"""Plans that keep limits on sums, with confidence, where the model has to be estimated.

A floor on the return, and a limit on a sum of amounts, ask that some G(b) is at least a number, or
a share of what the target policy has: G(b) - c G(pi) >= least. Here G is estimated, and has an
error; a plan is safe when the inequality holds with `quantile` standard errors to spare.
"""

from math import inf, isnan, sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, Layers, RunStatistics
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.ahead import Ahead, be_cautious, error_ahead, sweep_ahead
from revar.strategies.flow.costs import Influence, estimate_costs
from revar.strategies.flow.tuning import Tuning
from revar.theory.flow_steps import flow_of, mix
from revar.theory.influence import influence
from revar.theory.recursions import backward_values

# The multiplier of a sum is raised by FACTOR until the plan is safe, at most so often, and then
# halved in on as often as HALVINGS. Sums that are limited together take turns.
FACTOR = 4.0
RAISES = 10
HALVINGS = 5
ROUNDS = 2
TURNS = 3  # what a visit does to the error is found anew so often for each multiplier


class Safety(NamedTuple):
    """What is known of a sum, to assess plans by."""

    number: int  # of the limit; the floor on the return comes last
    seen: RunStatistics  # with negative amounts in the place of rewards, but for the return
    discount: float
    known_transitions: bool
    tuning: Tuning


@compiled
def keep_sums(
    task: TaskArrays,
    ahead: Ahead,
    statistics: RunStatistics,
    costs: FloatArray,
    needed: float,
    known_transitions: bool,
    tuning: Tuning,
    behavior: FloatArray,
    sweeps: int,
) -> None:
    """Overwrite a plan by one that is safe; the target policy is, as far as anything is known."""
    sums = task.limits.most.size
    count = sums + (1 if task.limits.has_floor else 0)
    limits = [_safety(task, statistics, known_transitions, tuning, i) for i in range(count)]
    multipliers = np.zeros(count)
    safe = True
    for _ in range(ROUNDS):
        safe = True
        for i in range(count):
            room, _ = _assess(task, ahead.layers, limits[i], behavior)
            if room < 0.0:
                safe = False
                _raise_multiplier(
                    task, ahead, limits, costs, needed, multipliers, i, room, behavior, sweeps
                )
        if safe:
            break
    for i in range(count):
        room, _ = _assess(task, ahead.layers, limits[i], behavior)
        safe = safe and room >= 0.0
    if not safe:
        _mix_with_policy(task, ahead, limits, behavior)


@compiled
def _raise_multiplier(
    task: TaskArrays,
    ahead: Ahead,
    limits: list[Safety],
    costs: FloatArray,
    needed: float,
    multipliers: FloatArray,
    number: int,
    room: float,
    behavior: FloatArray,
    sweeps: int,
) -> None:
    """Make visits worth so much by a limit that the plan has room below it, and no more."""
    visits = limits[number].seen.visits
    low, high = 0.0, inf
    tried = multipliers[number]
    if tried == 0.0:
        tried = error_ahead(task, ahead, costs, behavior) / -room / FACTOR
    kept = behavior.copy()
    point = behavior.copy()
    for turn in range(RAISES + HALVINGS):
        multipliers[number] = tried
        for _ in range(TURNS):
            worth, later = _own_worth(task, ahead, limits, multipliers, point)
            sweep_ahead(task, ahead, costs, worth, later, point, sweeps, limits[0].tuning.settled)
        be_cautious(task, ahead, visits, needed, point)
        room, _ = _assess(task, ahead.layers, limits[number], point)
        if room >= 0.0:
            high = tried
            kept[:] = point
        else:
            low = tried
        if high == inf:
            if turn >= RAISES:
                break
            tried *= FACTOR
        else:
            tried = sqrt(low * high) if low > 0.0 else high / FACTOR
    multipliers[number] = high if high < inf else low
    behavior[:] = kept if high < inf else point


@compiled
def _own_worth(
    task: TaskArrays,
    ahead: Ahead,
    limits: list[Safety],
    multipliers: FloatArray,
    behavior: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """What visits are worth by the limits: at any step, and discounted."""
    worth = np.zeros(task.policy.shape)
    later = np.zeros(task.policy.shape)
    for i in range(multipliers.size):
        if multipliers[i] > 0.0:
            _, slope = _assess(task, ahead.layers, limits[i], behavior)
            if i < task.limits.most.size:
                worth += multipliers[i] * slope
            else:
                later += multipliers[i] * slope
    return worth, later


@compiled
def _safety(
    task: TaskArrays,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    number: int,
) -> Safety:
    is_return = number == task.limits.most.size
    discount = task.discount if is_return else 1.0
    seen = statistics if is_return else _of_sum(task, statistics, number)
    return Safety(number, seen, discount, known_transitions, tuning)


@compiled
def _of_sum(task: TaskArrays, statistics: RunStatistics, number: int) -> RunStatistics:
    """The statistics, with the negative amounts of a sum in the place of rewards."""
    amounts, variances = task.limits.amounts[number], task.limits.variances[number]
    outcome_mean = np.zeros(statistics.outcome_reward_mean.size)
    row_start = statistics.outcomes.row_start
    actions = amounts.shape[1]
    for s in range(amounts.shape[0]):
        for a in range(actions):
            pair = s * actions + a
            for o in range(row_start[pair], row_start[pair + 1]):
                outcome_mean[o] = -amounts[s, a]
    return RunStatistics(
        statistics.outcomes,
        statistics.visits,
        -amounts,
        variances * statistics.visits,
        statistics.reward_cubes,
        statistics.reward_quartics,
        statistics.outcome_count,
        outcome_mean,
        statistics.initial_count,
    )


@compiled
def _assess(
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
    for s in range(mean.shape[1]):
        total = np.sum(own.weights[0, s])
        if total > 0.0:
            mean[0, s] = own.weights[0, s] / total
    asked = TaskArrays(
        task.policy,
        task.initial,
        task.horizon,
        discount,
        task.budget,
        task.episode_cost,
        task.visit_cost,
        mean,
        task.coefficients,
        task.weights,
        task.best,
        task.limited,
        limits,
    )
    costs = estimate_costs(
        *(asked, influences, np.array([1.0, -share]), seen, limit.known_transitions),
        *(limit.tuning, 0),  # no bonus that grows with the episodes: the quantile is there for it
    )
    errors = costs / np.maximum(seen.visits, 1)
    error = sqrt(np.sum(errors))
    slope = seen.reward_mean.copy()
    apart = own.weights[0] - share * target.weights[0]
    for s in range(apart.shape[0]):
        for a in range(apart.shape[1]):
            if apart[s, a] != 0.0 and error > 0.0:
                slope[s, a] -= limits.quantile * errors[s, a] / (apart[s, a] * error)
    room = own.values[0] - share * target.values[0] - least - limits.quantile * error
    return float(room), slope


@compiled
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


@compiled
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


@compiled
def _mix_with_policy(
    task: TaskArrays,
    ahead: Ahead,
    limits: list[Safety],
    behavior: FloatArray,
) -> None:
    """As much of the plan as is safe; the other episodes are the target policy's."""
    states, actions = task.policy.shape
    spare = np.zeros((2, states + 1))
    plan_flow = np.zeros(behavior.shape)
    plan_visits = np.zeros((states, actions))
    flow_of(ahead.transitions, task.initial, ahead.layers, behavior, plan_flow, plan_visits, spare)
    mixed = behavior.copy()
    low, high = 0.0, 1.0
    behavior[:] = task.policy
    for _ in range(HALVINGS):
        share = 0.5 * (low + high)
        mixed[:] = task.policy
        flow = np.zeros(behavior.shape)
        visits = np.zeros((states, actions))
        flow_of(ahead.transitions, task.initial, ahead.layers, mixed, flow, visits, spare)
        mix(ahead.layers, mixed, flow, visits, plan_flow, plan_visits, share)
        safe = True
        for i in range(len(limits)):
            room, _ = _assess(task, ahead.layers, limits[i], mixed)
            safe = safe and room >= 0.0
        if safe:
            low = share
            behavior[:] = mixed
        else:
            high = share
