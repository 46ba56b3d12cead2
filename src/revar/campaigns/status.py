"""Where a campaign stands, for people and programs."""

from contextlib import suppress
from dataclasses import dataclass

import msgspec

from revar.campaigns.definition import Definition
from revar.campaigns.limits import LimitReport, report_limits
from revar.campaigns.precision import PrecisionReport
from revar.campaigns.state import CampaignState
from revar.campaigns.text import amount, duration, quantity
from revar.collection import Collection
from revar.errors import InputError
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking
from revar.model.budget import Budget


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
    budget: int | float
    unit: str  # of the budget: episodes, steps or cost
    used: float  # of the budget
    left: float
    episodes: int  # finished: they have used their place
    open: int  # episodes that hold a place
    free: int  # places nobody has used or holds: episodes that surely fit
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
    realised: tuple[LimitReport, ...] = ()  # limits on sums, against what was collected
    precision: PrecisionReport | None = None  # where a half-width is wanted
    archived: bool = False
    unreadable: int = 0  # events of the log that are damaged, and have no effect

    @property
    def silence(self) -> str:
        """How long ago something happened, in words; empty where nothing has."""
        if self.last_event is None:
            return ""
        return f"last event {duration(self.now - self.last_event)} ago"

    @property
    def condition(self) -> str:
        """A word for where the campaign stands."""
        return _condition(
            self.archived,
            self.left <= 0.0 or (self.precision is not None and self.precision.reached),
            self.closed,
            [lease.overdue for lease in self.leases],
        )

    def __repr__(self) -> str:
        return f"Status({self.name!r}: {self._spending}, {self.open} open)"

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self._spending}, {self.open} open"
            + (f", {self.late} late" if self.late else "")
            + (", archived" if self.archived else ", closed" if self.closed else ""),
            f"{quantity(self.steps, 'step')} in {quantity(self.states, 'state')}, "
            f"{self.steps_per_second:.3g} steps a second"
            + (f", {self.silence}" if self.silence else ""),
            *(self.definition.limits.rules if self.definition.limits is not None else ()),
            *map(str, self.realised),
            *(
                [f"{quantity(self.unreadable, 'event')} of the log cannot be read"]
                if self.unreadable
                else []
            ),
            self._answer,
        ]
        return "\n".join(lines)

    @property
    def allowance(self) -> Budget:
        """The budget with its unit."""
        return Budget(self.budget, self.unit)

    @property
    def share_used(self) -> float:
        """Of the budget, not above 1."""
        return min(1.0, self.used / self.budget)

    @property
    def share_reserved(self) -> float:
        """Of the budget, the most that open episodes take; nobody knows of costs."""
        most = {"episodes": 1, "steps": self.definition.horizon}.get(self.unit, 0)
        return min(1.0 - self.share_used, self.open * most / self.budget)

    @property
    def _spending(self) -> str:
        if self.unit == "episodes":
            return f"{self.episodes} of {self.budget} episodes finished"
        spent = f"{amount(self.used)} of {self.allowance.text(self.budget)} spent"
        return f"{spent}, {quantity(self.episodes, 'episode')} finished"

    @property
    def _answer(self) -> str:
        if self.ranking is not None:
            return f"{self.ranking.table()}\n{self.ranking.verdict()}"
        return "no estimate yet" if self.estimate is None else str(self.estimate)


def ranking_of(collection: Collection, confidence: float = 0.95) -> Ranking:
    """The target policies of a collection, compared; intervals are those of normal errors."""
    return Ranking.of(collection.states.names, collection.joint_estimate(confidence))


def condition_of(state: CampaignState, now: float) -> str:
    """The condition that the status would have, without its estimate."""
    ends = [record.seen + state.definition.lease for record in state.leases.values()]
    complete = state.left <= 0.0 or state.precision.reached
    return _condition(state.archived, complete, state.closed, [now >= end for end in ends])


def _condition(archived: bool, complete: bool, closed: bool, overdue: list[bool]) -> str:
    """A word; `overdue` says of each lease whether it has run out."""
    if archived:
        return "archived"
    if complete:
        return "complete"
    if closed:
        return "closed"
    if not overdue:
        return "waiting"
    return "stalled" if all(overdue) else "running"


def status_of(name: str, campaign_id: str, state: CampaignState, now: float) -> Status:
    """The status that follows from the replayed log."""
    length = state.definition.lease
    estimate = ranking = None
    with suppress(InputError):  # while the data says nothing yet
        if state.steps and state.definition.policies is None:
            estimate = state.estimate()
        elif state.steps:
            ranking = ranking_of(state.collection)
    collection, value = state.collection, None
    if estimate is not None:
        value = estimate.value
    elif ranking is not None:
        value = float(ranking.joint.values.mean())
    return Status(
        name=name,
        id=campaign_id,
        definition=state.definition,
        budget=state.budget.amount,
        unit=state.budget.unit,
        used=collection.spent,
        left=state.left,
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
                min(record.seen, now) + length,  # the clock may have been set back
                now >= record.seen + length,
            )
            for record in state.leases.values()
        ),
        estimate=estimate,
        ranking=ranking,
        realised=report_limits(collection.limits, collection.totals, value),
        precision=state.precision.report(estimate),
        archived=state.archived,
        unreadable=state.unreadable,
    )
