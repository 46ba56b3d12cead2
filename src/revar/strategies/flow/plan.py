"""The plan of flow: what the remaining episodes should visit, as far as the data can be trusted."""

from math import sqrt

import numpy as np

from revar.compilation import compiled, compiled_in_place, inlined
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes, RunStatistics
from revar.model.structure import expand
from revar.strategies.compiled_rule import Question
from revar.strategies.flow.costs import estimate_costs
from revar.strategies.flow.transitions import credible_transitions, own_share
from revar.strategies.flow.tuning import Tuning
from revar.theory.flow_steps import accelerated_sweeps, objective_of

# Where a transition needs more visits than these to be credible, actions lead to much the same.
ALIKE = 20.0


@compiled
def plan_flow(
    question: Question,
    statistics: RunStatistics,
    known_transitions: bool,
    tuning: Tuning,
    episode: int,
    behavior: FloatArray,
) -> None:
    """Overwrite `behavior` [L, S, A] with the plan after `episode` episodes."""
    policy = question.policy
    start, states = expand(statistics.outcomes, question.initial, policy > 0, question.horizon)
    layers = Layers(start, states)
    costs = estimate_costs(question, layers, statistics, known_transitions, tuning, episode)
    for t in range(question.horizon):
        for i in range(start[t], start[t + 1]):
            s = states[i]
            count = 0
            for a in range(policy.shape[1]):
                count += policy[s, a] > 0.0
            for a in range(policy.shape[1]):
                share = 1.0 / count if policy[s, a] > 0.0 else 0.0
                behavior[t, s, a] = 0.5 * (policy[s, a] + share)
    left = float(question.episodes - episode)
    ahead = max(1.0, min(left, tuning.look_ahead * episode + 10.0))
    already = statistics.visits.astype(np.float64)
    ways, prior = statistics.outcomes, 0.0
    if not known_transitions:
        ways, prior = credible_transitions(statistics.outcomes, statistics.visits, policy)
    accelerated_sweeps(
        ways,
        question.initial,
        layers,
        costs,
        already,
        ahead,
        behavior,
        int(min(tuning.sweeps, 3.0 * sqrt(episode))),
        tuning.settled,
    )
    doubted = doubt(prior)
    lacking = doubted * _tried_pairs(statistics.visits, policy) / tuning.many_visits
    if lacking > 1.0:
        gain = _gain(question, ways, layers, costs, already, episode, ahead, behavior)
        doubted *= max(1.0, lacking / gain)
    doubted *= tuning.caution
    if doubted > 0.0:
        keep_to_policy(behavior, layers, policy, statistics.visits, doubted)


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
    question: Question,
    ways: Outcomes,
    layers: Layers,
    costs: FloatArray,
    visits: FloatArray,
    episode: int,
    ahead: float,
    behavior: FloatArray,
) -> float:
    """How many times the error of visits so far and planned the target policy's would be."""
    initial, policy = question.initial, question.policy
    planned = objective_of(ways, initial, layers, costs, visits, ahead, behavior)
    on_policy = np.zeros(behavior.shape)
    on_policy[:] = policy
    nothing = np.zeros(policy.shape)
    instead = objective_of(ways, initial, layers, costs, nothing, episode + ahead, on_policy)
    return max(1.0, instead / planned) if planned > 0.0 else 1.0


@compiled_in_place
def keep_to_policy(
    behavior: FloatArray, layers: Layers, policy: FloatArray, visits: IntArray, prior: float
) -> None:
    """Let a pair of T visits have T / (T + n) of its share in a plan; the rest is the policy's.

    What lies ahead of an action decides how often a plan takes it, and drawing all actions of a
    state together does not help there: what counts is not how much worse an action looks but how
    many times worse. So few visits have little say in the plan itself.
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
def doubt(prior: float) -> float:
    """After how many visits half of a share is the plan's, from the same for transitions.

    The same number, but for actions that hardly differ in where they lead: there a plan goes by
    costs, not by ways, and ways are no reason to doubt it.
    """
    return 1.0 / (1.0 / prior + prior / ALIKE**2) if prior > 0.0 else 0.0
