"""When a collection checks its interval, and what checking more than once costs.

If the interval is to hold at whichever checkpoint collection stops, its quantile must be larger
than the normal one: z such that a Brownian motion stays within z sqrt(t) at all checkpoints with
the wanted confidence (Pocock 1977, "Group sequential methods in the design and analysis of clinical
trials"), computed by the recursion of Armitage, McPherson and Rowe 1969, "Repeated significance
tests on accumulating data".
"""

from collections.abc import Sequence
from functools import cache
from math import inf, sqrt

import numpy as np
from scipy.special import ndtr, stdtrit

from revar.estimators.estimator import Estimate, normal_quantile, together
from revar.estimators.ranking import MOST_UNVISITED, shows_nothing
from revar.model.budget import Budget

FIRST_CHECKPOINT = 100
GROWTH = 2.0
# Where the best policy is to be known as soon as possible. More looks make the quantile larger,
# fewer mean episodes that are played after the decision could have been made.
DECIDING_GROWTH = 1.5
LEAST_SHARE = 1 / 64  # of a budget that is not in episodes, at the first checkpoint
NODES = 64  # of Gauss-Legendre quadrature between the boundaries
HALVINGS = 40


def budget_times(budget: Budget, growth: float = GROWTH) -> list[float]:
    """What is spent at checkpoints, in the budget's unit, up to and with all of it.

    Where that is not a number of episodes they are spaced from the end, because nobody knows what
    an episode will cost; those that come before FIRST_CHECKPOINT episodes are passed over.
    """
    if budget.by_episode:
        return list(checkpoint_times(int(budget.amount), growth))
    times = [float(budget.amount)]
    while times[0] > LEAST_SHARE * budget.amount:
        times.insert(0, times[0] / growth)
    return times


def checkpoint_times(episodes: int, growth: float = GROWTH) -> list[int]:
    """Numbers of episodes, geometrically spaced, up to and with the last."""
    times = []
    time = float(FIRST_CHECKPOINT)
    while time < episodes:
        times.append(int(time))
        time *= growth
    return [*times, episodes]


def quantile(confidence: float, times: Sequence[float] | None = None) -> float:
    """z of the interval value +- z * standard_error that holds at all these times together."""
    return _quantile(confidence, tuple(times or ()))


def student_quantile(z: float, episodes: int) -> float:
    """What takes the place of z where the standard error is that of a mean of so many returns.

    It has the same chance in Student's distribution as z in the normal one: so group sequential
    bounds are carried over to means of unknown variance (Pocock 1977).
    """
    if episodes < 2:
        return inf
    return float(stdtrit(episodes - 1, ndtr(z)))


def is_narrow(estimate: Estimate, z: float, half_width: float) -> bool:
    """Whether the interval with that quantile is so narrow, and rests on data."""
    if shows_nothing(estimate):
        return False
    return estimate.reach(z) <= half_width and estimate.unvisited_probability <= MOST_UNVISITED


@cache
def _quantile(confidence: float, times: tuple[float, ...]) -> float:
    low = normal_quantile(confidence)
    if len(times) < 2:
        return low
    # Never more than what Bonferroni's inequality asks for.
    high = normal_quantile(together(confidence, len(times)))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _chance_inside(middle, times) < confidence:
            low = middle
        else:
            high = middle
    return high


def _chance_inside(z: float, times: Sequence[float]) -> float:
    """The chance that Brownian motion lies within z sqrt(t) at all these times t."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    before, density = np.zeros(1), np.ones(1)
    last = 0.0
    for time in times:
        reach = z * sqrt(time)
        here = reach * nodes
        spread = sqrt(time - last)
        kernel = np.exp(-0.5 * ((here[:, None] - before) / spread) ** 2) / (
            spread * sqrt(2.0 * np.pi)
        )
        density = (kernel @ density) * reach * weights
        before, last = here, time
    return float(density.sum())
