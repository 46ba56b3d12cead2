"""What is wanted of a collection: when it is reached, and the result that is made of it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from revar.collection.checkpoints import (
    DECIDING_GROWTH,
    budget_times,
    is_narrow,
    quantile,
    student_quantile,
)
from revar.errors import InputError
from revar.estimators.estimator import JointEstimate
from revar.estimators.ranking import Ranking
from revar.evaluation.comparison import ComparisonResult, JointCheckpoint
from revar.evaluation.result import Checkpoint, CollectedResult, EvaluationResult
from revar.model.budget import Budget
from revar.model.question import Combinations, combinations_of
from revar.model.validation import check_confidence, check_half_width


class Goal(Protocol):
    """What `evaluate` or `compare` is asked for."""

    @property
    def names(self) -> tuple[str, ...]:
        """The policies; a single one needs no name."""

    @property
    def question(self) -> str:
        """What is asked of them."""

    @property
    def combinations(self) -> Combinations:
        """The same as a rule for the strategy."""

    @property
    def confidence(self) -> float:
        """Of intervals."""

    @property
    def budget(self) -> Budget:
        """The most that it may take."""

    @property
    def looks(self) -> bool:
        """Whether it may end before the budget is spent."""

    @property
    def stopped_as(self) -> str:
        """What a result that stops here is called."""

    @property
    def times(self) -> list[float]:
        """What is spent when it is looked whether that is enough."""

    def is_reached(self, estimate: JointEstimate) -> bool:
        """Whether this is enough."""

    def result(self, points: list[JointCheckpoint], **collected: Any) -> CollectedResult:
        """What the last of the estimates gives."""


@dataclass(frozen=True)
class ValueGoal:
    """A policy's value, with an interval of that half-width if one is given."""

    confidence: float
    half_width: float | None
    budget: Budget
    names: ClassVar[tuple[str, ...]] = ("",)
    question: ClassVar[str] = "values"
    stopped_as: ClassVar[str] = "half-width"

    def __post_init__(self) -> None:
        if self.half_width is not None:
            check_half_width(self.half_width)
        check_confidence(self.confidence)

    @property
    def combinations(self) -> Combinations:
        """The value itself."""
        return combinations_of(self.question, 1)

    @property
    def quantile(self) -> float:
        """Of the interval; it allows for every checkpoint that could be the last."""
        times = None if self.half_width is None else self.times
        return quantile(self.confidence, times)

    @property
    def times(self) -> list[float]:
        """Checkpoints that grow by a factor of 2."""
        return budget_times(self.budget)

    @property
    def looks(self) -> bool:
        """Whether it may end before the budget is spent."""
        return self.half_width is not None

    def is_reached(self, estimate: JointEstimate) -> bool:
        """Whether the interval is narrow, and rests on data."""
        wanted = self.half_width
        return wanted is not None and is_narrow(estimate.value_of(0), self.quantile, wanted)

    def result(self, points: list[JointCheckpoint], **collected: Any) -> EvaluationResult:
        """The value and its interval."""
        checkpoints = tuple(
            Checkpoint(each.episodes, each.estimate.value_of(0), each.spent) for each in points
        )
        return EvaluationResult(
            estimate=checkpoints[-1].estimate,
            quantile=self.quantile,
            checkpoints=checkpoints,
            half_width_wanted=self.half_width,
            budget=self.budget,
            **collected,
        )


@dataclass(frozen=True)
class ComparisonGoal:
    """The values of several policies; when `deciding`, until it is known which of them is best."""

    names: tuple[str, ...]
    question: str
    confidence: float
    deciding: bool
    indifference: float | None
    budget: Budget
    stopped_as: ClassVar[str] = "decided"

    @classmethod
    def of(
        cls,
        names: tuple[str, ...],
        question: str,
        confidence: float | None,
        decide: float | None,
        indifference: float | None,
        budget: Budget,
    ) -> "ComparisonGoal":
        """The goal, with defaults filled in."""
        combinations_of(question, len(names))  # refuses what cannot be asked
        if decide is not None:
            check_confidence(decide, "decide")
        if None not in (decide, confidence) and decide != confidence:
            raise InputError(
                f"decide is {decide} and confidence {confidence}; intervals have the confidence of "
                f"the decision, so that one of them is enough"
            )
        if indifference is not None:
            check_half_width(indifference, "indifference")
        level = check_confidence(0.95 if confidence is None else confidence)
        level = level if decide is None else decide
        deciding = decide is not None or indifference is not None
        return cls(names, question, level, deciding, indifference, budget)

    @property
    def combinations(self) -> Combinations:
        """What is asked of the values."""
        return combinations_of(self.question, len(self.names))

    @property
    def times(self) -> list[float]:
        """Checkpoints that come often, because each may decide."""
        return budget_times(self.budget, DECIDING_GROWTH)

    @property
    def looks(self) -> bool:
        """Whether it may end before the budget is spent."""
        return self.deciding

    def rank(self, estimate: JointEstimate) -> Ranking:
        """Who leads, with intervals that allow for all looks and for all differences."""
        looks = self.times if self.deciding else None

        def reach(confidence: float) -> float:
            z = quantile(confidence, looks)
            return z if estimate.mean_of is None else student_quantile(z, estimate.mean_of)

        return Ranking.of(self.names, estimate, reach)

    def is_reached(self, estimate: JointEstimate) -> bool:
        """Whether the best is known, or that there is no difference worth speaking of."""
        return self.deciding and self.rank(estimate).verdict(self.indifference).decided

    def result(self, points: list[JointCheckpoint], **collected: Any) -> ComparisonResult:
        """The ranking."""
        return ComparisonResult(
            ranking=self.rank(points[-1].estimate),
            question=self.question,
            indifference=self.indifference,
            checkpoints=tuple(points),
            budget=self.budget,
            **collected,
        )
