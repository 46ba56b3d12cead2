"""The critics that a user asks for: families to be learned, and critics that are there already."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revar.critics.estimate import default_families
from revar.critics.interface import ValueFunction
from revar.environments.spaces import ArrayLayout, Layout
from revar.errors import InputError, kind_of
from revar.evaluation.returns.saving import FittedCritics, load_critics
from revar.model.arrays import FloatArray
from revar.model.law import Law
from revar.policies.stable_baselines import StableBaselinesPolicy, policy_from_sb3

ROWS = 4096  # observations that a model is asked about at once


@dataclass(frozen=True, eq=False)
class CriticChoice:
    """Names of families, None for those that are usual, and critics that are given."""

    families: tuple[str, ...] | None = None
    given: tuple[ValueFunction, ...] = ()


@dataclass(frozen=True)
class Served:
    """The episodes that critics are to serve."""

    observations: Layout | None
    features: Callable[[], int] | None  # how many there are, where critics see them alone
    laws: tuple[Law, ...]  # of all policies, as far as they are known
    seeds: tuple[int, ...]  # none where they are not known

    @property
    def inputs(self) -> int | None:
        """How many numbers critics see of an observation; None if that is not known."""
        if self.features is not None:
            return self.features()
        if self.observations is None:
            return None
        return int(self.observations.inputs(np.zeros((1, self.observations.width))).shape[1])


def choose_critics(critics: Any, served: Served) -> CriticChoice:
    """What `critics=` stands for: a list of names of families, files, critics and models.

    Where none of them is a family, those that are usual are learned besides.
    """
    if critics is None:
        return CriticChoice()
    items = critics if isinstance(critics, Sequence) and not isinstance(critics, str) else [critics]
    names: list[str] = []
    given: list[ValueFunction] = []
    for item in items:
        if isinstance(item, type | Mapping):  # these have methods values, and are no critics
            raise _no_critic(item)
        if isinstance(item, str | Path) and Path(item).suffix == ".npz":
            given.extend(_usable(load_critics(item), served))
        elif isinstance(item, str):
            names.append(item)
        elif isinstance(item, FittedCritics):
            given.extend(_usable(item, served))
        elif callable(getattr(getattr(item, "policy", None), "predict_values", None)):
            given.append(_ModelValues.of(item, served))
        elif callable(getattr(item, "values", None)):
            given.append(_try_out(item, served))
        elif callable(item):
            given.append(_try_out(_Function(item), served))
        else:
            raise _no_critic(item)
    default_families(names)  # refuses what is not known before the first episode
    return CriticChoice(tuple(dict.fromkeys(names)) or None, tuple(given))


def _no_critic(item: Any) -> InputError:
    found = f"the class {item.__name__}" if isinstance(item, type) else kind_of(item)
    return InputError(
        f"critics has {found}; it must be the name of a family ('linear', 'network'), a saved "
        f"critic (.npz), an object with a method values, a function from inputs to values, or a "
        f"trained model with a value function"
    )


def _try_out(critic: ValueFunction, served: Served) -> ValueFunction:
    """A user's critic, if it has a value for each row; what it says of real ones is seen later."""
    if served.inputs is None:
        return critic
    try:
        found = np.shape(critic.values(np.zeros((2, served.inputs)), np.zeros(2)))
    except Exception:  # zeros may be none of its inputs
        return critic
    if found != (2,):
        raise InputError(
            f"critics has one that gives an array of shape {found} for 2 inputs; it must give a "
            f"value for each, (2,)"
        )
    return critic


def _usable(fitted: FittedCritics, served: Served) -> list[ValueFunction]:
    """Critics of the same inputs and laws that have not seen episodes of the run or its prior."""
    seeds = served.seeds
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
    for critic in fitted.critics.values():
        scores = critic.widths[1]
        if served.inputs is not None:
            check_inputs(critic, served.inputs)
        for law in served.laws:
            if law.score_width not in (0, scores):
                raise InputError(
                    f"critics has one of a policy whose actions have {scores} scores; those of the "
                    f"law {str(law)!r} have {law.score_width}"
                )
    return list(fitted.critics.values())


def check_inputs(critic: Any, inputs: int) -> None:
    """Refuse a critic that revar learned from another number of inputs."""
    wanted = getattr(critic, "widths", (inputs,))[0]
    if wanted != inputs:
        raise InputError(
            f"critics has one that looks at {wanted} numbers of an observation; here there are "
            f"{inputs}"
        )


@dataclass(frozen=True)
class _Function:
    function: Any

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        del elapsed
        return np.asarray(self.function(inputs), dtype=np.float64)


@dataclass(frozen=True)
class _ModelValues:
    """The value function of a model of Stable-Baselines3's kind."""

    model: StableBaselinesPolicy
    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def of(cls, model: Any, served: Served) -> "_ModelValues":
        observations = served.observations
        seen = "a part" if served.features is None else "features"
        if (
            served.features is not None
            or not isinstance(observations, ArrayLayout)
            or served.inputs != observations.width
        ):
            raise InputError(
                f"the value function of {kind_of(model)} needs observations as they are, "
                f"and critics see {seen} of them here"
            )
        if not isinstance(model, StableBaselinesPolicy):
            model = policy_from_sb3(model, deterministic=True)
        return cls(model, observations.space.shape, observations.dtype)

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        del elapsed
        parts = [inputs[first : first + ROWS] for first in range(0, len(inputs), ROWS)]
        found = [
            self.model.values(part.astype(self.dtype).reshape(-1, *self.shape)) for part in parts
        ]
        return np.concatenate(found) if found else np.zeros(0)
