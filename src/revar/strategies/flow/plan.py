"""The plan of flow: what the remaining episodes should visit, as far as the data can be trusted."""

from math import isfinite, log, sqrt
from typing import NamedTuple

import numpy as np

from revar.compilation import compiled_in_place, like_caller, with_functions
from revar.model.arrays import FloatArray, Layers, RunStatistics
from revar.model.structure import expand
from revar.model.tables import dot, total
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.ahead import (
    Ahead,
    be_cautious,
    error_ahead,
    improve,
    improve_within,
    plan_pays,
)
from revar.strategies.flow.costs import (
    combine,
    estimate_costs,
    estimate_influence,
    gap_errors,
    least_seen,
)
from revar.strategies.flow.safety import keep_sums
from revar.strategies.flow.transitions import credible_transitions
from revar.strategies.flow.tuning import Tuning
from revar.theory.caps import keep_within
from revar.theory.gaps import MOST, filled_values, known_values, thin_share_of

# How often the weights of differences to the leader are corrected in one plan. They tend to the
# squares of the ratios variance / gap^2, so that the sum of the ratios' cubes gets smallest: the
# hardest to tell gets most, and one that is cheap to settle is settled. Were only the largest ratio
# to count, the best policy could be left with the few visits that made it look bad.
BALANCING = 10
TINY = np.finfo(np.float64).tiny


class Draft(NamedTuple):
    """What a plan rests on, besides the plan itself."""

    ahead: Ahead
    costs: FloatArray  # [S, A] of what is asked
    noise: FloatArray  # [S, A] what a visit leaves of the error
    gaps: FloatArray  # [S, A] what pairs add to it until they are visited
    needed: float  # visits after which half of a share is the plan's
    pays: bool  # whether the plan is expected to be worth more than the target policy's visits


@like_caller
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
    already = statistics.visits.astype(np.float64)
    transitions, prior = statistics.outcomes, 0.0
    if not known_transitions:
        transitions, prior = credible_transitions(statistics.outcomes, statistics.visits, policy)
    start, states = expand(transitions, task.initial, policy > 0, task.horizon)
    layers = Layers(start, states)
    asked, weights = _asked_costs(task, layers, statistics, known_transitions, tuning)
    noise = combine(weights, asked)
    gaps, thin = np.zeros(noise.shape), False
    if known_transitions:
        found = known_values(statistics, task.initial, policy, layers, task.discount)
    else:
        found = filled_values(statistics, task.initial, policy, layers, task.discount)
        gaps = gap_errors(task, statistics, found, noise)
        thin = thin_share_of(found, statistics.visits) > MOST
    silent = total(noise) + total(gaps) == 0.0
    if silent:
        gaps = least_seen(found, statistics.visits)
    costs = noise + gaps if silent or task.policies.shape[0] == 1 else noise
    start_halfway(behavior, layers, policy)
    if task.limited:
        keep_within(behavior, layers, task.limits.caps)
    spent = task.episode_cost * episode + total(task.visit_cost * already)
    # Without an end, a plan is made for as much as was spent.
    budget = max(spent / episode, task.budget - spent) if isfinite(task.budget) else spent
    visit_cost = task.visit_cost
    if task.episode_cost == 0.0:
        # Episodes that cost nothing would be worth any number of others.
        visit_cost = np.maximum(visit_cost, tuning.settled * spent / total(already))
    ahead = Ahead(transitions, layers, already, budget, visit_cost)
    for i in range(BALANCING if task.best and weights.size > 1 and not silent else 1):
        if i > 0:
            for q in range(weights.size):
                weights[q] = sqrt(weights[q]) * error_ahead(task, ahead, asked[q], behavior)
            weights /= max(weights.max(), TINY)
            costs = noise = combine(weights, asked)
        if spent > 0.0:
            improve(task, ahead, costs, behavior, int(tuning.sweeps), tuning.settled)
    needed = share_prior(prior, tuning.alike)
    be_cautious(task, ahead, statistics.visits, needed, behavior)
    pays = spent > 0.0 and not thin and plan_pays(task, ahead, noise, gaps, behavior)
    if silent and int(log(episode) / log(tuning.growth)) % 2 == 1:
        pays = False  # as often as not: the policy itself may lead to what varies
    return Draft(ahead, costs, noise, gaps, needed, pays)


@like_caller
def _asked_costs(
    task: TaskArrays,
    layers: Layers,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
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
        costs[q] = estimate_costs(task, influences, rows[q], statistics, known_transitions, tuning)
        if task.best:
            gap = dot(rows[q], influences.values)
            square_gap = gap * gap + total(costs[q] / np.maximum(statistics.visits, 1))
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


@like_caller
def share_prior(prior: float, alike: float) -> float:
    """The n of shares, from the n of transitions: after n visits half of a share is the plan's.

    The two are equal unless the actions of a state lead to much the same (a large prior). Then
    costs decide, and uncertain transitions are no reason to distrust the plan.
    """
    return 1.0 / (1.0 / prior + prior / (alike * alike)) if prior > 0.0 else 0.0


# A rule of its own, so that plans without costs and caps need not wait until it is compiled.
plan_within = like_caller(with_functions(plan_flow, improve=improve_within))


@like_caller
def plan_safely(
    task: TaskArrays,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> Draft:
    """The same within caps, and limits on sums are kept."""
    draft = plan_within(task, statistics, known_transitions, tuning, episode, behavior)
    keep_sums(
        *(task, draft.ahead, statistics, draft.costs, draft.needed, known_transitions, tuning),
        behavior,
    )
    pays = draft.pays and plan_pays(task, draft.ahead, draft.noise, draft.gaps, behavior)
    return Draft(draft.ahead, draft.costs, draft.noise, draft.gaps, draft.needed, pays)
