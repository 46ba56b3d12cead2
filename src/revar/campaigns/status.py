"""Where a campaign stands, for people and programs."""

from dataclasses import dataclass

import msgspec

from revar.campaigns.definition import Definition, StrategyRecord
from revar.campaigns.state import CampaignState
from revar.campaigns.text import duration, quantity
from revar.errors import InputError
from revar.estimators.estimator import Estimate


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
    estimate: Estimate | None

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
            str(self.estimate) if self.estimate else "no estimate yet",
        ]
        return "\n".join(lines)


def status_of(name: str, campaign_id: str, state: CampaignState, now: float) -> Status:
    """The status that follows from the folded log."""
    length = state.definition.lease
    try:
        estimate = state.collection.estimate() if state.steps else None
    except InputError:
        estimate = None
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
        known = estimate.standard_error < float("inf")
        low, high = estimate.interval
        return cls(
            estimate.value,
            estimate.standard_error if known else None,
            low if known else None,
            high if known else None,
            estimate.confidence,
            estimate.episodes,
            estimate.unvisited_probability,
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
    estimate: EstimateMessage | None

    @classmethod
    def of(cls, status: Status) -> "StatusMessage":
        """The status of a campaign, with what defines it."""
        fields = {
            **msgspec.structs.asdict(status.definition),
            **vars(status),
            "has_policy_table": status.definition.policy is not None,
            "estimate": None if status.estimate is None else EstimateMessage.of(status.estimate),
        }
        return cls(*(fields[name] for name in cls.__struct_fields__))
