"""The status of a campaign as JSON has it, for programs."""

import msgspec

from revar.campaigns.definition import StrategyRecord
from revar.campaigns.limits import LimitReport, LimitsRecord
from revar.campaigns.precision import PrecisionReport
from revar.campaigns.status import Lease, Status
from revar.estimators.estimator import Estimate
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
        )


class RankedPolicy(msgspec.Struct, frozen=True):
    """One of several target policies; `difference` is by how much the leader exceeds it."""

    name: str
    value: Interval
    difference: Interval | None  # null of the leader
    chance_of_best: float
    unvisited_probability: float


class RankingMessage(msgspec.Struct, frozen=True):
    """Several target policies, the best first, and what their differences say."""

    leader: str
    decided: bool  # the leader is better than every other
    undecided: tuple[str, ...]  # those that may be as good
    verdict: str  # in words
    confidence: float
    episodes: int
    policies: tuple[RankedPolicy, ...]

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
        )


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
    last_event: float | None  # seconds since 1970
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
