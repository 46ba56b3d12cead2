"""From the transition probabilities a user gives to the outcome layout a model keeps."""

from typing import Any

import numpy as np
from scipy import sparse

from revar.errors import InputError
from revar.model.arrays import FloatArray, Outcomes
from revar.model.validation import SUM_TOLERANCE, as_floats, pair_name, refuse

# A row that misses less than this of 1 misses it by rounding.
LEAST_ENDING = 1e-9


def checked_initial(initial: Any) -> FloatArray:
    """The first state's distribution as an array [S]."""
    start = as_floats(initial, "initial")
    if start.ndim != 1 or start.size == 0:
        raise InputError(f"initial has shape {start.shape}; it must be [states]")

    def place(index: int) -> str:
        return f"state {index}"

    refuse(~np.isfinite(start), start, "initial", place, "must be finite")
    refuse((start < 0) | (start > 1 + SUM_TOLERANCE), start, "initial", place, "must lie in [0, 1]")
    if abs(start.sum() - 1.0) > SUM_TOLERANCE:
        raise InputError(f"initial sums to {start.sum():.12g}; it must sum to 1")
    return start


def checked_transitions(transitions: Any, states: int) -> tuple[sparse.csr_array, int]:
    """The transition matrix [S*A, S] with sorted, summed, positive entries, and A."""
    if sparse.issparse(transitions):
        shape = transitions.shape
        if len(shape) != 2 or shape[1] != states or shape[0] == 0 or shape[0] % states:
            raise InputError(
                f"transitions has shape {shape}; sparse transitions must be "
                f"[states*actions, states] with {states} states (the length of initial)"
            )
        matrix = sparse.csr_array(transitions, dtype=np.float64, copy=True)
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise InputError(f"transitions is not a valid sparse matrix: {error}") from None
    else:
        dense = as_floats(transitions, "transitions")
        if dense.ndim != 3 or dense.shape[::2] != (states, states) or dense.shape[1] == 0:
            raise InputError(
                f"transitions has shape {dense.shape}; it must be [states, actions, states] "
                f"with {states} states (the length of initial)"
            )
        matrix = sparse.csr_array(dense.reshape(-1, states))
    actions = matrix.shape[0] // states
    matrix.sum_duplicates()
    data, rows_of = matrix.data, np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))

    def place(index: int) -> str:
        return f"{pair_name(int(rows_of[index]), actions)}, successor {matrix.indices[index]}"

    refuse(~np.isfinite(data), data, "transitions", place, "must be finite")
    refuse(data < 0, data, "transitions", place, "must not be negative")
    refuse(data > 1 + SUM_TOLERANCE, data, "transitions", place, "must be at most 1")
    sums = matrix @ np.ones(states)
    above = sums > 1 + SUM_TOLERANCE
    if above.any():
        row = int(np.argmax(above))
        raise InputError(
            f"transitions of {pair_name(row, actions)} sum to {sums[row]:.12g}; a row sums to "
            f"at most 1 (what is missing ends the episode)"
        )
    matrix.eliminate_zeros()
    return matrix, actions


def with_endings(matrix: sparse.csr_array, states: int) -> Outcomes:
    """The outcome layout: each row's successors, then the end of the episode where it can be."""
    pairs = matrix.shape[0]
    ending = 1.0 - matrix @ np.ones(states)
    ends = ending > LEAST_ENDING
    lengths = np.diff(matrix.indptr).astype(np.int64) + ends
    row_start = np.zeros(pairs + 1, dtype=np.int64)
    np.cumsum(lengths, out=row_start[1:])
    successor = np.full(row_start[-1], states, dtype=np.int64)
    probability = np.empty(row_start[-1])
    last = row_start[1:][ends] - 1
    proceeds = np.ones(row_start[-1], dtype=bool)
    proceeds[last] = False
    successor[proceeds] = matrix.indices
    probability[proceeds] = matrix.data
    probability[last] = ending[ends]
    return Outcomes(row_start, successor, probability)
