"""Critics that are not learned here: a model's value function, last month's critic."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from revar.critics.interface import FOLDS, Columns, Experience, Numbers, ValueFunction
from revar.critics.linear import advantages_of_values
from revar.errors import InputError
from revar.model.arrays import FloatArray


def given_columns(
    experience: Experience, given: Sequence[ValueFunction], unit: float, seed: int
) -> list[Columns]:
    """What fixed critics say, in units of rewards.

    It is the same in every world, as they have seen none of the episodes; but where a critic has
    values only, or its scores are those of another law, its advantages are learned from temporal
    differences.
    """
    return [
        _columns(experience, critic, f"given {number}", unit, seed)
        for number, critic in enumerate(given)
    ]


def _columns(
    experience: Experience, critic: ValueFunction, name: str, unit: float, seed: int
) -> Columns:
    steps, resets = experience.rewards.size, experience.resets.shape[0]
    width = experience.scores.shape[1]
    values = _checked(critic.values(experience.inputs, experience.elapsed), (steps,), name) / unit
    at_resets = np.zeros(0)
    if resets:
        found = critic.values(experience.resets, np.zeros(resets))
        at_resets = _checked(found, (resets,), name) / unit
    advantages: Numbers = _in_every_world(np.zeros(steps))
    scores = getattr(critic, "widths", (0, width))[1]  # of a critic that revar learned
    if width and scores == width and hasattr(critic, "coefficients"):
        found = critic.coefficients(experience.inputs, experience.elapsed)
        coefficients = _checked(found, (steps, width), name) / unit
        advantages = _in_every_world(np.einsum("tm,tm->t", coefficients, experience.scores))
    elif width:
        advantages = advantages_of_values(experience, values, seed)
    return Columns(
        (name,),
        advantages,
        _in_every_world(values[experience.start[:-1]]),
        _in_every_world(at_resets),
        _in_every_world(values),
        np.full((FOLDS, FOLDS, 1), at_resets.mean() if resets else 0.0),
    )


def _in_every_world(column: FloatArray) -> FloatArray:
    return np.broadcast_to(column[None, :, None], (FOLDS, column.size, 1))


def _checked(found: Any, shape: tuple[int, ...], name: str) -> FloatArray:
    values = np.asarray(found, dtype=np.float64)
    if values.shape != shape:
        raise InputError(f"critic {name!r} gave an array of shape {values.shape}, not {shape}")
    if not np.isfinite(values).all():
        raise InputError(f"critic {name!r} gave {values[~np.isfinite(values)][0]}")
    return values
