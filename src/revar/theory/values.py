"""Exact values, occupancies and return variances of a policy on a known model."""

from typing import Any

import numpy as np

from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.structure import all_layers, reachable_layers
from revar.model.task import check_behavior, check_policy
from revar.theory.recursions import backward_values, backward_variances, forward_occupancy


def policy_value(mdp: TabularMDP, policy: Any) -> float:
    """v(pi), the expected discounted return of an episode under `policy`.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    """
    target = check_policy(mdp, policy)
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, target > 0, mdp.horizon)
    values = backward_values(
        mdp.arrays.outcomes, mdp.arrays.reward_mean, target[None], layers, mdp.discount
    )
    return float(mdp.arrays.initial @ values[0, : mdp.states])


def state_values(mdp: TabularMDP, policy: Any) -> FloatArray:
    """v_t(s) for every step and state, [L+1, S]; the last row, past the horizon, is zero.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    """
    return _values(mdp, check_policy(mdp, policy))[:, : mdp.states]


def occupancy(mdp: TabularMDP, behavior: Any) -> FloatArray:
    """x_t(s,a), the probability of taking a in s at step t, [L, S, A].

    Summed over t it gives the expected visits of an episode.

    Parameters
    ----------
    mdp
        The model.
    behavior
        How actions are chosen: an array [S, A], or [L, S, A] with one table for each step.
    """
    table = check_behavior(mdp, behavior)
    return forward_occupancy(mdp.arrays.outcomes, mdp.arrays.initial, table, mdp.horizon)


def return_variance(mdp: TabularMDP, policy: Any) -> float:
    """Var of the discounted return of one episode: K*MSE of on-policy Monte Carlo.

    Parameters
    ----------
    mdp
        The model.
    policy
        The target policy, an array [S, A].
    """
    target = check_policy(mdp, policy)
    values = _values(mdp, target)
    variances = backward_variances(
        mdp.arrays.outcomes,
        np.array(mdp.outcome_reward_mean),
        np.array(mdp.outcome_reward_std),
        target,
        values,
        mdp.discount,
    )
    value = mdp.arrays.initial @ values[0, : mdp.states]
    between = (values[0, : mdp.states] - value) ** 2
    return float(mdp.arrays.initial @ (variances[0, : mdp.states] + between))


def _values(mdp: TabularMDP, target: FloatArray) -> FloatArray:
    layers = all_layers(mdp.states, mdp.horizon)
    return backward_values(
        mdp.arrays.outcomes, mdp.arrays.reward_mean, target[None], layers, mdp.discount
    )
