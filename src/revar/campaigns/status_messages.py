"""The status of a campaign as JSON has it, for programs."""

import dataclasses
from math import inf

import msgspec
import numpy as np

from revar.campaigns.definition import Definition, StrategyRecord
from revar.campaigns.limits import LimitReport, LimitsRecord
from revar.campaigns.precision import PrecisionReport
from revar.campaigns.state import lower_triangle
from revar.campaigns.status import Lease, Status
from revar.estimators.estimator import Estimate, JointEstimate
from revar.estimators.ranking import Ranking


class Interval(msgspec.Struct, frozen=True):
    """A number with its error, which is null while the data cannot tell it."""

    value: float
    standard_error: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, estimate: Estimate) -> "Interval":
        """The estimate, with null in the place of infinity."""
        known = estimate.standard_error < float("inf")
        low, high = estimate.interval
        return cls(
            estimate.value,
            estimate.standard_error if known else None,
            low if known else None,
            high if known else None,
        )


class EstimateMessage(msgspec.Struct, frozen=True):
    """The target policy's value; the error is null while the data cannot tell it."""

    value: float
    standard_error: float | None
    low: float | None
    high: float | None
    confidence: float
    episodes: int
    unvisited_probability: float
    quantile: float | None  # of the interval; null stands for the normal one
    unrewarded: bool = False  # no reward but 0 has come yet

    @classmethod
    def of(cls, estimate: Estimate) -> "EstimateMessage":
        """The estimate, with null in the place of infinity."""
        found = Interval.of(estimate)
        return cls(
            found.value,
            found.standard_error,
            found.low,
            found.high,
            estimate.confidence,
            estimate.episodes,
            estimate.unvisited_probability,
            estimate.quantile,
            estimate.unrewarded,
        )

    def estimate(self) -> Estimate:
        """The estimate that this was made of."""
        return Estimate(
            self.value,
            _inf_for_none(self.standard_error),
            self.episodes,
            self.unvisited_probability,
            self.confidence,
            self.quantile,
            self.unrewarded,
        )


class RankedPolicy(msgspec.Struct, frozen=True):
    """One of several target policies; `difference` is by how much the leader exceeds it."""

    name: str
    value: Interval
    difference: Interval | None  # null of the leader
    chance_of_best: float
    unvisited_probability: float


class JointMessage(msgspec.Struct, frozen=True):
    """The values that a ranking rests on, in the order in which the policies were named.

    `covariance` has rows up to the diagonal, with null while the data cannot tell.
    """

    names: tuple[str, ...]
    values: list[float]
    covariance: list[list[float | None]]
    unvisited_probability: list[float]
    silent_share: list[float] | None
    unrewarded: bool = False  # no reward but 0 has come yet

    @classmethod
    def of(cls, ranking: Ranking) -> "JointMessage":
        """The joint estimate of a ranking."""
        joint = ranking.joint
        silent = joint.silent_share
        return cls(
            ranking.names,
            joint.values.tolist(),
            lower_triangle(joint.covariance),
            joint.unvisited_probability.tolist(),
            None if silent is None else silent.tolist(),
            joint.unrewarded,
        )

    def joint(self, episodes: int, confidence: float) -> JointEstimate:
        """The joint estimate that this was made of."""
        count = len(self.values)
        covariance = np.zeros((count, count))
        for number, row in enumerate(self.covariance):
            filled = [_inf_for_none(entry) for entry in row]
            covariance[number, : number + 1] = covariance[: number + 1, number] = filled
        return JointEstimate(
            np.array(self.values),
            covariance,
            episodes,
            np.array(self.unvisited_probability),
            confidence,
            silent_share=None if self.silent_share is None else np.array(self.silent_share),
            unrewarded=self.unrewarded,
        )


class RankingMessage(msgspec.Struct, frozen=True):
    """Several target policies, the best first, and what their differences say."""

    leader: str
    decided: bool  # the leader is better than every other
    undecided: tuple[str, ...]  # those that may be as good
    verdict: str  # in words
    confidence: float
    episodes: int
    policies: tuple[RankedPolicy, ...]
    joint: JointMessage

    @classmethod
    def of(cls, ranking: Ranking) -> "RankingMessage":
        """The ranking, with null in the place of infinity."""
        verdict, joint = ranking.verdict(), ranking.joint
        chances, differences = ranking.chances_of_best, ranking.differences
        return cls(
            verdict.leader,
            verdict.decided,
            verdict.undecided,
            str(verdict),
            joint.confidence,
            joint.episodes,
            tuple(
                RankedPolicy(
                    name,
                    Interval.of(value),
                    Interval.of(differences[name]) if name in differences else None,
                    chances[name],
                    value.unvisited_probability,
                )
                for name, value in ranking.best_first.items()
            ),
            JointMessage.of(ranking),
        )

    def ranking(self) -> Ranking:
        """The ranking that this was made of."""
        return Ranking.of(self.joint.names, self.joint.joint(self.episodes, self.confidence))


class StatusMessage(msgspec.Struct, frozen=True):
    """Where a campaign stands."""

    name: str
    id: str
    horizon: int
    discount: float
    actions: int
    strategy: StrategyRecord
    seed: int
    lease: float
    has_policy_table: bool
    budget: int | float  # what may be spent, in `unit`
    unit: str  # episodes, steps or cost
    used: float  # of the budget
    left: float
    episodes: int  # finished ones
    open: int
    free: int
    late: int
    partial: int
    steps: int
    states: int
    steps_per_second: float  # over the last minute
    first_event: float | None  # seconds since 1970
    last_event: float | None
    now: float
    closed: bool
    spent: bool
    leases: tuple[Lease, ...]
    estimate: EstimateMessage | None  # of one target policy
    policies: tuple[str, ...] | None  # the names of several
    question: str | None
    ranking: RankingMessage | None
    limits: LimitsRecord | None
    realised: tuple[LimitReport, ...]  # limits on sums, against the means of finished episodes
    precision: PrecisionReport | None  # where a half-width is wanted
    archived: bool
    unreadable: int  # events of the log that are damaged, and have no effect

    @classmethod
    def of(cls, status: Status) -> "StatusMessage":
        """The status of a campaign, with what defines it."""
        definition = status.definition
        fields = {
            **msgspec.structs.asdict(definition),
            **vars(status),
            "has_policy_table": definition.has_table,
            "estimate": None if status.estimate is None else EstimateMessage.of(status.estimate),
            "policies": None if definition.policies is None else definition.names,
            "ranking": None if status.ranking is None else RankingMessage.of(status.ranking),
        }
        return cls(*(fields[name] for name in cls.__struct_fields__))

    def status(self, definition: Definition) -> Status:
        """The status that this was made of, of a campaign with that definition."""
        known = {"definition": definition, **msgspec.structs.asdict(self)}
        fields = {field.name: known[field.name] for field in dataclasses.fields(Status)}
        fields["estimate"] = None if self.estimate is None else self.estimate.estimate()
        fields["ranking"] = None if self.ranking is None else self.ranking.ranking()
        return Status(**fields)


def _inf_for_none(error: float | None) -> float:
    return inf if error is None else error
