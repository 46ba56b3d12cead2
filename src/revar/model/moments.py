"""Running means and sums of squared deviations, stable however large the mean is.

`push` adds one value (Welford 1962, "Note on a method for calculating corrected sums of squares
and products"); `pooled` joins two summaries (Chan, Golub and LeVeque 1983, "Algorithms for
computing the sample variance"). The compiled engine compiles `push` as it stands.
"""

from revar.model.arrays import FloatArray, IntArray


def push(count: int, mean: float, squares: float, value: float) -> tuple[float, float]:
    """Mean and sum of squared deviations after `value` came in as number `count`."""
    delta = value - mean
    mean += delta / count
    return mean, squares + delta * (value - mean)


def pooled(
    count: IntArray,
    mean: FloatArray,
    squares: FloatArray,
    other_count: IntArray,
    other_mean: FloatArray,
    other_squares: FloatArray,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Count, mean and sum of squared deviations of both samples together."""
    total = count + other_count
    share = other_count / total.clip(min=1)
    delta = other_mean - mean
    return total, mean + delta * share, squares + other_squares + delta**2 * count * share
