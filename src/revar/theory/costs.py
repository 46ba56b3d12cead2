"""What one visit of a pair is worth: one-step costs, and the error of any behavior.

The delta method around the truth (pooled statistics, certainty equivalence) gives
MSE ~ sum_{s,a} C(s,a) / T(s,a): each pair contributes its cost C over its number of visits T.
"""

from typing import Any

import numpy as np

from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.structure import reachable_layers
from revar.model.task import check_policy
from revar.theory.recursions import backward_values, influence, pair_costs
from revar.theory.values import occupancy


def one_step_costs(mdp: TabularMDP, policy: Any, *, known_transitions: bool = False) -> FloatArray:
    """C(s,a) = Var[W(s,a) R + g_{s,a}(S') | s,a], [S, A]; W^2 sigma^2 with known transitions."""
    target = check_policy(mdp, policy)
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, target > 0, mdp.horizon)
    values = backward_values(
        mdp.arrays.outcomes, mdp.arrays.reward_mean, target, layers, mdp.discount
    )
    weight, gain = influence(
        mdp.arrays.outcomes, mdp.arrays.initial, target, values, layers, mdp.discount
    )
    return pair_costs(
        mdp.arrays.outcomes,
        weight,
        gain,
        mdp.arrays.reward_std**2,
        np.array(mdp.outcome_reward_mean),
        known_transitions,
    )


def estimation_variance(
    mdp: TabularMDP, policy: Any, behavior: Any, *, known_transitions: bool = False
) -> float:
    """K*MSE of certainty equivalence when K episodes are drawn from `behavior`, as K grows.

    Infinite where the behavior never visits a pair that has a cost.
    """
    costs = one_step_costs(mdp, policy, known_transitions=known_transitions)
    visits = occupancy(mdp, behavior).sum(axis=0)
    return variance_of_visits(costs, visits)


def variance_of_visits(costs: FloatArray, visits: FloatArray) -> float:
    """sum C/T over the pairs that have a cost."""
    counts = costs > 0
    if np.any(visits[counts] == 0):
        return float("inf")
    return float(np.sum(costs[counts] / visits[counts]))
