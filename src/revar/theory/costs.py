"""What one visit of a pair is worth: one-step costs, and the error of any behavior.

The delta method around the truth (pooled statistics, certainty equivalence) gives
MSE ~ sum_{s,a} C(s,a) / T(s,a): each pair contributes its cost C over its number of visits T.
Influences are linear, so that a combination sum_j q_j v(pi_j) has W = sum_j q_j W_j and
g = sum_j q_j g_j, and the same formula.
"""

from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.question import Question
from revar.model.structure import reachable_layers
from revar.model.task import check_question
from revar.theory.influence import influence, pair_costs
from revar.theory.recursions import backward_values
from revar.theory.values import occupancy, policy_value

# What is this much smaller than the terms it is the difference of is what rounding left of zero.
ROUNDING = 1e-12


def one_step_costs(
    mdp: TabularMDP, question: Any, *, known_transitions: bool = False
) -> FloatArray:
    """C(s,a) = Var[W(s,a) R + g_{s,a}(S') | s,a], [S, A]; W^2 sigma^2 with known transitions.

    Of several combinations it is the weighted sum.

    Parameters
    ----------
    mdp
        The model.
    question
        A policy [S, A], or a Question.
    known_transitions
        Whether transitions are known, so that only the noise of rewards counts.
    """
    asked = check_question(mdp, question)
    if asked.combinations.best:
        raise InputError(
            "what a visit is worth for finding the best policy depends on how much each "
            "difference matters, which only optimal_flow finds out; ask for the costs of a "
            "Difference, or of a Question with weights"
        )
    return weighted_sum(
        asked.combinations.weights, combination_costs(mdp, asked, known_transitions)
    )


def estimation_variance(
    mdp: TabularMDP, question: Any, behavior: Any, *, known_transitions: bool = False
) -> float:
    """K*MSE of certainty equivalence when K episodes are drawn from `behavior`, as K grows.

    Of a Question: the weighted sum of the variances; of Best, the largest variance of the leader's
    differences over the squared gap. Infinite where a pair that has a cost is never visited.

    Parameters
    ----------
    mdp
        The model.
    question
        A policy [S, A], or a Question.
    behavior
        How actions are chosen: an array [S, A], or [L, S, A] with one table for each step.
    known_transitions
        Whether transitions are known, so that only the noise of rewards counts.
    """
    asked = check_question(mdp, question)
    visits = occupancy(mdp, behavior).sum(axis=0)
    if asked.combinations.best:
        every = combination_costs(mdp, asked, known_transitions)
        return max(variance_of_visits(costs, visits) for costs in every)
    costs = one_step_costs(mdp, asked, known_transitions=known_transitions)
    return variance_of_visits(costs, visits)


def variance_of_visits(costs: FloatArray, visits: FloatArray) -> float:
    """sum C/T over the pairs that have a cost."""
    counts = costs > 0
    if np.any(visits[counts] == 0):
        return float("inf")
    return float(np.sum(costs[counts] / visits[counts]))


def best_split_variance(variances: FloatArray) -> float:
    """K times the variance of a difference from K episodes, each value from its policy's own.

    `variances` are those of the values from one episode. The policies' shares of the episodes are
    the best ones, in proportion to the standard deviations.
    """
    return float(np.sqrt(variances).sum() ** 2)


def weighted_sum(weights: FloatArray, costs: FloatArray) -> FloatArray:
    """sum_q w_q C_q, from costs [Q, S, A]."""
    return np.asarray((weights[:, None, None] * costs).sum(axis=0))


def combination_costs(mdp: TabularMDP, question: Question, known_transitions: bool) -> FloatArray:
    """The costs of each combination, [Q, S, A], of a question that fits the model.

    Of `Best`: of the leader's differences to the others, in their order, over the squared gaps,
    [J-1, S, A].
    """
    rows = question.combinations.coefficients
    if question.combinations.best:
        leader, gaps = find_leader(mdp, question.policies)
        every = np.eye(len(gaps))
        others = np.delete(np.arange(len(gaps)), leader)
        rows = (every[leader] - every[others]) / gaps[others, None]
    influences = [_influence(mdp, policy) for policy in question.policies]
    weights = np.stack([weight for weight, _ in influences])  # [J, S, A]
    gains = np.stack([gain for _, gain in influences])  # [J, slot]
    alone = np.stack([_costs(mdp, *pair, known_transitions) for pair in influences])  # [J, S, A]
    result = np.zeros((len(rows), mdp.states, mdp.actions))
    for row, costs in zip(rows, result, strict=True):
        asked = np.flatnonzero(row)
        weight = np.einsum("j,jsa->sa", row[asked], weights[asked])
        gain = np.einsum("j,jo->o", row[asked], gains[asked])
        terms = np.einsum("j,jsa->sa", np.abs(row[asked]), np.sqrt(alone[asked]))
        costs[:] = _costs(mdp, weight, gain, known_transitions)
        # Where policies do the same, nothing is to be learned, and no visit is needed.
        costs[costs <= (ROUNDING * terms) ** 2] = 0.0
    return result


def find_leader(mdp: TabularMDP, policies: FloatArray) -> tuple[int, FloatArray]:
    """The policy of the largest value, and how far each policy is below it, [J]."""
    values = np.array([policy_value(mdp, policy) for policy in policies])
    leader = int(np.argmax(values))
    gaps = values[leader] - values
    unit = mdp.horizon * np.abs(mdp.arrays.reward_mean).max()
    equal = np.flatnonzero(gaps <= ROUNDING * unit)
    if equal.size > 1:
        first, second = equal[:2]
        raise InputError(
            f"policies {first} and {second} have the same value, {values[leader]:.6g}, so that no "
            f"amount of data shows which is the best; leave one of them out, or ask for Values"
        )
    return leader, gaps


def _influence(mdp: TabularMDP, policy: FloatArray) -> tuple[FloatArray, FloatArray]:
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, policy > 0, mdp.horizon)
    values = backward_values(
        mdp.arrays.outcomes, mdp.arrays.reward_mean, policy[None], layers, mdp.discount
    )
    return influence(
        mdp.arrays.outcomes, mdp.arrays.initial, policy[None], values, layers, mdp.discount
    )


def _costs(
    mdp: TabularMDP, weight: FloatArray, gain: FloatArray, known_transitions: bool
) -> FloatArray:
    return pair_costs(
        mdp.arrays.outcomes,
        weight,
        gain,
        mdp.arrays.reward_std**2,
        np.array(mdp.outcome_reward_mean),
        known_transitions,
    )
