"""Transitions that do not trust few visits: frequencies mixed with what is usual in a state."""

from math import inf

import numpy as np

from revar.compilation import compiled, compiled_in_place, inlined
from revar.model.arrays import FloatArray, IntArray, Outcomes
from revar.model.tables import sort_part


def credible_transitions(
    outcomes: Outcomes, visits: IntArray, policy: FloatArray
) -> tuple[Outcomes, float]:
    """Transition frequencies, mixed with what is usual in their state, and n.

    A plan that trusts few visits prefers the actions that were lucky and avoids the others. Bad
    luck is then never corrected, and the estimate is too low. Here a pair of T visits keeps
    T / (T + n) of its own frequencies; the rest is what the target policy's actions led to in its
    state. A pair without a visit has nothing else.
    """
    row_start, successor, probability = _usual_outcomes(outcomes, visits, policy)
    usual = Outcomes(row_start, successor, probability)
    prior = _prior_visits(outcomes, usual, visits, policy)
    if prior == 0.0 and not np.any((policy > 0.0) & (visits == 0)):
        return outcomes, prior
    row_start, successor, probability = _mixed(outcomes, usual, visits, policy, prior)
    return Outcomes(row_start, successor, probability), prior


@compiled
def _mixed(
    outcomes: Outcomes, usual: Outcomes, visits: IntArray, policy: FloatArray, prior: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """The arrays of the mixed `Outcomes`."""
    states, actions = policy.shape
    row_start = np.zeros(states * actions + 1, np.int64)
    for s in range(states):
        for a in range(actions):
            p = s * actions + a
            size = usual.row_start[s + 1] - usual.row_start[s] if policy[s, a] > 0.0 else 0
            row_start[p + 1] = row_start[p] + size
    successor = np.zeros(row_start[-1], np.int64)
    probability = np.zeros(row_start[-1])
    for s in range(states):
        for a in range(actions):
            p = s * actions + a
            own = own_share(visits[s, a], prior)
            o, last = outcomes.row_start[p], outcomes.row_start[p + 1]
            for k in range(row_start[p], row_start[p + 1]):
                u = usual.row_start[s] + k - row_start[p]
                successor[k] = usual.successor[u]
                probability[k] = (1.0 - own) * usual.probability[u]
                while o < last and outcomes.successor[o] < successor[k]:
                    o += 1
                if o < last and outcomes.successor[o] == successor[k]:
                    probability[k] += own * outcomes.probability[o]
    return row_start, successor, probability


@inlined
def own_share(visits: int, prior: float) -> float:
    """The credibility of that many visits, T / (T + n), also for an infinite n."""
    return 1.0 / (1.0 + prior / visits) if visits > 0 else 0.0


@compiled
def _usual_outcomes(
    outcomes: Outcomes, visits: IntArray, policy: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """What followed each state under the target policy's actions, a row for each state.

    The arrays of `Outcomes`.
    """
    states, actions = policy.shape
    row_start = np.zeros(states + 1, np.int64)
    successor = np.zeros(outcomes.successor.size, np.int64)
    probability = np.zeros(outcomes.successor.size)
    count = np.zeros(states + 1)
    size = 0
    for s in range(states):
        total = 0
        for a in range(actions):
            if policy[s, a] == 0.0:
                continue
            p = s * actions + a
            total += visits[s, a]
            for o in range(outcomes.row_start[p], outcomes.row_start[p + 1]):
                seen = visits[s, a] * outcomes.probability[o]
                if seen > 0.0:
                    if count[outcomes.successor[o]] == 0.0:
                        successor[size] = outcomes.successor[o]
                        size += 1
                    count[outcomes.successor[o]] += seen
        row_start[s + 1] = size
        sort_part(successor, row_start[s], row_start[s + 1])
        for k in range(row_start[s], size):
            probability[k] = count[successor[k]] / total
            count[successor[k]] = 0.0
    return row_start, successor[:size], probability[:size]


@compiled
def _prior_visits(
    outcomes: Outcomes, usual: Outcomes, visits: IntArray, policy: FloatArray
) -> float:
    """The variance of a visit's outcome over the variance between actions of a state.

    Both are taken to be the same in all states that leave a choice, and estimated over them (after
    Buehlmann and Straub, 1970, "Glaubwuerdigkeit fuer Schadensaetze"): 0 where all outcomes are
    certain, infinite where actions make no difference.
    """
    states, actions = policy.shape
    noise = 0.0  # sum of T (1 - sum p^2) over pairs
    freedom = 0
    apart = 0.0  # sum of T |p - usual p|^2 over pairs
    choices = 0
    contrast = 0.0
    for s in range(states):
        total = 0
        pairs = 0
        squares = 0.0
        same = 0.0
        for a in range(actions):
            count = visits[s, a]
            if policy[s, a] > 0.0 and count > 0:
                same += count * _sameness(outcomes, s * actions + a)
                squares += float(count) * count
                total += count
                pairs += 1
        if pairs > 1:
            noise += total - same
            freedom += total - pairs
            apart += same - total * _sameness(usual, s)
            contrast += total - squares / total
            choices += pairs - 1
    if noise == 0.0:
        return 0.0
    within = noise / freedom
    between = apart - choices * within
    return within * contrast / between if between > 0.0 else inf


@compiled_in_place
def _sameness(outcomes: Outcomes, row: int) -> float:
    """The probability that two visits have the same outcome, sum p^2."""
    total = 0.0
    for o in range(outcomes.row_start[row], outcomes.row_start[row + 1]):
        total += outcomes.probability[o] ** 2
    return total
