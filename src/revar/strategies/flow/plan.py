"""The plan of flow: what the remaining episodes should visit, as far as the data can be trusted."""

from math import sqrt

import numpy as np

from revar.compilation import compiled, compiled_in_place, inlined
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes, RunStatistics
from revar.model.structure import expand
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.costs import combine, estimate_costs, estimate_influence
from revar.strategies.flow.transitions import credible_transitions, own_share
from revar.strategies.flow.tuning import Tuning
from revar.theory.flow_steps import accelerated_sweeps, objective_of

# How often the weights of differences to the leader are corrected in one plan. They tend to the
# squares of the ratios variance / gap^2, so that the sum of the ratios' cubes gets smallest: the
# hardest to tell gets most, and one that is cheap to settle is settled. Were only the largest ratio
# to count, the best policy could be left with the few visits that made it look bad.
BALANCING = 10
TINY = np.finfo(np.float64).tiny
# Where a transition needs more visits than these to be credible, actions lead to much the same.
ALIKE = 20.0


@compiled
def plan_flow(
    task: TaskArrays,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> None:
    """Overwrite `behavior` [L, S, A] with the plan after `episode` episodes."""
    policy = task.policy
    start, states = expand(statistics.outcomes, task.initial, policy > 0, task.horizon)
    layers = Layers(start, states)
    asked, weights = _asked_costs(task, layers, statistics, known_transitions, tuning, episode)
    costs = combine(weights, asked)
    _start_halfway(behavior, layers, policy)
    left = float(task.episodes - episode)
    ahead = max(1.0, min(left, tuning.look_ahead * episode + 10.0))
    already = statistics.visits.astype(np.float64)
    transitions, prior = statistics.outcomes, 0.0
    if not known_transitions:
        transitions, prior = credible_transitions(statistics.outcomes, statistics.visits, policy)
    for i in range(BALANCING if task.best and weights.size > 1 else 1):
        if i > 0:
            for q in range(weights.size):
                ratio = objective_of(
                    transitions, task.initial, layers, asked[q], already, ahead, behavior
                )
                weights[q] = sqrt(weights[q]) * ratio
            weights /= max(weights.max(), TINY)
            costs = combine(weights, asked)
        accelerated_sweeps(
            transitions,
            task.initial,
            layers,
            costs,
            already,
            ahead,
            behavior,
            int(min(tuning.sweeps, 3.0 * sqrt(episode))),
            tuning.settled,
        )
    needed = share_prior(prior)  # visits
    lacking = needed * _tried_pairs(statistics.visits, policy) / tuning.many_visits
    if lacking > 1.0:
        gain = _gain(task, transitions, layers, costs, already, episode, ahead, behavior)
        needed *= max(1.0, lacking / gain)
    needed *= tuning.caution
    if needed > 0.0:
        keep_to_policy(behavior, layers, policy, statistics.visits, needed)


@compiled
def _asked_costs(
    task: TaskArrays,
    layers: Layers,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
) -> tuple[FloatArray, FloatArray]:
    """The costs of each combination that is asked for, [Q, S, A], and their weights [Q].

    If the best policy is asked for, these are the leader's differences to the others, each in units
    of the mean square of its gap, as far as it is known.
    """
    influences = estimate_influence(task, layers, statistics, known_transitions)
    rows, weights = task.coefficients, task.weights.copy()
    if task.best:
        leader = np.argmax(influences.values)
        rows = np.zeros((task.policies.shape[0] - 1, task.policies.shape[0]))
        rows[:, leader] = 1.0
        for q in range(len(rows)):
            rows[q, q if q < leader else q + 1] = -1.0
        weights = np.ones(len(rows))
    costs = np.zeros((len(rows), *task.policy.shape))
    for q in range(len(rows)):
        costs[q] = estimate_costs(
            task, influences, rows[q], statistics, known_transitions, tuning, episode
        )
        if task.best:
            square_gap = np.sum(rows[q] * influences.values) ** 2
            square_gap += np.sum(costs[q] / np.maximum(statistics.visits, 1))
            if square_gap > 0.0:
                costs[q] /= square_gap
    return costs, weights


@compiled_in_place
def _start_halfway(behavior: FloatArray, layers: Layers, policy: FloatArray) -> None:
    """Halfway between the target policy and equal shares of its actions."""
    start, layer_states = layers
    horizon, _, actions = behavior.shape
    for t in range(horizon):
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            count = 0
            for a in range(actions):
                count += policy[s, a] > 0.0
            for a in range(actions):
                share = 1.0 / count if policy[s, a] > 0.0 else 0.0
                behavior[t, s, a] = 0.5 * (policy[s, a] + share)


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
    task: TaskArrays,
    transitions: Outcomes,
    layers: Layers,
    costs: FloatArray,
    visits: FloatArray,
    episode: int,
    ahead: float,
    behavior: FloatArray,
) -> float:
    """How many times larger the error would be had the target policy made all visits."""
    initial, policy = task.initial, task.policy
    planned = objective_of(transitions, initial, layers, costs, visits, ahead, behavior)
    on_policy = np.zeros(behavior.shape)
    on_policy[:] = policy
    nothing = np.zeros(policy.shape)
    instead = objective_of(transitions, initial, layers, costs, nothing, episode + ahead, on_policy)
    return max(1.0, instead / planned) if planned > 0.0 else 1.0


@compiled_in_place
def keep_to_policy(
    behavior: FloatArray, layers: Layers, policy: FloatArray, visits: IntArray, prior: float
) -> None:
    """Keep T / (T + n) of the share of a pair of T visits; the rest is the policy's.

    Mixing the transitions of a state's actions is not enough. It makes their differences smaller,
    but how often a plan takes each depends on the ratio of the differences, which it keeps.
    """
    start, layer_states = layers
    horizon, _, actions = behavior.shape
    for t in range(horizon):
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            total = 0.0
            for a in range(actions):
                own = own_share(visits[s, a], prior)
                behavior[t, s, a] = own * behavior[t, s, a] + (1.0 - own) * policy[s, a]
                total += behavior[t, s, a]
            if total > 0.0:
                for a in range(actions):
                    behavior[t, s, a] /= total


@inlined
def share_prior(prior: float) -> float:
    """The n of shares, from the n of transitions: after n visits half of a share is the plan's.

    The two are equal unless the actions of a state lead to much the same (a large prior). Then
    costs decide, and uncertain transitions are no reason to distrust the plan.
    """
    return 1.0 / (1.0 / prior + prior / ALIKE**2) if prior > 0.0 else 0.0
