"""The plan of flow: what the remaining episodes should visit, as far as the data can be trusted."""

from math import sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled, compiled_in_place, inlined, with_functions
from revar.model.arrays import FloatArray, IntArray, Layers, RunStatistics
from revar.model.structure import expand
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.ahead import Ahead, be_cautious, error_ahead, improve, improve_within
from revar.strategies.flow.costs import combine, estimate_costs, estimate_influence
from revar.strategies.flow.safety import keep_sums
from revar.strategies.flow.transitions import credible_transitions
from revar.strategies.flow.tuning import Tuning
from revar.theory.caps import keep_within

# How often the weights of differences to the leader are corrected in one plan. They tend to the
# squares of the ratios variance / gap^2, so that the sum of the ratios' cubes gets smallest: the
# hardest to tell gets most, and one that is cheap to settle is settled. Were only the largest ratio
# to count, the best policy could be left with the few visits that made it look bad.
BALANCING = 10
TINY = np.finfo(np.float64).tiny
# Where a transition needs more visits than these to be credible, actions lead to much the same.
ALIKE = 20.0
LEAST_COST = 1e-3  # of a visit, as a share of the usual cost


class Draft(NamedTuple):
    """What a plan rests on, besides the plan itself."""

    ahead: Ahead
    costs: FloatArray  # [S, A] of what is asked
    needed: float  # visits after which half of a share is the plan's
    sweeps: int  # at most


@compiled
def plan_flow(
    task: TaskArrays,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> Draft:
    """Overwrite `behavior` [L, S, A] with the plan after `episode` episodes."""
    policy = task.policy
    start, states = expand(statistics.outcomes, task.initial, policy > 0, task.horizon)
    layers = Layers(start, states)
    asked, weights = _asked_costs(task, layers, statistics, known_transitions, tuning, episode)
    costs = combine(weights, asked)
    start_halfway(behavior, layers, policy)
    if task.limited:
        keep_within(behavior, layers, task.limits.caps)
    already = statistics.visits.astype(np.float64)
    transitions, prior = statistics.outcomes, 0.0
    if not known_transitions:
        transitions, prior = credible_transitions(statistics.outcomes, statistics.visits, policy)
    spent = task.episode_cost * episode + np.sum(task.visit_cost * already)
    unit = spent / episode
    budget = max(unit, min(task.budget - spent, tuning.look_ahead * spent + 10.0 * unit))
    visit_cost = task.visit_cost
    if task.episode_cost == 0.0:
        # Episodes that cost nothing would be worth any number of others.
        visit_cost = np.maximum(visit_cost, LEAST_COST * spent / np.sum(already))
    ahead = Ahead(transitions, layers, already, budget, visit_cost)
    sweeps = int(min(tuning.sweeps, 3.0 * sqrt(episode)))
    for i in range(BALANCING if task.best and weights.size > 1 else 1):
        if i > 0:
            for q in range(weights.size):
                weights[q] = sqrt(weights[q]) * error_ahead(task, ahead, asked[q], behavior)
            weights /= max(weights.max(), TINY)
            costs = combine(weights, asked)
        if spent > 0.0:
            improve(task, ahead, costs, behavior, sweeps, tuning.settled)
    needed = share_prior(prior)
    lacking = needed * _tried_pairs(statistics.visits, policy) / tuning.many_visits
    if lacking > 1.0 and spent > 0.0:
        gain = _gain(task, ahead, costs, spent, behavior)
        needed *= max(1.0, lacking / gain)
    needed *= tuning.caution
    be_cautious(task, ahead, statistics.visits, needed, behavior)
    return Draft(ahead, costs, needed, sweeps)


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
def start_halfway(behavior: FloatArray, layers: Layers, policy: FloatArray) -> None:
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
    task: TaskArrays, ahead: Ahead, costs: FloatArray, spent: float, behavior: FloatArray
) -> float:
    """How many times larger the error would be had the target policy made all visits."""
    planned = error_ahead(task, ahead, costs, behavior)
    on_policy = np.zeros(behavior.shape)
    on_policy[:] = task.policy
    nothing = np.zeros(costs.shape)
    anew = Ahead(ahead.transitions, ahead.layers, nothing, spent + ahead.budget, ahead.visit_cost)
    instead = error_ahead(task, anew, costs, on_policy)
    return max(1.0, instead / planned) if planned > 0.0 else 1.0


@inlined
def share_prior(prior: float) -> float:
    """The n of shares, from the n of transitions: after n visits half of a share is the plan's.

    The two are equal unless the actions of a state lead to much the same (a large prior). Then
    costs decide, and uncertain transitions are no reason to distrust the plan.
    """
    return 1.0 / (1.0 / prior + prior / ALIKE**2) if prior > 0.0 else 0.0


# A rule of its own, so that plans without costs and caps need not wait until it is compiled.
plan_within = compiled(with_functions(plan_flow, improve=improve_within))


@compiled
def plan_safely(
    task: TaskArrays,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> None:
    """The same within caps, and limits on sums are kept."""
    draft = plan_within(task, statistics, known_transitions, tuning, episode, behavior)
    keep_sums(
        *(task, draft.ahead, statistics, draft.costs, draft.needed, known_transitions, tuning),
        *(behavior, draft.sweeps),
    )
