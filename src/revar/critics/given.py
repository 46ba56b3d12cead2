"""Critics that are not learned here: a model's value function, last month's critic."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from revar.critics.interface import FOLDS, Columns, Experience, ValueFunction
from revar.errors import InputError
from revar.model.arrays import FloatArray


def given_columns(experience: Experience, given: Sequence[ValueFunction]) -> list[Columns]:
    """What fixed critics say: the same in every world, as they have seen none of the episodes."""
    return [_columns(experience, critic, f"given {i}") for i, critic in enumerate(given)]


def _columns(experience: Experience, critic: ValueFunction, name: str) -> Columns:
    steps, resets = experience.rewards.size, experience.resets.shape[0]
    width = experience.scores.shape[1]
    values = _checked(critic.values(experience.inputs, experience.elapsed), (steps,), name)
    at_resets = np.zeros(0)
    if resets:
        at_resets = _checked(critic.values(experience.resets, np.zeros(resets)), (resets,), name)
    advantages = np.zeros(steps)
    if width and hasattr(critic, "coefficients"):
        found = critic.coefficients(experience.inputs, experience.elapsed)
        coefficients = _checked(found, (steps, width), name)
        advantages = np.einsum("tm,tm->t", coefficients, experience.scores)
    return Columns(
        (name,),
        _in_every_world(advantages),
        _in_every_world(values[experience.start[:-1]]),
        _in_every_world(at_resets),
        _in_every_world(values),
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
