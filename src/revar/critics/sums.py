"""Sums over the steps of episodes."""

from dataclasses import replace

import numpy as np

from revar.critics.interface import Experience, Numbers
from revar.model.arrays import FloatArray


def episode_sums(experience: Experience, terms: Numbers) -> FloatArray:
    """The discounted sum of a term of each step, [episode] for terms [step]."""
    weighted = terms.astype(np.float64) * experience.discounts
    return np.asarray(np.add.reduceat(weighted, experience.start[:-1]))


def sums_to_go(experience: Experience, terms: Numbers) -> FloatArray:
    """The sum of the terms from each step on, discounted to that step, [step]."""
    sums = terms.astype(np.float64)
    first, lengths = experience.start[:-1], np.diff(experience.start)
    for number in range(int(lengths.max(initial=0)) - 2, -1, -1):
        steps = first[lengths > number + 1] + number
        sums[steps] += experience.discount * sums[steps + 1]
    return sums


def in_units(experience: Experience) -> tuple[Experience, float]:
    """The same with rewards of about one, and the power of two that they were divided by.

    Nothing but the exponent of any number depends on it, so that it tells nobody anything.
    """
    largest = float(np.abs(experience.rewards).max(initial=0.0))
    unit = 2.0 ** np.ceil(np.log2(largest)) if largest > 0.0 else 1.0
    return replace(experience, rewards=experience.rewards / unit), float(unit)
