"""The constants of flow, and when it makes plans."""

from typing import Any, NamedTuple

from numba.np.unsafe import ndarray

from revar.compilation import compiled
from revar.model.arrays import FloatArray, IntArray
from revar.strategies.compiled_rule import growing_times


class Tuning(NamedTuple):
    """The constants of the rule, as the study in docs/flow.md chose them.

    None of them has a unit, so that multiplying all rewards by a number changes no decision.
    """

    growth: float = 2.0  # a plan is made anew when the episodes have grown by this factor
    early_growth: float = 1.5  # and by this one below 50 episodes, or where little decides
    sweeps: float = 100.0  # for a plan, at most; 3 sqrt(k) after few episodes k
    settled: float = 2e-4  # a plan is done when a sweep takes a smaller share from F
    prior_visits: float = 4.0  # below so many visits the pooled reward variance fills in
    bonus: float = 0.3  # times sqrt(2 log(k+1) / (T+1)), on the standard deviation
    novelty: float = 1.0  # times the rate at which visits showed outcomes new for their pair
    look_ahead: float = 2.0  # a plan is made for at most so many times the episodes so far
    likeness: float = 10.0  # visits that count for the spread over all actions of the state
    caution: float = 1.0  # times the visits after which half of a share is the plan's
    many_visits: float = 100.0  # more caution if all pairs together need more visits than these
    first_visits: float = 2.0  # every action goes first so often: one visit shows no variance


DEFAULT_TUNING = Tuning()
EARLY = 50  # episodes
_CONSTANTS = len(Tuning._fields)
_to_tuple: Any = ndarray.to_fixed_tuple


@compiled
def unpack_tuning(constants: FloatArray) -> Tuning:
    """The record from the numbers that a compiled rule is given."""
    return Tuning(*_to_tuple(constants, _CONSTANTS))


def plan_times(episode: int, tuning: Tuning, *, often: bool = False) -> IntArray:
    """The numbers of finished episodes after which plans are made, to the first past `episode`."""

    def growth(time: int) -> float:
        return tuning.early_growth if time < EARLY or often else tuning.growth

    return growing_times(episode, 1, growth)
