"""Reward laws, each fixed by its mean and standard deviation, and the moments a user gives."""

from dataclasses import dataclass
from enum import IntEnum
from math import inf, sqrt
from typing import Any

import numpy as np
from scipy import sparse

from revar.errors import InputError
from revar.model.arrays import FloatArray, Outcomes
from revar.model.validation import as_floats, pair_name, refuse_first


class RewardLaw(IntEnum):
    """The shape of the reward's distribution around its mean."""

    NORMAL = 0
    TWO_POINT = 1  # mean - std or mean + std, each with probability 1/2
    BERNOULLI = 2  # 1 with probability mean, else 0; std must be sqrt(mean (1 - mean))
    UNIFORM = 3  # on mean +- sqrt(3) std
    DETERMINISTIC = 4  # the mean; std must be 0

    @property
    def label(self) -> str:
        """The name under which users choose the law."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def find(cls, label: str) -> "RewardLaw":
        """The law of that name."""
        for law in cls:
            if law.label == label:
                return law
        known = ", ".join(law.label for law in cls)
        raise InputError(f"reward_law is {label!r}; known laws: {known}")


# How many standard deviations the law reaches from its mean.
REACH = {
    RewardLaw.NORMAL: inf,
    RewardLaw.TWO_POINT: 1.0,
    RewardLaw.UNIFORM: sqrt(3.0),
    RewardLaw.DETERMINISTIC: 0.0,
}


def reward_bound(law: RewardLaw, mean: FloatArray, std: FloatArray) -> float:
    """The smallest eta with |R| <= eta for sure; infinite for normal rewards with noise."""
    if law is RewardLaw.BERNOULLI:
        return 1.0 if np.any(mean > 0) else 0.0
    noise = np.multiply(REACH[law], std, out=np.zeros_like(std), where=std > 0)
    return float(np.max(np.abs(mean) + noise, initial=0.0))


def first_conflict(law: RewardLaw, mean: FloatArray, std: FloatArray) -> tuple[int, str] | None:
    """The flat index of the first mean and std that the law cannot have, and why."""
    if law is RewardLaw.BERNOULLI:
        outside = (mean < 0) | (mean > 1)
        if outside.any():
            index = int(np.argmax(outside))
            return index, f"reward_mean is {mean.flat[index]:g}; a bernoulli mean lies in [0, 1]"
        expected = np.sqrt(mean * (1.0 - mean))
        wrong = ~np.isclose(std, expected, rtol=1e-9, atol=1e-9)
        if wrong.any():
            index = int(np.argmax(wrong))
            return index, (
                f"reward_std is {std.flat[index]:g}; a bernoulli reward of mean "
                f"{mean.flat[index]:g} has std {expected.flat[index]:g}"
            )
    if law is RewardLaw.DETERMINISTIC and np.any(std > 0):
        index = int(np.argmax(std > 0))
        return index, f"reward_std is {std.flat[index]:g}; a deterministic reward has std 0"
    return None


@dataclass(frozen=True)
class RewardMoments:
    """Reward moments in the shape the model keeps, still to be checked."""

    mean: FloatArray  # [S, A]
    std: FloatArray  # [S, A]
    outcome_mean: FloatArray | None  # [slot]
    outcome_std: FloatArray | None  # [slot]

    @classmethod
    def read(
        cls, mean: Any, std: Any, outcomes: Outcomes, states: int, actions: int
    ) -> "RewardMoments":
        """Moments by pair or by outcome, from whichever form both were given in."""
        mean, std = _as_given(mean, "reward_mean"), _as_given(std, "reward_std")
        forms = {"reward_mean": _form(mean), "reward_std": _form(std)}
        if "by outcome" not in forms.values():
            return cls(
                _by_pair(mean, "reward_mean", states, actions),
                _by_pair(std, "reward_std", states, actions),
                None,
                None,
            )
        for name, form in forms.items():
            if form == "by pair":
                raise InputError(
                    f"{name} is given per state and action while its partner is given per "
                    f"outcome; give both per outcome, or a scalar"
                )
        outcome_mean = _by_outcome(mean, "reward_mean", outcomes, states, actions)
        outcome_std = _by_outcome(std, "reward_std", outcomes, states, actions)
        pair_mean, pair_std = _pair_moments(outcomes, outcome_mean, outcome_std)
        shape = (states, actions)
        return cls(pair_mean.reshape(shape), pair_std.reshape(shape), outcome_mean, outcome_std)

    def check(self, law: RewardLaw, outcomes: Outcomes, actions: int) -> None:
        """Refuse the first moment that is not finite, negative, or not one the law can have."""
        mean, std = self.mean.ravel(), self.std.ravel()
        if self.outcome_mean is not None and self.outcome_std is not None:
            mean, std = self.outcome_mean, self.outcome_std

        def place(index: int) -> str:
            if self.outcome_mean is None:
                return pair_name(index, actions)
            pair = int(np.searchsorted(outcomes.row_start, index, side="right")) - 1
            successor = int(outcomes.successor[index])
            ends = successor == self.mean.shape[0]
            return f"{pair_name(pair, actions)}, outcome " + (
                "'episode ends'" if ends else f"successor {successor}"
            )

        for name, values in (("reward_mean", mean), ("reward_std", std)):
            refuse_first(~np.isfinite(values), values, name, place, "must be finite")
        refuse_first(std < 0, std, "reward_std", place, "must not be negative")
        conflict = first_conflict(law, mean, std)
        if conflict is not None:
            index, reason = conflict
            raise InputError(f"{place(index)}: {reason}")


def _as_given(values: Any, name: str) -> Any:
    return values if sparse.issparse(values) else as_floats(values, name)


def _form(values: Any) -> str:
    if sparse.issparse(values) or values.ndim == 3:
        return "by outcome"
    return "scalar" if values.ndim == 0 else "by pair"


def _by_pair(array: FloatArray, name: str, states: int, actions: int) -> FloatArray:
    if array.ndim == 0:
        return np.full((states, actions), float(array))
    if array.shape != (states, actions):
        raise InputError(
            f"{name} has shape {array.shape}; it must be [states, actions] = "
            f"{(states, actions)}, or {(states, actions, states + 1)} per outcome"
        )
    return np.ascontiguousarray(array)


def _by_outcome(
    values: Any, name: str, outcomes: Outcomes, states: int, actions: int
) -> FloatArray:
    """The values at the slots of `outcomes`; values at impossible outcomes are not used."""
    pairs = np.repeat(np.arange(states * actions), np.diff(outcomes.row_start))
    if sparse.issparse(values):
        if values.shape != (states * actions, states + 1):
            raise InputError(
                f"{name} has shape {values.shape}; sparse rewards per outcome must be "
                f"[states*actions, states+1] = {(states * actions, states + 1)}"
            )
        table = sparse.csr_array(values, dtype=np.float64)
        return np.asarray(table[pairs, outcomes.successor], dtype=np.float64).ravel()
    if values.ndim == 0:
        return np.full(pairs.size, float(values))
    if values.shape != (states, actions, states + 1):
        raise InputError(
            f"{name} has shape {values.shape}; per outcome it must be "
            f"[states, actions, states+1] = {(states, actions, states + 1)}"
        )
    return np.ascontiguousarray(values.reshape(states * actions, -1)[pairs, outcomes.successor])


def _pair_moments(
    outcomes: Outcomes, mean: FloatArray, std: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of R given (s,a), by the law of total variance."""
    lengths = np.diff(outcomes.row_start)
    rows = np.repeat(np.arange(lengths.size), lengths)
    pair_mean: FloatArray = np.bincount(
        rows, outcomes.probability * mean, minlength=lengths.size
    ).astype(np.float64)
    spread = std**2 + (mean - pair_mean[rows]) ** 2
    variance = np.bincount(rows, outcomes.probability * spread, minlength=lengths.size)
    return pair_mean, np.sqrt(variance)
