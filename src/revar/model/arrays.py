"""Array types and the sparse layout that models, statistics and compiled loops share."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


class Outcomes(NamedTuple):
    """What can follow each state-action pair, pair by pair.

    The outcomes of pair p = state * actions + action are the slots row_start[p] to row_start[p+1],
    in ascending order of their successor. The successor `states` (one past the last state) stands
    for the outcome "the episode ends", so that value arrays carry a final zero for it.
    """

    row_start: IntArray  # [pair + 1]
    successor: IntArray  # [slot]
    probability: FloatArray  # [slot]


class ModelArrays(NamedTuple):
    """A model as compiled loops read it: writable arrays, because they take no others.

    Nobody writes to them.
    """

    outcomes: Outcomes
    initial: FloatArray  # [S]
    reward_mean: FloatArray  # [S, A]
    reward_std: FloatArray  # [S, A]


class RunStatistics(NamedTuple):
    """What one run has shown, as compiled loops and plain code read it."""

    outcomes: Outcomes  # with frequencies as probabilities, 0 where a pair has no visits
    visits: IntArray  # [S, A]
    reward_mean: FloatArray  # [S, A]
    reward_squares: FloatArray  # [S, A] sums of squared deviations
    reward_cubes: FloatArray  # [S, A]
    reward_quartics: FloatArray  # [S, A]
    outcome_count: IntArray  # [slot]
    outcome_reward_mean: FloatArray  # [slot]
    initial_count: IntArray  # [S]

    def with_known(self, outcomes: Outcomes) -> "RunStatistics":
        """The same with true probabilities, and no counts of outcomes to go by."""
        slots = outcomes.successor.size
        return self._replace(
            outcomes=outcomes,
            outcome_count=np.zeros(slots, dtype=np.int64),
            outcome_reward_mean=np.zeros(slots),
        )


class Layers(NamedTuple):
    """The states that can be occupied at each step: states[start[t]:start[t+1]] at step t."""

    start: IntArray  # [horizon + 1]
    states: IntArray  # [sum of layer sizes]


def read_only(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A view of the array that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view
