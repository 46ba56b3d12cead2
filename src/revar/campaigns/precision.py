"""Precision: when the interval of a campaign is as narrow as asked, so that nothing more is needed.

It is looked at when certain parts of the budget are spent, as `revar.evaluate` does, and the
interval allows for all of these looks.
"""

from dataclasses import replace
from math import inf

import msgspec

from revar.collection import Collection
from revar.collection.checkpoints import FIRST_CHECKPOINT, budget_times, is_narrow, quantile
from revar.errors import InputError
from revar.estimators.estimator import Estimate
from revar.model.budget import Budget


class PrecisionReport(msgspec.Struct, frozen=True):
    """The half-width of the interval that is wanted, and the one that there is."""

    wanted: float
    confidence: float
    half_width: float | None  # null while the data cannot tell it
    reached: bool  # nothing more will be started


class Precision:
    """Looks at the interval while a campaign collects; where none is wanted it never does."""

    def __init__(self, half_width: float | None, confidence: float, budget: Budget) -> None:
        self.half_width = half_width
        self.confidence = confidence
        self.reached = False
        self.past: list[float] = []  # what was spent when looks were due
        self.due = inf  # what is spent at the next look, if there is one
        self.budget = budget  # as it stands: looks to come follow from it

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        return self._budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self._budget = budget
        self._plan_looks()

    def restore(self, past: list[float], reached: bool) -> None:
        """Go on after these looks."""
        self.past, self.reached = list(past), reached
        self._plan_looks()

    def widen(self, estimate: Estimate) -> Estimate:
        """The estimate with an interval that allows for all looks, where there are any."""
        if self.half_width is None:
            return estimate
        return replace(estimate, quantile=self._reach(estimate.confidence))

    def look(self, collection: Collection) -> None:
        """See whether the interval is narrow enough; to be called when a look is due."""
        spent = collection.spent
        self.past += [time for time in self._to_come if time <= spent]
        self._plan_looks()
        early = not self._budget.by_episode and collection.finished < FIRST_CHECKPOINT
        if self.half_width is None or (early and self._to_come):
            return
        try:
            estimate = collection.estimate(self.confidence)
        except InputError:  # while the data says nothing yet
            return
        self.reached = is_narrow(estimate, self._reach(self.confidence), self.half_width)

    def report(self, estimate: Estimate | None) -> PrecisionReport | None:
        """Where it stands; None where no half-width is wanted."""
        if self.half_width is None:
            return None
        found = None
        if estimate is not None and estimate.standard_error < inf:
            found = estimate.reach(self._reach(self.confidence))
        return PrecisionReport(self.half_width, self.confidence, found, self.reached)

    def _reach(self, confidence: float) -> float:
        """Of an interval that allows for all looks, in standard errors."""
        return quantile(confidence, [*self.past, *self._to_come])

    def _plan_looks(self) -> None:
        last = self.past[-1] if self.past else 0.0
        self._to_come = [time for time in budget_times(self._budget) if time > last]
        looks = self.half_width is not None and self._to_come
        self.due = self._to_come[0] if looks else inf
