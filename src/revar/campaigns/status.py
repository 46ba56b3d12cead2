"""Where a campaign stands, for people and programs."""

from contextlib import suppress
from dataclasses import dataclass

import msgspec

from revar.campaigns.definition import Definition, StrategyRecord
from revar.campaigns.state import CampaignState
from revar.campaigns.text import duration, quantity
from revar.collection import Collection
from revar.errors import InputError
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking


class Lease(msgspec.Struct, frozen=True):
    """An open episode that holds a place in the budget; times are seconds since 1970."""

    episode: str
    number: int
    steps: int
    started: float
    ends: float  # when its place may go to another episode
    overdue: bool


@dataclass(frozen=True)
class Status:
    """A campaign at one moment."""

    name: str
    id: str
    definition: Definition
    budget: int
    episodes: int  # finished: they have used their place
    open: int  # episodes that hold a place
    free: int  # places nobody has used or holds
    late: int  # finished after their place had gone to another
    partial: int  # left with complete steps, without a place
    steps: int  # complete ones: all of them count
    states: int
    closed: bool
    spent: bool  # nothing more will be started
    steps_per_second: float  # over the last minute
    first_event: float | None  # its time
    last_event: float | None
    now: float
    leases: tuple[Lease, ...]
    estimate: Estimate | None  # of one target policy
    ranking: Ranking | None = None  # of several

    @property
    def silence(self) -> str:
        """How long ago something happened, in words; empty where nothing has."""
        if self.last_event is None:
            return ""
        return f"last event {duration(self.now - self.last_event)} ago"

    @property
    def condition(self) -> str:
        """A word for where the campaign stands."""
        if self.episodes >= self.budget:
            return "complete"
        if self.closed:
            return "closed"
        if not self.leases:
            return "waiting"
        return "stalled" if all(lease.overdue for lease in self.leases) else "running"

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.episodes} of {self.budget} episodes finished, {self.open} open"
            + (f", {self.late} late" if self.late else "")
            + (", closed" if self.closed else ""),
            f"{quantity(self.steps, 'step')} in {quantity(self.states, 'state')}, "
            f"{self.steps_per_second:.3g} steps a second"
            + (f", {self.silence}" if self.silence else ""),
            self._answer,
        ]
        return "\n".join(lines)

    @property
    def _answer(self) -> str:
        if self.ranking is not None:
            return f"{self.ranking.table()}\n{self.ranking.verdict()}"
        return "no estimate yet" if self.estimate is None else str(self.estimate)


def ranking_of(collection: Collection, confidence: float = 0.95) -> Ranking:
    """The target policies of a collection, compared; intervals are those of normal errors."""
    return Ranking.of(collection.states.names, collection.joint_estimate(confidence))


def status_of(name: str, campaign_id: str, state: CampaignState, now: float) -> Status:
    """The status that follows from the folded log."""
    length = state.definition.lease
    estimate = ranking = None
    with suppress(InputError):  # while the data says nothing yet
        if state.steps and state.definition.policies is None:
            estimate = state.collection.estimate()
        elif state.steps:
            ranking = ranking_of(state.collection)
    return Status(
        name=name,
        id=campaign_id,
        definition=state.definition,
        budget=state.budget,
        episodes=state.finished,
        open=len(state.leases),
        free=state.free,
        late=state.late,
        partial=state.partial,
        steps=state.steps,
        states=int((state.collection.statistics.visits.sum(axis=1) > 0).sum()),
        closed=state.closed,
        spent=state.spent,
        steps_per_second=state.history.steps_per_second(now),
        first_event=state.history.first_event,
        last_event=state.history.last_event,
        now=now,
        leases=tuple(
            Lease(
                record.id,
                record.number,
                record.steps,
                record.started,
                record.seen + length,
                now >= record.seen + length,
            )
            for record in state.leases.values()
        ),
        estimate=estimate,
        ranking=ranking,
    )


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
    budget: int  # episodes that may be collected
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
