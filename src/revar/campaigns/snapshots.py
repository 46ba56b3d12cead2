"""Snapshots: the folded state of a log as bytes, so that opening a campaign reads only its tail.

MessagePack of plain records. A snapshot is a convenience: one that is not understood is ignored,
and the log is folded from its beginning.
"""

import msgspec

from revar.campaigns.definition import Definition
from revar.campaigns.fold import CampaignState
from revar.campaigns.ledger import Chosen, EpisodeRecord, Ledger
from revar.campaigns.progress import Look
from revar.campaigns.storage.interface import Snapshot
from revar.collection.saving import SavedCollection, restore, save

FORMAT = 3  # to be raised whenever the rules of the ledger or the records below change
LEAST_EVENTS = 10_000  # between two snapshots
SHARE = 0.05  # and this share of the log, so that all snapshots together stay small


class SavedChoice(msgspec.Struct, frozen=True, array_like=True):
    """See `Chosen`."""

    state: bytes
    action: int
    propensity: float | None


class SavedRecord(msgspec.Struct, frozen=True, array_like=True):
    """See `EpisodeRecord`; the number is its place in the list."""

    id: str
    started: float
    seen: float
    leased: bool
    merged: bool
    steps: int
    ended: bool
    over: bool
    finished: bool
    waiting: SavedChoice | None
    state: bytes | None
    done: list[SavedChoice]


class SavedState(msgspec.Struct, frozen=True):
    """See `CampaignState`."""

    format: int
    budget: int
    finished: int
    late: int
    steps: int
    closed: bool
    joined: list[str]
    policy: list[tuple[bytes, tuple[float, ...]]]
    records: list[SavedRecord]
    collection: SavedCollection
    looks: list[Look]
    first: float | None
    last: float | None
    seconds: list[tuple[int, int]]


def snapshot_due(position: int, last: int) -> bool:
    """Whether the log has grown enough since the last snapshot."""
    return position - last >= max(LEAST_EVENTS, SHARE * position)


def snapshot_of(state: CampaignState) -> Snapshot:
    """The state as bytes."""
    ledger, progress = state.ledger, state.progress
    record = SavedState(
        format=FORMAT,
        budget=ledger.budget,
        finished=ledger.finished,
        late=ledger.late,
        steps=ledger.steps,
        closed=ledger.closed,
        joined=sorted(ledger.joined),
        policy=[] if state.definition.policy is not None else list(ledger.policy.items()),
        records=[_saved_record(ledger, record) for record in ledger.episodes.values()],
        collection=save(state.learner.collection, list(state.learner.episodes.values())),
        looks=progress.looks,
        first=progress.first,
        last=progress.last,
        seconds=list(progress.seconds),
    )
    return Snapshot(state.position, msgspec.msgpack.encode(record))


def restored(definition: Definition, snapshot: Snapshot | None) -> CampaignState:
    """The state that was saved, or an empty one where there is no snapshot that can be used."""
    state = CampaignState(definition)
    if snapshot is None:
        return state
    try:
        record = msgspec.msgpack.decode(snapshot.body, type=SavedState)
    except msgspec.DecodeError:
        return state
    if record.format != FORMAT:
        return state
    _restore_ledger(state.ledger, record)
    episodes = restore(state.learner.collection, record.collection)
    state.learner.episodes = {episode.number: episode for episode in episodes}
    state.progress.looks = list(record.looks)
    state.progress.first, state.progress.last = record.first, record.last
    state.progress.seconds.extend(record.seconds)
    if record.looks:
        state.progress.set_next_look(record.looks[-1].episodes)
    state.position = snapshot.position
    return state


def _restore_ledger(ledger: Ledger, record: SavedState) -> None:
    ledger.budget, ledger.finished, ledger.late = record.budget, record.finished, record.late
    ledger.steps, ledger.closed = record.steps, record.closed
    ledger.joined = set(record.joined)
    ledger.policy.update(record.policy)
    for number, row in enumerate(record.records):
        episode = EpisodeRecord(
            id=row.id,
            number=number,
            started=row.started,
            seen=row.seen,
            merged=row.merged,
            steps=row.steps,
            waiting=None if row.waiting is None else _chosen(row.waiting),
            state=row.state,
            done=[_chosen(choice) for choice in row.done],
            ended=row.ended,
            over=row.over,
            finished=row.finished,
        )
        ledger.episodes[row.id] = episode
        if row.leased:
            ledger.leases[row.id] = episode


def _saved_record(ledger: Ledger, record: EpisodeRecord) -> SavedRecord:
    return SavedRecord(
        id=record.id,
        started=record.started,
        seen=record.seen,
        leased=record.id in ledger.leases,
        merged=record.merged,
        steps=record.steps,
        ended=record.ended,
        over=record.over,
        finished=record.finished,
        waiting=None if record.waiting is None else _choice(record.waiting),
        state=record.state,
        done=[_choice(chosen) for chosen in record.done],
    )


def _choice(chosen: Chosen) -> SavedChoice:
    return SavedChoice(chosen.state, chosen.action, chosen.propensity)


def _chosen(choice: SavedChoice) -> Chosen:
    return Chosen(choice.state, choice.action, choice.propensity)
