"""What methods "critic" and "mean" know besides the value: returns, and what explains them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, nan

import numpy as np

from revar.critics.estimate import CorrectedReturns, estimate_returns
from revar.critics.interface import LEAST_TO_LEARN, CriticFamily, Experience, ValueFunction
from revar.errors import InputError
from revar.evaluation.returns.saving import FittedCritics
from revar.model.arrays import FloatArray
from revar.model.records import in_a_line

CLOSE = 1.05  # a gain below is called none
OF_STEPS = ("inputs", "elapsed", "rewards", "scores", "actions", "noise")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ReturnFindings:
    """Returns of whole episodes, what critics took from their variance, and what that took."""

    method: str  # "critic" or "mean"
    corrected: CorrectedReturns
    experience: Experience  # what critics learn from
    families: Sequence[CriticFamily] = ()
    given: Sequence[ValueFunction] = ()  # critics that have seen none of these episodes
    seed: int = 0
    prior_seed: int | None = None  # of earlier episodes among these
    fitting_seconds: float = 0.0
    prior_use: str = ""  # what earlier episodes were used for
    resets_note: str = ""  # why there are none, where that was decided here
    observations_note: str = ""  # which of them are not as their space says
    environment_note: str = ""  # what has changed since the file that the run went on from

    __repr__ = in_a_line

    @property
    def resets(self) -> int:
        """First observations that were not played."""
        return int(self.experience.resets.shape[0])

    @property
    def caution(self) -> str:
        """What to look at before the value is believed; "" for nothing."""
        if not self.environment_note:
            return ""
        return f"the environment may be another than that of the file: {self.environment_note}"

    @cached_property
    def critic(self) -> FittedCritics:
        """Critics of all episodes."""
        if not self.families:
            raise InputError(f"method {self.method!r} learned no critic here")
        count = self.experience.start.size - 1
        if count < LEAST_TO_LEARN:
            raise InputError(f"critics learn from {LEAST_TO_LEARN} or more episodes, not {count}")
        return FittedCritics(
            {family.name: family.fit(self.experience, self.seed) for family in self.families},
            (self.seed,) if self.prior_seed is None else (self.seed, self.prior_seed),
        )

    def at(self, episodes: int) -> CorrectedReturns:
        """What the first so many episodes would have given by themselves; critics learn anew."""
        whole, count = self.experience, self.experience.start.size - 1
        steps = slice(0, int(whole.start[episodes]))
        part = replace(
            whole,
            start=whole.start[: episodes + 1],
            **{name: getattr(whole, name)[steps] for name in OF_STEPS},
            resets=whole.resets[: self.resets * episodes // count],
        )
        return estimate_returns(part, self.families, self.given, self.seed)

    def gain(self, error: float) -> float:
        """How many times as many episodes the mean return needs for this error."""
        if self.method == "mean":
            return 1.0
        if error == 0.0 or not isfinite(error):
            return nan
        return (self.corrected.mean_return_error / error) ** 2

    def gain_per_step(self, error: float) -> float:
        """The same: the mean return is of the same episodes."""
        return self.gain(error)

    def mean_return_interval(self, quantile: float) -> tuple[float, float]:
        """The interval that the plain mean of these returns has."""
        reach = quantile * self.corrected.mean_return_error
        return self.corrected.mean_return - reach, self.corrected.mean_return + reach

    def rows_of_mean_return(self, quantile: float) -> list[tuple[str, str]]:
        """The mean return beside the value, as a line of a table."""
        if self.method == "mean" or not isfinite(self.corrected.mean_return_error):
            return []
        low, high = self.mean_return_interval(quantile)
        text = f"{self.corrected.mean_return:.6g}, interval [{low:.6g}, {high:.6g}]"
        return [("mean return", text)]

    def rows(self, error: float, unit: str) -> list[tuple[str, str]]:
        """How the value came about, as lines of a table; `unit` is the budget's."""
        rows = [("method", self._method())]
        if self.observations_note:
            rows.append(("observations", f"{self.observations_note}; they are used as they are"))
        if self.environment_note:
            rows.append(("caution", self.caution))
        if self.prior_use:
            rows.append(("earlier episodes for", self.prior_use))
        if self.method == "mean":
            return rows
        if isfinite(self.gain(error)):
            rows += [("gain", self._gain(error, unit)), ("variance of returns", self._shares())]
        resets = f"{self.resets:,}" if self.resets else "none"
        rows.append(("resets besides", f"{resets}{self.resets_note and f', {self.resets_note}'}"))
        rows.append(("fitting", f"{self.fitting_seconds:.1f} s"))
        return rows

    def _method(self) -> str:
        if self.method == "mean":
            return "mean return"
        names = [family.name for family in self.families]
        if self.given:
            names.append(f"{len(self.given)} given")
        return f"returns less what critics explain ({', '.join(names)})"

    def _gain(self, error: float, unit: str) -> str:
        """The mean return is of the same episodes: it is as many times as much in every unit."""
        gain = self.gain(error)
        times = f"{gain:.2f} times {'the cost' if unit == 'cost' else f'as many {unit}'}"
        if gain >= CLOSE:
            return f"the mean return would need {times} for this error"
        return f"none: the mean return would need {times}"

    def _shares(self) -> str:
        found = self.corrected
        actions, start, added = (
            round(100.0 * share)
            for share in (found.actions_share, found.start_share, found.learning_share)
        )
        text = (
            f"{actions}% explained by actions, {start}% by the start state, "
            f"{100 - actions - start}% by nothing that a critic saw"
        )
        return f"{text}; learning critics adds {added}%" if added else text


@dataclass(frozen=True, eq=False, repr=False)
class PairedFindings:
    """The returns of several policies that started alike."""

    each: dict[str, ReturnFindings]
    steps: FloatArray  # [J] of an episode, the mean
    costs: FloatArray  # [J] of an episode, the mean; 1 where the budget is in no cost

    __repr__ = in_a_line

    @property
    def method(self) -> str:
        """How values were estimated."""
        return next(iter(self.each.values())).method

    @property
    def instead(self) -> str:
        """What an A/B test without critics and pairs takes."""
        return "mean return"

    def how(self, strategy: str) -> str:
        """How episodes were collected, in a few words."""
        del strategy
        caution = next(iter(self.each.values())).caution
        return f"method {self.method}, in pairs that start alike{caution and f'; {caution}'}"

    def variances_alone(self, unit: str) -> FloatArray:
        """The variance of each mean return, times what is spent on this policy alone, [J]."""
        variances = np.array([f.corrected.returns.var(ddof=1) for f in self.each.values()])
        times = {"episodes": np.ones(variances.size), "steps": self.steps, "cost": self.costs}
        return np.asarray(variances * times[unit])

    def return_variances_alone(self, unit: str) -> FloatArray:
        """The same: it is of mean returns."""
        return self.variances_alone(unit)
