"""Whether limits were kept: what was asked, and what the episodes of a run came to."""

from dataclasses import dataclass
from math import inf, isfinite, sqrt

import numpy as np

from revar.errors import InputError
from revar.estimators.alternatives import fit_model
from revar.model.arrays import FloatArray
from revar.model.limits import Limits
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset
from revar.theory.restrictions import Restrictions

# A mean that misses its limit by no more than so many standard errors may do so by chance.
DOUBT = 2.0


@dataclass(frozen=True)
class KeptLimit:
    """A limit, and the mean of the episodes that were collected.

    `realised` is None where no plan can break the limit.
    """

    name: str  # "forbidden", "max_ratio", "min_return", or that of a limited sum
    limit: float
    asked: str  # in words
    realised: float | None = None
    standard_error: float = 0.0
    floor: bool = False  # the limit is the least, not the most

    @property
    def kept(self) -> bool:
        """Whether it was, but for chance."""
        if self.realised is None:
            return True
        missed = self.limit - self.realised if self.floor else self.realised - self.limit
        return missed <= DOUBT * self.standard_error

    @property
    def title(self) -> str:
        """The name as tables have it."""
        own = self.name in ("forbidden", "max_ratio", "min_return") or " " in self.name
        return self.name if own else f"sum of {self.name}"

    def __str__(self) -> str:
        if self.realised is None:
            return f"{self.asked}, in every plan"
        error = f" +- {self.standard_error:.2g}" if isfinite(self.standard_error) else ""
        text = f"{self.asked}; it was {self.realised:.4g}{error}"
        return text if self.kept else f"{text}, which does not keep the limit"


def judge_limits(
    limits: Limits, dataset: Dataset, value: float, discount: float
) -> tuple[KeptLimit, ...]:
    """Every limit with what was realised; `value` is that of the target policy."""
    judged = []
    if limits.forbidden:
        pairs = sum(isinstance(entry, tuple) for entry in limits.forbidden)
        counts = {"action": len(limits.forbidden) - pairs, "pair": pairs}
        named = [f"{count} {what}{'s'[: count != 1]}" for what, count in counts.items() if count]
        judged.append(KeptLimit("forbidden", 0.0, f"{' and '.join(named)} not taken"))
    if limits.max_ratio is not None:
        asked = f"at most {limits.max_ratio:g} times the target policy's probability"
        judged.append(KeptLimit("max_ratio", limits.max_ratio, asked))
    floor = limits.least_return(value)
    if floor is not None:
        fading = discount ** dataset.step_in_episode.astype(np.float64)
        asked = f"at least {floor:.4g}"
        if isinstance(limits.min_return, str):
            asked += f" ({limits.min_return} of the value)"
        mean = _mean(dataset, fading * dataset.rewards)
        judged.append(KeptLimit("min_return", floor, asked, *mean, floor=True))
    for limit in limits.sums:
        mean = _mean(dataset, dataset.amounts[limit.name])
        judged.append(KeptLimit(limit.name, limit.most, f"at most {limit.most:g}", *mean))
    return tuple(judged)


def impossible_limit(task: Task, statistics: VisitStatistics) -> str:
    """Why no behavior seems to keep the limits of a task; empty if one does."""
    if not task.limits.has_sums:
        return ""
    try:
        model = fit_model(task, statistics.run_statistics(task.states))
        Restrictions(model, task.question, None, task.limits)
    except InputError as error:
        return f"as far as the data tells, it cannot be kept: {error}"
    return ""


def _mean(dataset: Dataset, amounts: FloatArray) -> tuple[float, float]:
    """The mean sum of an episode's amounts, and its standard error."""
    sums = np.add.reduceat(amounts, dataset.start[:-1]) if len(dataset) else np.zeros(1)
    error = float(sums.std(ddof=1)) / sqrt(sums.size) if sums.size > 1 else inf
    return float(sums.mean()), error
