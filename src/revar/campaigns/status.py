"""Where a campaign stands, for people and programs, and what its data says about it."""

from dataclasses import dataclass
from math import isfinite

import msgspec
import numpy as np

from revar.campaigns.definition import Definition, StrategyRecord
from revar.campaigns.state import CampaignState
from revar.campaigns.text import duration, quantity
from revar.errors import InputError
from revar.estimators.comparison import compare, corrected_costs
from revar.estimators.estimator import Estimate
from revar.model.arrays import FloatArray, IntArray

MOST_STATES = 12  # shown, the most visited first
MOST_PAIRS = 8  # shown, the most uncertain first


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
            f"{self.name}: {self.episodes} of {self.budget} episodes finished, {self.leased} open"
            + (f", {self.late} late" if self.late else "")
            + (", closed" if self.closed else ""),
            f"{quantity(self.steps, 'step')} in {quantity(self.states, 'state')}, "
            f"{self.pace:.3g} steps a second" + (f", {self.silence}" if self.silence else ""),
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
        leased=len(state.leases),
        free=state.free,
        late=state.late,
        partial=state.partial,
        steps=state.steps,
        states=int((state.collection.statistics.visits.sum(axis=1) > 0).sum()),
        closed=state.closed,
        spent=state.spent,
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
            "open": status.leased,
            "steps_per_second": status.pace,
            "last_event": status.last,
            "estimate": None if status.estimate is None else EstimateMessage.of(status.estimate),
        }
        return cls(*(fields[name] for name in cls.__struct_fields__))


@dataclass(frozen=True)
class StateView:
    """How a state is treated, against what the target policy does there."""

    state: bytes
    visits: int
    target: tuple[float, ...]  # [A]
    behavior: tuple[float, ...]  # [A] shares of its visits


@dataclass(frozen=True)
class PairView:
    """A state and an action that the estimate's error comes from."""

    state: bytes
    action: int
    visits: int
    target: float
    share: float  # of the remaining variance


@dataclass(frozen=True)
class Insight:
    """What the data says about the estimate, for the dashboard."""

    states: tuple[StateView, ...]
    states_seen: int
    pairs: tuple[PairView, ...]
    on_policy_error: float | None  # standard error that on-policy episodes would have given
    largest_share: float  # of an action, in the target policy or the behavior of those states
    saved: float | None  # share of the episodes that on-policy would have needed on top


def insight_of(state: CampaignState) -> Insight | None:
    """None until a step is complete."""
    collection = state.collection
    statistics = collection.statistics
    if statistics.states == 0 or not statistics.visits.any():
        return None
    task = collection.task
    observed = statistics.run_statistics(task.states)
    try:
        errors = corrected_costs(task, observed) / observed.visits.clip(min=1)
        on_policy = compare(task, statistics).on_policy
        current = collection.estimate().standard_error
    except InputError:
        return None
    known = isfinite(on_policy) and isfinite(current) and current > 0
    keys = [key if isinstance(key, bytes) else b"" for key in collection.states.keys]
    states = _states(keys, observed.visits, task.policy)
    return Insight(
        states=states,
        states_seen=int((observed.visits.sum(axis=1) > 0).sum()),
        pairs=_pairs(keys, observed.visits, task.policy, errors),
        largest_share=max(max(*view.target, *view.behavior, 0.0) for view in states),
        on_policy_error=on_policy if known else None,
        saved=(on_policy / current) ** 2 - 1.0 if known else None,
    )


def _states(keys: list[bytes], visits: IntArray, policy: FloatArray) -> tuple[StateView, ...]:
    totals = visits.sum(axis=1)
    order = np.argsort(-totals, kind="stable")[:MOST_STATES]
    return tuple(
        StateView(
            keys[s],
            int(totals[s]),
            tuple(policy[s].tolist()),
            tuple((visits[s] / totals[s]).tolist()),
        )
        for s in order.tolist()
        if totals[s] > 0
    )


def _pairs(
    keys: list[bytes], visits: IntArray, policy: FloatArray, errors: FloatArray
) -> tuple[PairView, ...]:
    total = float(errors.sum())
    if not 0.0 < total < float("inf"):
        return ()
    order = np.argsort(-errors, axis=None, kind="stable")[:MOST_PAIRS]
    places = [(int(s), int(a)) for s, a in zip(*np.unravel_index(order, errors.shape), strict=True)]
    return tuple(
        PairView(keys[s], a, int(visits[s, a]), float(policy[s, a]), float(errors[s, a]) / total)
        for s, a in places
        if errors[s, a] > 0
    )
