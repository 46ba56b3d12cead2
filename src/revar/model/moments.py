"""Running means and sums of powers of deviations, stable however large the mean is.

`push` adds one value (Welford 1962, "Note on a method for calculating corrected sums of squares
and products"); `pooled` joins two summaries (Chan, Golub and LeVeque 1983, "Algorithms for
computing the sample variance"; Pebay 2008, "Formulas for robust, one-pass parallel computation
of covariances and arbitrary-order statistical moments"). The compiled engine compiles `push` as
it stands.
"""

from typing import NamedTuple

from revar.model.arrays import FloatArray, IntArray


def push(
    count: int, mean: float, squares: float, cubes: float, quartics: float, value: float
) -> tuple[float, float, float, float]:
    """Mean and sums of powers of deviations after `value` came in as number `count`."""
    delta = value - mean
    step = delta / count
    gain = delta * step * (count - 1)
    quartics += step * (step * (gain * (count * (count - 3.0) + 3.0) + 6.0 * squares) - 4.0 * cubes)
    cubes += step * (gain * (count - 2.0) - 3.0 * squares)
    mean += step
    return mean, squares + delta * (value - mean), cubes, max(0.0, quartics)


class Moments(NamedTuple):
    """Summaries of many samples, place by place."""

    number: IntArray
    mean: FloatArray
    squares: FloatArray  # sums of squared deviations
    cubes: FloatArray
    quartics: FloatArray


def pooled_mean(
    count: IntArray, mean: FloatArray, other_count: IntArray, other_mean: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Count and mean of both samples together."""
    total = count + other_count
    return total, mean + (other_mean - mean) * (other_count / total.clip(min=1))


def pooled(one: Moments, other: Moments) -> Moments:
    """Both samples together."""
    total, mean = pooled_mean(one.number, one.mean, other.number, other.mean)
    share = other.number / total.clip(min=1)
    rest = one.number / total.clip(min=1)
    delta = other.mean - one.mean
    return Moments(
        total,
        mean,
        one.squares + other.squares + delta**2 * one.number * share,
        one.cubes
        + other.cubes
        + delta**3 * one.number * share * (rest - share)
        + 3.0 * delta * (rest * other.squares - share * one.squares),
        one.quartics
        + other.quartics
        + delta**4 * one.number * share * (rest**2 - rest * share + share**2)
        + 6.0 * delta**2 * (rest**2 * other.squares + share**2 * one.squares)
        + 4.0 * delta * (rest * other.cubes - share * one.cubes),
    )
