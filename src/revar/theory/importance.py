"""Exact variances of importance-sampling estimates under any behavior, for one episode.

K independent episodes have that variance over K: it is the K*MSE of an unbiased estimator.
"""

from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray, Layers
from revar.model.mdp import TabularMDP
from revar.model.structure import reachable_layers
from revar.model.task import checked_behavior, checked_policy
from revar.theory.importance_steps import (
    OutcomeModel,
    doubly_robust_moments,
    ordinary_gradient,
    ordinary_moments,
    per_decision_moments,
)
from revar.theory.values import policy_value, state_values


def importance_sampling_variance(mdp: TabularMDP, policy: Any, behavior: Any) -> float:
    """Var[prod_t (pi/b) sum_t gamma^t R_t] under `behavior` [S, A] or [L, S, A]."""
    target, table, layers = _checked(mdp, policy, behavior)
    moments, _ = ordinary_moments(outcome_model(mdp), target, table, layers, mdp.discount)
    second = mdp.arrays.initial @ moments[0, : mdp.states, 2]
    return float(second - policy_value(mdp, target) ** 2)


def importance_sampling_gradient(mdp: TabularMDP, policy: Any, behavior: Any) -> FloatArray:
    """The derivative of `importance_sampling_variance` with respect to the behavior's entries.

    Of the shape of `behavior`, each entry taken as free of the others; zero where the target
    policy cannot be.
    """
    target, table, layers = _checked(mdp, policy, behavior)
    model = outcome_model(mdp)
    _, pairs = ordinary_moments(model, target, table, layers, mdp.discount)
    gradient = ordinary_gradient(
        model, mdp.arrays.initial, target, table, layers, mdp.discount, pairs
    )
    return gradient.reshape(np.shape(behavior))


def per_decision_variance(mdp: TabularMDP, policy: Any, behavior: Any) -> float:
    """Var[sum_t gamma^t R_t prod_{k<=t} (pi/b)] under `behavior` [S, A] or [L, S, A]."""
    target, table, layers = _checked(mdp, policy, behavior)
    moments = per_decision_moments(outcome_model(mdp), target, table, layers, mdp.discount)
    return _at_the_start(mdp, target, table, moments) - policy_value(mdp, target) ** 2


def doubly_robust_variance(mdp: TabularMDP, policy: Any, behavior: Any) -> float:
    """Var of the doubly robust estimate under `behavior`, where the action values are known.

    With values fitted to K episodes, the estimate's K*MSE tends to this as K grows.
    """
    target, table, layers = _checked(mdp, policy, behavior)
    moments = doubly_robust_moments(outcome_model(mdp), target, table, layers, mdp.discount, False)
    values = state_values(mdp, target)[0]
    between = mdp.arrays.initial @ (values - mdp.arrays.initial @ values) ** 2
    return _at_the_start(mdp, target, table, moments) + float(between)


def outcome_model(mdp: TabularMDP) -> OutcomeModel:
    """The true model in the form that the recursions take."""
    return OutcomeModel(
        mdp.arrays.outcomes,
        np.array(mdp.outcome_reward_mean),
        np.array(mdp.outcome_reward_std) ** 2,
    )


def _checked(mdp: TabularMDP, policy: Any, behavior: Any) -> tuple[FloatArray, FloatArray, Layers]:
    """Policy, behavior [1 or L, S, A] and layers; refused where an action is left out."""
    target, table = checked_policy(mdp, policy), checked_behavior(mdp, behavior)
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, target > 0, mdp.horizon)
    for t in range(mdp.horizon):
        entered = layers.states[layers.start[t] : layers.start[t + 1]]
        row = table[min(t, len(table) - 1)]
        left_out = (target[entered] > 0) & (row[entered] == 0)
        if left_out.any():
            place, action = (int(i) for i in np.argwhere(left_out)[0])
            raise InputError(
                f"the behavior never takes action {action} in state {entered[place]} at step {t}, "
                f"which the target policy does; importance sampling needs every action of it"
            )
    return target, table, layers


def _at_the_start(
    mdp: TabularMDP, target: FloatArray, table: FloatArray, moments: FloatArray
) -> float:
    """sum_s d0(s) sum_a (pi^2/b) u_0(s,a)."""
    weight = np.divide(target**2, table[0], out=np.zeros(target.shape), where=table[0] > 0)
    return float(mdp.arrays.initial @ (weight * moments[0]).sum(axis=1))
