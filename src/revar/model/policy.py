"""Checks of target policies."""

from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray
from revar.model.mdp import TabularMDP
from revar.model.reachability import reachable_layers
from revar.model.validation import SUM_TOLERANCE, as_floats, pair_name, refuse


def checked_policy(mdp: TabularMDP, policy: Any) -> FloatArray:
    """The policy as an array [S, A] whose rows sum to 1 wherever the policy itself can lead."""
    table = checked_probabilities(policy, "policy", mdp.states, mdp.actions)
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, table > 0, mdp.horizon)
    check_sums(table, "policy", np.unique(layers.states))
    return table


def checked_behavior(mdp: TabularMDP, behavior: Any) -> FloatArray:
    """A behavior as an array [1 or L, S, A]: stationary, or one table for each step.

    Like a policy's, its rows sum to 1 wherever it can lead.
    """
    table = as_floats(behavior, "behavior")
    if table.ndim == 2:
        table = checked_probabilities(table, "behavior", mdp.states, mdp.actions)
        layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, table > 0, mdp.horizon)
        check_sums(table, "behavior", np.unique(layers.states))
        table = table[None]
    elif table.shape == (mdp.horizon, mdp.states, mdp.actions):
        present = mdp.arrays.initial
        for t in range(mdp.horizon):
            name = f"behavior at step {t}"
            step = checked_probabilities(table[t], name, mdp.states, mdp.actions)
            check_sums(step, name, np.flatnonzero(present))
            layers = reachable_layers(mdp.arrays.outcomes, present, step > 0, 2)
            present = np.zeros(mdp.states)
            present[layers.states[layers.start[1] :]] = 1.0
    else:
        raise InputError(
            f"behavior has shape {table.shape}; it must be [states, actions] = "
            f"{(mdp.states, mdp.actions)} or [horizon, states, actions] = "
            f"{(mdp.horizon, mdp.states, mdp.actions)}"
        )
    return np.ascontiguousarray(table)


def checked_probabilities(table: Any, name: str, states: int, actions: int) -> FloatArray:
    """An array [S, A] of finite numbers in [0, 1]."""
    array = as_floats(table, name)
    if array.shape != (states, actions):
        raise InputError(
            f"{name} has shape {array.shape}; it must be [states, actions] = {(states, actions)}"
        )

    def place(index: int) -> str:
        return pair_name(index, actions)

    refuse(~np.isfinite(array), array, name, place, "must be finite")
    refuse((array < 0) | (array > 1 + SUM_TOLERANCE), array, name, place, "must lie in [0, 1]")
    return np.ascontiguousarray(array)


def check_sums(table: FloatArray, name: str, visited: IntArray) -> None:
    """Refuse the first of the `visited` states whose row does not sum to 1."""
    wrong = np.abs(table[visited].sum(axis=1) - 1.0) > SUM_TOLERANCE
    if wrong.any():
        state = int(visited[np.argmax(wrong)])
        raise InputError(
            f"{name} of state {state} sums to {table[state].sum():.12g}; a state that it reaches "
            f"needs probabilities that sum to 1"
        )
