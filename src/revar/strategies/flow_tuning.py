"""The constants of flow."""

from typing import NamedTuple


class Tuning(NamedTuple):
    """The constants of the rule, as the study in docs/flow.md chose them.

    None of them has a unit, so that multiplying all rewards by a number changes no decision.
    """

    growth: float = 2.0  # a plan is made anew when the episodes have grown by this factor
    early_growth: float = 1.5  # and by this one below 50 episodes
    sweeps: float = 100.0  # for a plan, at most; 3 sqrt(k) after few episodes k
    settled: float = 2e-4  # a plan is done when a sweep takes a smaller share from F
    prior_visits: float = 4.0  # below so many visits the pooled reward variance fills in
    bonus: float = 0.3  # times sqrt(2 log(k+1) / (T+1)), on the standard deviation
    novelty: float = 1.0  # times the rate at which visits showed outcomes new for their pair
    look_ahead: float = 2.0  # a plan is made for at most so many times the episodes so far
    likeness: float = 10.0  # a pair's outcomes vary as its state's do, as if seen so often
    caution: float = 1.0  # times the visits that make a transition credible: for shares of a plan
    many_visits: float = 100.0  # more caution if it takes more to make all transitions credible
    first_visits: float = 2.0  # every action goes first so often: one visit shows no variance


STUDIED = Tuning()
EARLY = 50  # episodes
