"""Status: where a campaign stands, for people and programs."""

from dataclasses import dataclass

from revar.campaigns.definition import Definition
from revar.campaigns.fold import CampaignState
from revar.campaigns.wording import counted, duration
from revar.errors import InputError
from revar.estimators.estimator import Estimate


@dataclass(frozen=True)
class Lease:
    """An open episode that holds a place in the budget."""

    episode: str
    number: int
    steps: int
    started: float
    ends: float  # when its place may go to another episode
    overdue: bool


@dataclass(frozen=True)
class Status:
    """One look at a campaign."""

    name: str
    id: str
    definition: Definition
    budget: int
    finished: int  # episodes that have used their place
    leased: int  # open episodes that hold one
    free: int  # places nobody has used or holds
    late: int  # finished after their place had gone to another
    partial: int  # left with complete steps, without a place
    steps: int  # complete ones: all of them count
    states: int
    closed: bool
    spent: bool  # nothing more will be started
    pace: float  # steps a second over the last minute
    first: float | None  # time of the first event
    last: float | None  # and of the latest
    now: float
    leases: tuple[Lease, ...]
    estimate: Estimate | None

    @property
    def silence(self) -> str:
        """How long ago something happened, in words; empty where nothing has."""
        return "" if self.last is None else f"last event {duration(self.now - self.last)} ago"

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.finished} of {self.budget} episodes finished, {self.leased} open"
            + (f", {self.late} late" if self.late else "")
            + (", closed" if self.closed else ""),
            f"{counted(self.steps, 'step')} in {counted(self.states, 'state')}, "
            f"{self.pace:.3g} steps a second" + (f", {self.silence}" if self.silence else ""),
            str(self.estimate) if self.estimate else "no estimate yet",
        ]
        return "\n".join(lines)


def status_of(name: str, campaign_id: str, state: CampaignState, now: float) -> Status:
    """The status that follows from the folded log."""
    ledger, collection = state.ledger, state.learner.collection
    length = state.definition.lease
    try:
        estimate = collection.estimate() if ledger.steps else None
    except InputError:
        estimate = None
    return Status(
        name=name,
        id=campaign_id,
        definition=state.definition,
        budget=ledger.budget,
        finished=ledger.finished,
        leased=len(ledger.leases),
        free=ledger.free,
        late=ledger.late,
        partial=ledger.partial,
        steps=ledger.steps,
        states=int((collection.statistics.visits.sum(axis=1) > 0).sum()),
        closed=ledger.closed,
        spent=ledger.spent,
        pace=state.progress.pace(now),
        first=state.progress.first,
        last=state.progress.last,
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
            for record in ledger.leases.values()
        ),
        estimate=estimate,
    )
