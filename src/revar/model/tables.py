"""Sums and sorting for compiled code, and for plain code that must give the same to the bit."""

import numpy as np

from revar.compilation import compiled, compiled_in_place, like_caller
from revar.model.arrays import FloatArray, IntArray


@compiled
def total(values: FloatArray) -> float:
    """The sum, added in the order of the array; NumPy adds in pairs."""
    return float(np.sum(values))


@compiled_in_place
def dot(weights: FloatArray, values: FloatArray) -> float:
    """The sum of weights [N] times values [N or more], added in order."""
    result = 0.0
    for i in range(weights.size):
        result += weights[i] * values[i]
    return result


@like_caller
def sort_part(array: IntArray, first: int, end: int) -> None:
    """Sort array[first:end] (Shell 1959, "A high-speed sorting procedure").

    numba takes longer to compile its own sorting than all that uses this.
    """
    gap = 1
    while gap < (end - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            value = array[i]
            k = i
            while k >= first + gap and array[k - gap] > value:
                array[k] = array[k - gap]
                k -= gap
            array[k] = value
        gap //= 3
