"""Observed: what has been seen, as compiled loops read it."""

from dataclasses import dataclass

from revar.model.arrays import FloatArray, IntArray, Outcomes


@dataclass(frozen=True, eq=False)
class Observed:
    """One run's statistics in the layout of compiled loops (see `Outcomes`)."""

    outcomes: Outcomes  # probability holds the frequencies; 0 where the pair has no visits
    visits: IntArray  # [S, A]
    reward_mean: FloatArray  # [S, A]
    reward_squares: FloatArray  # [S, A] sums of squared deviations
    reward_cubes: FloatArray  # [S, A]
    reward_quartics: FloatArray  # [S, A]
    outcome_count: IntArray  # [slot]
    outcome_reward_mean: FloatArray  # [slot]
    initial_count: IntArray  # [S]
