"""The critics that a user asks for: families to be learned, and critics that are there already."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revar.critics.estimate import default_families
from revar.critics.interface import ValueFunction
from revar.environments.spaces import ArrayLayout, Layout
from revar.errors import InputError
from revar.evaluation.returns.saving import FittedCritics, load_critics
from revar.model.arrays import FloatArray
from revar.policies.stable_baselines import read_tensor

ROWS = 4096  # observations that a model is asked about at once


@dataclass(frozen=True, eq=False)
class CriticChoice:
    """Names of families, None for those that are usual, and critics that are given."""

    families: tuple[str, ...] | None = None
    given: tuple[ValueFunction, ...] = ()


def choose_critics(
    critics: Any, observations: Layout | None, has_features: bool, seeds: tuple[int, ...]
) -> CriticChoice:
    """What `critics=` stands for: a list of names of families, files, critics and models.

    Where none of them is a family, those that are usual are learned besides. `seeds` are those of
    the episodes that critics are to serve; there are none where they are not known.
    """
    if critics is None:
        return CriticChoice()
    items = critics if isinstance(critics, Sequence) and not isinstance(critics, str) else [critics]
    names: list[str] = []
    given: list[ValueFunction] = []
    for item in items:
        if isinstance(item, str | Path) and Path(item).suffix == ".npz":
            given.extend(_unseen(load_critics(item), seeds))
        elif isinstance(item, str):
            names.append(item)
        elif isinstance(item, FittedCritics):
            given.extend(_unseen(item, seeds))
        elif callable(getattr(item, "values", None)):
            given.append(item)
        elif callable(getattr(getattr(item, "policy", None), "predict_values", None)):
            given.append(_ModelValues.of(item, observations, has_features))
        elif callable(item):
            given.append(_Function(item))
        else:
            raise InputError(
                f"critics has a {type(item).__name__}; it must be the name of a family ('linear', "
                f"'network'), a saved critic (.npz), an object with a method values, a function "
                f"from inputs to values, or a trained model with a value function"
            )
    default_families(names)  # refuses what is not known before the first episode
    return CriticChoice(tuple(dict.fromkeys(names)) or None, tuple(given))


def _unseen(fitted: FittedCritics, seeds: tuple[int, ...]) -> list[ValueFunction]:
    """Critics that have not seen episodes of these seeds: the run's, and its prior's."""
    if not seeds:
        raise InputError(
            "critics has one that revar learned, and it is not known whether from these episodes; "
            "give the file that the run saved them to"
        )
    for seed in set(fitted.seeds) & set(seeds):
        raise InputError(
            f"critics has one that learned from episodes of seed {seed}, which are those of this "
            f"{'run' if seed == seeds[0] else 'prior'}, and would bias it; "
            f"give another {'seed' if seed == seeds[0] else 'prior'}"
        )
    return list(fitted.critics.values())


@dataclass(frozen=True)
class _Function:
    function: Any

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        del elapsed
        return np.asarray(self.function(inputs), dtype=np.float64)


@dataclass(frozen=True)
class _ModelValues:
    """The value function of a model of Stable-Baselines3's kind."""

    model: Any
    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def of(cls, model: Any, observations: Layout | None, has_features: bool) -> "_ModelValues":
        if (
            not isinstance(observations, ArrayLayout)
            or has_features
            or observations.inputs(np.zeros((1, observations.width))).shape[1] != observations.width
        ):
            raise InputError(
                f"the value function of a {type(model).__name__} needs observations as they are, "
                f"and critics see {'features' if has_features else 'a part'} of them here"
            )
        return cls(model, observations.space.shape, observations.dtype)

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        del elapsed
        policy, found = self.model.policy, []
        for first in range(0, len(inputs), ROWS):
            seen = inputs[first : first + ROWS].astype(self.dtype).reshape(-1, *self.shape)
            tensor, _ = policy.obs_to_tensor(seen)
            found.append(read_tensor(policy.predict_values(tensor)).ravel())
        return np.concatenate(found) if found else np.zeros(0)
