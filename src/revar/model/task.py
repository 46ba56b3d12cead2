"""Task: the question asked of collected data, and what may be known when answering it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.policy import checked_policy, checked_probabilities
from revar.model.transitions import checked_initial
from revar.model.validation import (
    SUM_TOLERANCE,
    as_floats,
    checked_discount,
    checked_episodes,
    checked_horizon,
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
        policy = checked_probabilities(policy, "policy", *policy.shape)
        above = policy.sum(axis=1) > 1.0 + SUM_TOLERANCE
        if above.any():
            state = int(np.argmax(above))
            total = policy[state].sum()
            raise InputError(f"policy of state {state} sums to {total:.12g}; it must sum to 1")
        checked: dict[str, Any] = {
            "policy": policy,
            "horizon": checked_horizon(self.horizon),
            "discount": checked_discount(self.discount),
        }
        if self.initial is not None:
            checked["initial"] = checked_initial(self.initial)
            if checked["initial"].shape != policy.shape[:1]:
                raise InputError(
                    f"initial has {checked['initial'].size} states; the policy covers "
                    f"{policy.shape[0]}"
                )
        if self.episodes is not None:
            checked["episodes"] = checked_episodes(self.episodes)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, mdp: TabularMDP, policy: object, *, episodes: int | None = None) -> "Task":
        """The task of evaluating `policy` on `mdp`, with the model known."""
        return cls(
            policy=checked_policy(mdp, policy),
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
