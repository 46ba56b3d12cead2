"""Task: the question asked of collected data. Checks of target policies and behaviors."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray
from revar.model.mdp import TabularMDP, check_initial
from revar.model.structure import reachable_layers
from revar.model.validation import (
    SUM_TOLERANCE,
    as_floats,
    check_discount,
    check_episodes,
    check_horizon,
    pair_name,
    refuse_first,
)


@dataclass(frozen=True, eq=False)
class Task:
    """Evaluate `policy` over episodes of `horizon` steps.

    `initial` is None where the first state's distribution has to be estimated too; `episodes` is
    the budget, None where there is none; `model` is the truth, handed only to strategies and
    estimators that say they know it.
    """

    policy: FloatArray  # [S, A]
    horizon: int
    discount: float = 1.0
    initial: FloatArray | None = None  # [S]
    episodes: int | None = None
    model: TabularMDP | None = None

    def __post_init__(self) -> None:
        policy = as_floats(self.policy, "policy")
        if policy.ndim != 2:
            raise InputError(f"policy has shape {policy.shape}; it must be [states, actions]")
        policy = check_probabilities(policy, "policy", *policy.shape)
        above = policy.sum(axis=1) > 1.0 + SUM_TOLERANCE
        if above.any():
            state = int(np.argmax(above))
            total = policy[state].sum()
            raise InputError(f"policy of state {state} sums to {total:.12g}; it must sum to 1")
        checked: dict[str, Any] = {
            "policy": policy,
            "horizon": check_horizon(self.horizon),
            "discount": check_discount(self.discount),
        }
        if self.initial is not None:
            checked["initial"] = check_initial(self.initial)
            if checked["initial"].shape != policy.shape[:1]:
                raise InputError(
                    f"initial has {checked['initial'].size} states; the policy covers "
                    f"{policy.shape[0]}"
                )
        if self.episodes is not None:
            checked["episodes"] = check_episodes(self.episodes)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, mdp: TabularMDP, policy: object, *, episodes: int | None = None) -> "Task":
        """The task of evaluating `policy` on `mdp`, with the model known."""
        return cls(
            policy=check_policy(mdp, policy),
            horizon=mdp.horizon,
            discount=mdp.discount,
            initial=mdp.arrays.initial,
            episodes=episodes,
            model=mdp,
        )

    def without_model(self) -> "Task":
        """The same question for those who may not know the truth."""
        return replace(self, model=None)

    @property
    def states(self) -> int:
        """How many states the policy covers."""
        return int(self.policy.shape[0])

    @property
    def actions(self) -> int:
        """How many actions there are."""
        return int(self.policy.shape[1])

    def known_model(self, asker: str) -> TabularMDP:
        """The true model, or an error that says who asked for it."""
        if self.model is None:
            raise InputError(f"{asker} needs the true model, and this task has none")
        return self.model


def check_policy(mdp: TabularMDP, policy: Any) -> FloatArray:
    """The policy as an array [S, A] whose rows sum to 1 wherever the policy itself can lead."""
    table = check_probabilities(policy, "policy", mdp.states, mdp.actions)
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, table > 0, mdp.horizon)
    check_sums(table, "policy", np.unique(layers.states))
    return table


def check_behavior(mdp: TabularMDP, behavior: Any) -> FloatArray:
    """A behavior as an array [1 or L, S, A]: stationary, or one table for each step.

    Like a policy's, its rows sum to 1 wherever it can lead.
    """
    table = as_floats(behavior, "behavior")
    if table.ndim == 2:
        table = check_probabilities(table, "behavior", mdp.states, mdp.actions)
        layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, table > 0, mdp.horizon)
        check_sums(table, "behavior", np.unique(layers.states))
        table = table[None]
    elif table.shape == (mdp.horizon, mdp.states, mdp.actions):
        present = mdp.arrays.initial
        for t in range(mdp.horizon):
            name = f"behavior at step {t}"
            step = check_probabilities(table[t], name, mdp.states, mdp.actions)
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


def check_probabilities(table: Any, name: str, states: int, actions: int) -> FloatArray:
    """An array [S, A] of finite numbers in [0, 1]."""
    array = as_floats(table, name)
    if array.shape != (states, actions):
        raise InputError(
            f"{name} has shape {array.shape}; it must be [states, actions] = {(states, actions)}"
        )

    def place(index: int) -> str:
        return pair_name(index, actions)

    refuse_first(~np.isfinite(array), array, name, place, "must be finite")
    refuse_first(
        (array < 0) | (array > 1 + SUM_TOLERANCE), array, name, place, "must lie in [0, 1]"
    )
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
