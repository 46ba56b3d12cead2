"""The plan of flow: what the remaining episodes should visit, as far as the data can be trusted."""

from math import isfinite, log, sqrt

import numpy as np

from revar.compilation import compiled_in_place
from revar.model.arrays import FloatArray, Layers, RunStatistics
from revar.model.structure import expand
from revar.model.tables import dot, total
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.flow.ahead import (
    Ahead,
    be_cautious,
    error_ahead,
    improve_freely,
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
from revar.theory.gaps import FilledValues, thin_share_of

# How often the weights of differences to the leader are corrected in one plan. They tend to the
# squares of the ratios variance / gap^2, so that the sum of the ratios' cubes gets smallest: the
# hardest to tell gets most, and one that is cheap to settle is settled. Were only the largest ratio
# to count, the best policy could be left with the few visits that made it look bad.
BALANCING = 10
TINY = np.finfo(np.float64).tiny


def plan_flow(
    task: TaskArrays,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> bool:
    """Overwrite `behavior` [L, S, A] with the plan after `episode` episodes.

    Whether it is expected to be worth more than the target policy's visits.
    """
    policy = task.policy
    already = statistics.visits.astype(np.float64)
    spent = task.episode_cost * episode + total(task.visit_cost * already)
    if spent == 0.0:
        return False
    transitions, prior = statistics.outcomes, 0.0
    if not known_transitions:
        transitions, prior = credible_transitions(statistics.outcomes, statistics.visits, policy)
    layers = Layers(*expand(transitions, task.initial, policy > 0, task.horizon))
    # Without an end, a plan is made for as much as was spent.
    budget = max(spent / episode, task.budget - spent) if isfinite(task.budget) else spent
    visit_cost = task.visit_cost
    if task.episode_cost == 0.0:
        # Episodes that cost nothing would be worth any number of others.
        visit_cost = np.maximum(visit_cost, tuning.settled * spent / total(already))
    ahead = Ahead(transitions, layers, already, budget, visit_cost)
    asked, weights, found = _asked_costs(task, layers, statistics, known_transitions, tuning)
    noise = combine(weights, asked)
    gaps = np.zeros(noise.shape)
    if not known_transitions:
        if thin_share_of(found, statistics.visits) > 0.5:  # the table is thin
            return False
        gaps = gap_errors(task, layers, statistics, found, noise)
    silent = total(noise) + total(gaps) == 0.0
    if silent:
        if not _search_is_due(found, episode, budget * episode / spent, tuning.growth):
            return False
        gaps = least_seen(found, statistics.visits)
    costs = noise + gaps if silent or task.policies.shape[0] == 1 else noise
    start_halfway(behavior, layers, policy)
    if task.limited:
        keep_within(behavior, layers, task.limits.caps)
    improve = improve_within if task.limited or task.episode_cost == 0.0 else improve_freely
    for i in range(BALANCING if task.best and weights.size > 1 and not silent else 1):
        if i > 0:
            for q in range(weights.size):
                weights[q] = sqrt(weights[q]) * error_ahead(task, ahead, asked[q], behavior)
            weights /= max(weights.max(), TINY)
            costs = noise = combine(weights, asked)
        improve(task, ahead, costs, behavior, int(tuning.sweeps), tuning.settled)
    needed = share_prior(prior, tuning.alike)
    be_cautious(task, ahead, statistics.visits, needed, behavior)
    if task.limits.has_sums:
        keep_sums(task, ahead, statistics, costs, needed, known_transitions, tuning, behavior)
    return plan_pays(task, ahead, noise, gaps, behavior, total(found.weights))


def _asked_costs(
    task: TaskArrays,
    layers: Layers,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
) -> tuple[FloatArray, FloatArray, FilledValues]:
    """The costs of each combination that is asked for, [Q, S, A], their weights [Q], and values.

    If the best policy is asked for, these are the leader's differences to the others, each in units
    of the mean square of its gap, as far as it is known.
    """
    influences, found = estimate_influence(task, layers, statistics, known_transitions)
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
    return costs, weights, found


def _search_is_due(found: FilledValues, episode: int, left: float, growth: float) -> bool:
    """Whether a plan goes where little was seen, while nothing has varied.

    With fewer episodes than pairs a search cannot look everywhere. And as often as not the policy
    itself may lead to what varies.
    """
    pairs = np.count_nonzero(found.weights + found.untried)
    return bool(left >= pairs) and round(log(episode, growth)) % 2 == 0


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


def share_prior(prior: float, alike: float) -> float:
    """The n of shares, from the n of transitions: after n visits half of a share is the plan's.

    The two are equal unless the actions of a state lead to much the same (a large prior). Then
    costs decide, and uncertain transitions are no reason to distrust the plan.
    """
    return 1.0 / (1.0 / prior + prior / (alike * alike)) if prior > 0.0 else 0.0
