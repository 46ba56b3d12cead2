"""When an evaluation looks at its interval, and what looking more than once costs.

If the interval is to hold whichever look it is taken at, its quantile must be larger than the
normal one: z such that a Brownian motion stays within z sqrt(t) at all looks with the wanted
confidence (Pocock 1977, "Group sequential methods in the design and analysis of clinical trials"),
computed by the recursion of Armitage, McPherson and Rowe 1969, "Repeated significance tests on
accumulating data".
"""

from math import sqrt
from statistics import NormalDist

import numpy as np

FIRST_LOOK = 100
GROWTH = 2.0
NODES = 64  # of Gauss-Legendre quadrature between the boundaries
HALVINGS = 40


def look_times(episodes: int) -> list[int]:
    """Numbers of episodes, geometrically spaced, up to and with the last."""
    times = []
    look = FIRST_LOOK
    while look < episodes:
        times.append(look)
        look = int(GROWTH * look)
    return [*times, episodes]


def quantile(confidence: float, looks: list[int] | None = None) -> float:
    """z of the interval value +- z * standard_error that holds at all these looks together."""
    low = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    if looks is None or len(looks) < 2:
        return low
    # Never more than what Bonferroni's inequality asks for.
    high = NormalDist().inv_cdf(0.5 + (1.0 - (1.0 - confidence) / len(looks)) / 2.0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _chance_inside(middle, looks) < confidence:
            low = middle
        else:
            high = middle
    return high


def _chance_inside(z: float, looks: list[int]) -> float:
    """The chance that Brownian motion lies within z sqrt(t) at all times t in `looks`."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    before, density = np.zeros(1), np.ones(1)
    time = 0
    for look in looks:
        reach = z * sqrt(look)
        here = reach * nodes
        spread = sqrt(look - time)
        kernel = np.exp(-0.5 * ((here[:, None] - before) / spread) ** 2) / (
            spread * sqrt(2.0 * np.pi)
        )
        density = (kernel @ density) * reach * weights
        before, time = here, look
    return float(density.sum())
