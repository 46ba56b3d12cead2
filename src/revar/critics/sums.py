"""Sums over the steps of episodes."""

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


def next_steps(experience: Experience, values: Numbers) -> Numbers:
    """What each next step has, and zero after the last step of an episode."""
    shifted = np.zeros_like(values)
    shifted[:-1] = values[1:]
    shifted[experience.start[1:] - 1] = 0.0
    return shifted
