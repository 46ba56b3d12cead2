"""Importance sampling: exact variances of its estimates under any behavior, for one episode.

K independent episodes have that variance over K: it is the K*MSE of an unbiased estimator.

The recursions below are compiled. They work on the `Outcomes` layout with the reward's moments
outcome by outcome, and take a true model and an estimated one alike. pi is the target policy, b
the behavior, [1 or L, S, A]; every action with pi > 0 must have b > 0 in the states of `layers`.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.errors import InputError
from revar.model.arrays import FloatArray, Layers, Outcomes
from revar.model.mdp import TabularMDP
from revar.model.structure import reachable_layers
from revar.model.task import check_behavior, check_policy
from revar.theory.values import policy_value, state_values


class OutcomeModel(NamedTuple):
    """What can follow each pair, and the reward that comes with it."""

    outcomes: Outcomes
    reward_mean: FloatArray  # [slot]
    reward_variance: FloatArray  # [slot] given the outcome


def importance_sampling_variance(mdp: TabularMDP, policy: Any, behavior: Any) -> float:
    """Var[prod_t (pi/b) sum_t gamma^t R_t] under `behavior`.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    behavior
        How actions are chosen: an array [S, A], or [L, S, A] with one table for each step.
    """
    target, table, layers = _check_inputs(mdp, policy, behavior)
    moments, _ = ordinary_moments(outcome_model(mdp), target, table, layers, mdp.discount)
    second = mdp.arrays.initial @ moments[0, : mdp.states, 2]
    return float(second - policy_value(mdp, target) ** 2)


def importance_sampling_gradient(mdp: TabularMDP, policy: Any, behavior: Any) -> FloatArray:
    """The derivative of `importance_sampling_variance` with respect to the behavior's entries.

    Of the shape of `behavior`, each entry taken as free of the others; zero where the target
    policy cannot be.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    behavior
        How actions are chosen: an array [S, A], or [L, S, A] with one table for each step.
    """
    target, table, layers = _check_inputs(mdp, policy, behavior)
    model = outcome_model(mdp)
    _, pairs = ordinary_moments(model, target, table, layers, mdp.discount)
    gradient = ordinary_gradient(
        model, mdp.arrays.initial, target, table, layers, mdp.discount, pairs
    )
    return gradient.reshape(np.shape(behavior))


def per_decision_variance(mdp: TabularMDP, policy: Any, behavior: Any) -> float:
    """Var[sum_t gamma^t R_t prod_{k<=t} (pi/b)] under `behavior`.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    behavior
        How actions are chosen: an array [S, A], or [L, S, A] with one table for each step.
    """
    target, table, layers = _check_inputs(mdp, policy, behavior)
    moments = per_decision_moments(outcome_model(mdp), target, table, layers, mdp.discount)
    return _at_the_start(mdp, target, table, moments) - policy_value(mdp, target) ** 2


def doubly_robust_variance(mdp: TabularMDP, policy: Any, behavior: Any) -> float:
    """Var of the doubly robust estimate under `behavior`, where the action values are known.

    With values fitted to K episodes, the estimate's K*MSE tends to this as K grows.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    behavior
        How actions are chosen: an array [S, A], or [L, S, A] with one table for each step.
    """
    target, table, layers = _check_inputs(mdp, policy, behavior)
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


def _check_inputs(
    mdp: TabularMDP, policy: Any, behavior: Any
) -> tuple[FloatArray, FloatArray, Layers]:
    """Policy, behavior [1 or L, S, A] and layers; refused where an action is left out."""
    target, table = check_policy(mdp, policy), check_behavior(mdp, behavior)
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


@compiled
def per_decision_moments(
    model: OutcomeModel,
    policy: FloatArray,
    behavior: FloatArray,
    layers: Layers,
    discount: float,
) -> FloatArray:
    """u_t(s,a) = E[(R + gamma X_{t+1}(S'))^2 | s,a] under the behavior, [L, S, A].

    X_t = (pi/b) (R + gamma X_{t+1}) is the per-decision estimate from step t on. Its mean is
    v_t(s) whatever the behavior, so that with m_t(s) = E[X_t^2 | s] = sum_a (pi^2/b) u_t(s,a)

    u_t(s,a) = sum_s' P (sigma^2 + mu^2 + 2 gamma mu v_{t+1}(s') + gamma^2 m_{t+1}(s')).

    With b = pi the estimate is the return, and u_t(s,a) its second moment.
    """
    (row_start, successors, probability), mean, variance = model
    start, layer_states = layers
    states, actions = policy.shape
    horizon = start.size - 1
    moments = np.zeros((horizon, states, actions))
    values = np.zeros((2, states + 1))
    squares = np.zeros((2, states + 1))
    for t in range(horizon - 1, -1, -1):
        here, ahead = t % 2, (t + 1) % 2
        table = t if behavior.shape[0] > 1 else 0
        values[here] = 0.0
        squares[here] = 0.0
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            for a in range(actions):
                share = policy[s, a]
                if share == 0.0:
                    continue
                p = s * actions + a
                moment = 0.0
                value = 0.0
                for o in range(row_start[p], row_start[p + 1]):
                    s2 = successors[o]
                    future = discount * values[ahead, s2]
                    value += probability[o] * (mean[o] + future)
                    moment += probability[o] * (
                        variance[o]
                        + mean[o] * (mean[o] + 2.0 * future)
                        + discount * discount * squares[ahead, s2]
                    )
                moments[t, s, a] = max(0.0, moment)
                values[here, s] += share * value
                squares[here, s] += share * share / behavior[table, s, a] * moments[t, s, a]
    return moments


@compiled
def doubly_robust_moments(
    model: OutcomeModel,
    policy: FloatArray,
    behavior: FloatArray,
    layers: Layers,
    discount: float,
    optimal: bool,
) -> FloatArray:
    """u_t(s,a) = Var[R + gamma X_{t+1}(S') | s,a], [L, S, A], where the action values are known.

    X_t = v_t(s) + (pi/b) (R + gamma X_{t+1} - q_t(s,a)) has the mean v_t(s) after every action, so
    that its variance is V_t(s) = sum_a (pi^2/b) u_t(s,a), with

    u_t(s,a) = nu_t(s,a) + gamma^2 sum_s' P V_{t+1}(s'),  nu_t = Var[R + gamma v_{t+1}(S') | s,a].

    With `optimal` the behavior is not looked at; at every step the best one, proportional to
    pi sqrt(u), is taken, and V_t(s) = (sum_a pi sqrt(u))^2.
    """
    (row_start, successors, probability), mean, variance = model
    start, layer_states = layers
    states, actions = policy.shape
    horizon = start.size - 1
    moments = np.zeros((horizon, states, actions))
    values = np.zeros((2, states + 1))
    variances = np.zeros((2, states + 1))
    for t in range(horizon - 1, -1, -1):
        here, ahead = t % 2, (t + 1) % 2
        table = t if behavior.shape[0] > 1 else 0
        values[here] = 0.0
        variances[here] = 0.0
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            root = 0.0
            for a in range(actions):
                share = policy[s, a]
                if share == 0.0:
                    continue
                p = s * actions + a
                value = 0.0
                for o in range(row_start[p], row_start[p + 1]):
                    value += probability[o] * (mean[o] + discount * values[ahead, successors[o]])
                moment = 0.0
                for o in range(row_start[p], row_start[p + 1]):
                    s2 = successors[o]
                    moment += probability[o] * (
                        variance[o]
                        + (mean[o] + discount * values[ahead, s2] - value) ** 2
                        + discount * discount * variances[ahead, s2]
                    )
                moments[t, s, a] = moment
                values[here, s] += share * value
                root += share * sqrt(moment)
                if not optimal:
                    variances[here, s] += share * share / behavior[table, s, a] * moment
            if optimal:
                variances[here, s] = root * root
    return moments


@compiled
def ordinary_moments(
    model: OutcomeModel,
    policy: FloatArray,
    behavior: FloatArray,
    layers: Layers,
    discount: float,
) -> tuple[FloatArray, FloatArray]:
    """E[W^2 G^k], k = 0, 1, 2, from a state on [L+1, S+1, 3], and from a pair on [L, S, A, 3].

    G is the return and W the product of pi/b from step t on: one weight for the whole episode, so
    that the three are needed to go one step back,

    z_k(t,s) = sum_a (pi^2/b) e_k(t,s,a),           e_0 = sum_s' P z_0',
    e_1 = sum_s' P (mu z_0' + gamma z_1'),
    e_2 = sum_s' P ((sigma^2 + mu^2) z_0' + 2 gamma mu z_1' + gamma^2 z_2').
    """
    (row_start, successors, probability), mean, variance = model
    start, layer_states = layers
    states, actions = policy.shape
    horizon = start.size - 1
    moments = np.zeros((horizon + 1, states + 1, 3))
    pairs = np.zeros((horizon, states, actions, 3))
    moments[horizon, :, 0] = 1.0
    for t in range(horizon - 1, -1, -1):
        table = t if behavior.shape[0] > 1 else 0
        moments[t, states, 0] = 1.0
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            for a in range(actions):
                if policy[s, a] == 0.0:
                    continue
                p = s * actions + a
                plain = 0.0
                once = 0.0
                twice = 0.0
                for o in range(row_start[p], row_start[p + 1]):
                    s2 = successors[o]
                    chance, mu = probability[o], mean[o]
                    zero, one = moments[t + 1, s2, 0], discount * moments[t + 1, s2, 1]
                    two = discount * discount * moments[t + 1, s2, 2]
                    plain += chance * zero
                    once += chance * (mu * zero + one)
                    twice += chance * ((variance[o] + mu * mu) * zero + 2.0 * mu * one + two)
                pairs[t, s, a, 0], pairs[t, s, a, 1], pairs[t, s, a, 2] = plain, once, twice
                weight = policy[s, a] ** 2 / behavior[table, s, a]
                moments[t, s, 0] += weight * plain
                moments[t, s, 1] += weight * once
                moments[t, s, 2] += weight * twice
    return moments, pairs


@compiled
def ordinary_gradient(
    model: OutcomeModel,
    initial: FloatArray,
    policy: FloatArray,
    behavior: FloatArray,
    layers: Layers,
    discount: float,
    pairs: FloatArray,
) -> FloatArray:
    """The derivative of E[W^2 G^2] with respect to every b_t(a|s), [1 or L, S, A].

    y_k(t,s), the derivative with respect to z_k(t,s), goes forward from y_2 = d0, y_1 = y_0 = 0 by
    the transpose of the recursion of `ordinary_moments`, which gives e_k in `pairs`, and

    dJ/db_t(a|s) = -(pi/b)^2 sum_k y_k e_k;  a stationary behavior collects it over the steps.
    """
    (row_start, successors, probability), mean, variance = model
    start, layer_states = layers
    states, actions = policy.shape
    horizon = start.size - 1
    gradient = np.zeros(behavior.shape)
    reach = np.zeros((2, states + 1, 3))
    reach[0, :states, 2] = initial
    for t in range(horizon):
        table = t if behavior.shape[0] > 1 else 0
        here, ahead = t % 2, (t + 1) % 2
        reach[ahead] = 0.0
        for i in range(start[t], start[t + 1]):
            s = layer_states[i]
            y0, y1, y2 = reach[here, s, 0], reach[here, s, 1], reach[here, s, 2]
            for a in range(actions):
                if policy[s, a] == 0.0:
                    continue
                ratio = policy[s, a] / behavior[table, s, a]
                gradient[table, s, a] -= (ratio * ratio) * (
                    y0 * pairs[t, s, a, 0] + y1 * pairs[t, s, a, 1] + y2 * pairs[t, s, a, 2]
                )
                p = s * actions + a
                for o in range(row_start[p], row_start[p + 1]):
                    weight, mu = ratio * policy[s, a] * probability[o], mean[o]
                    s2 = successors[o]
                    reach[ahead, s2, 2] += weight * (discount * discount) * y2
                    reach[ahead, s2, 1] += weight * discount * (2.0 * mu * y2 + y1)
                    reach[ahead, s2, 0] += weight * ((variance[o] + mu * mu) * y2 + mu * y1 + y0)
    return gradient
