"""The constants of flow."""

from typing import NamedTuple


class Tuning(NamedTuple):
    """The constants of the rule: what each is worth is shown in docs/flow.md.

    None of them has a unit, so that multiplying all rewards by a number changes no decision.
    """

    growth: float = 2.0  # a plan is made anew when the episodes have grown by this factor
    sweeps: float = 100.0  # for a plan, at most
    settled: float = 2e-4  # a plan is done when a sweep takes a smaller share from F
    prior_visits: float = 4.0  # below so many visits the pooled reward variance fills in
    likeness: float = 10.0  # visits that count for the spread over all actions of the state
    alike: float = 20.0  # a larger n of transitions: actions lead to much the same


DEFAULT_TUNING = Tuning()
