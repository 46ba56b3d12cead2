"""Plans that keep limits on sums, with confidence, where the model has to be estimated.

A floor on the return, and a limit on a sum of amounts, ask that some G(b) is at least a number, or
a share of what the target policy has: G(b) - c G(pi) >= least. Here G is estimated, and has an
error; a plan is safe when the inequality holds with `quantile` standard errors to spare.
"""

from math import inf, isnan, sqrt

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


@compiled
def keep_sums(
    task: TaskArrays,
    ahead: Ahead,
    statistics: RunStatistics,
    costs: FloatArray,
    needed: float,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
    sweeps: int,
) -> None:
    """Overwrite a plan by one that is safe; the target policy is, as far as anything is known."""
    sums = task.limits.most.size
    count = sums + (1 if task.limits.has_floor else 0)
    seen = [_of_sum(task, statistics, i) for i in range(count)]
    multipliers = np.zeros(count)
    plan = behavior.copy()
    safe = True
    for _ in range(ROUNDS):
        safe = True
        for i in range(count):
            room = _room(task, ahead.layers, seen[i], i, known_transitions, tuning, episode, plan)
            if room >= 0.0:
                continue
            safe = False
            low, high = 0.0, inf
            tried = multipliers[i]
            if tried == 0.0:
                tried = error_ahead(task, ahead, costs, plan) / max(-room, 1e-300) / FACTOR
            kept = plan.copy()
            for turn in range(RAISES + HALVINGS):
                multipliers[i] = tried
                point = plan.copy()
                worth, later = _own_worth(task, statistics, multipliers)
                sweep_ahead(task, ahead, costs, worth, later, point, sweeps, tuning.settled)
                be_cautious(task, ahead, statistics.visits, needed, point)
                room = _room(
                    task, ahead.layers, seen[i], i, known_transitions, tuning, episode, point
                )
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
            if high < inf:
                multipliers[i] = high
            plan[:] = kept
        if safe:
            break
    behavior[:] = plan
    if not safe:
        _mix_with_policy(task, ahead, seen, known_transitions, tuning, episode, behavior)


@compiled
def _own_worth(
    task: TaskArrays, statistics: RunStatistics, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What visits are worth by the limits: at any step, and discounted."""
    worth = np.zeros(task.policy.shape)
    later = np.zeros(task.policy.shape)
    sums = task.limits.most.size
    for i in range(multipliers.size):
        if i < sums:
            worth -= multipliers[i] * task.limits.amounts[i]
        else:
            later += multipliers[i] * statistics.reward_mean
    return worth, later


@compiled
def _of_sum(task: TaskArrays, statistics: RunStatistics, number: int) -> RunStatistics:
    """The statistics, with the negative amounts of a sum in the place of rewards."""
    if number == task.limits.most.size:
        return statistics
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
def _room(
    task: TaskArrays,
    layers: Layers,
    seen: RunStatistics,
    number: int,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> float:
    """By how much G(b) - c G(pi) is above the limit, with the standard errors taken off."""
    limits = task.limits
    is_return = number == limits.most.size
    discount = task.discount if is_return else 1.0
    own = _influence_of(task, layers, seen, discount, behavior)
    target = _influence_of(
        task, layers, seen, discount, task.policy.reshape((1, *task.policy.shape))
    )
    share, least = 0.0, 0.0
    if not is_return:
        least = -limits.most[number]
    elif isnan(limits.share):
        least = limits.floor
    else:
        share = limits.share if target.values[0] >= 0.0 else 2.0 - limits.share
    row = np.array([1.0, -share])
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
    costs = estimate_costs(asked, influences, row, seen, known_transitions, tuning, episode)
    variance = np.sum(costs / np.maximum(seen.visits, 1))
    difference = own.values[0] - share * target.values[0]
    return float(difference - least - limits.quantile * sqrt(variance))


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
    seen: list[RunStatistics],
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
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
        for i in range(len(seen)):
            room = _room(task, ahead.layers, seen[i], i, known_transitions, tuning, episode, mixed)
            safe = safe and room >= 0.0
        if safe:
            low = share
            behavior[:] = mixed
        else:
            high = share
