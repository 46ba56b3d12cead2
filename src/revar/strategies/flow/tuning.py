"""The constants of flow, and when it makes plans."""

from typing import Any, NamedTuple

from numba.np.unsafe import ndarray

from revar.compilation import compiled
from revar.model.arrays import FloatArray, IntArray
from revar.strategies.compiled_rule import growing_times


class Tuning(NamedTuple):
    """The constants of the rule: what each is worth is shown in docs/flow.md.

    None of them has a unit, so that multiplying all rewards by a number changes no decision.
    """

    growth: float = 1.5  # a plan is made anew when the episodes have grown by this factor
    sweeps: float = 100.0  # for a plan, at most
    settled: float = 2e-4  # a plan is done when a sweep takes a smaller share from F
    prior_visits: float = 4.0  # below so many visits the pooled reward variance fills in
    likeness: float = 10.0  # visits that count for the spread over all actions of the state
    alike: float = 20.0  # a larger n of transitions: actions lead to much the same


DEFAULT_TUNING = Tuning()
_CONSTANTS = len(Tuning._fields)
_to_tuple: Any = ndarray.to_fixed_tuple


@compiled
def unpack_tuning(constants: FloatArray) -> Tuning:
    """The record from the numbers that a compiled rule is given."""
    return Tuning(*_to_tuple(constants, _CONSTANTS))


def plan_times(episode: int, tuning: Tuning) -> IntArray:
    """The numbers of finished episodes after which plans are made, to the first past `episode`."""
    return growing_times(episode, 2, lambda _: tuning.growth)
