"""Snapshots: the state of a campaign as bytes, so that opening it reads only the log's tail.

MessagePack of plain records behind a checksum. A snapshot is a convenience: one that is damaged or
not understood is ignored, and the log is replayed from its beginning.
"""

from contextlib import suppress
from hashlib import blake2b

import msgspec

from revar.campaigns.definition import Definition
from revar.campaigns.records import EpisodeRecord
from revar.campaigns.state import CampaignState, HistoryPoint
from revar.campaigns.storage.interface import Snapshot
from revar.collection import saving

# To be raised whenever the rules or the records below change. Snapshots below 3 may hold
# plans that nobody but their writer had.
FORMAT = 7
DIGEST = 16  # bytes of the checksum that a snapshot begins with
LEAST_EVENTS = 10_000  # between two snapshots
SHARE = 0.05  # and this share of the log, so that all snapshots together stay small
REBUILDING = 0.8  # the share while a log is read from its beginning: few, as nothing is lost


class SavedRecord(msgspec.Struct, frozen=True, array_like=True):
    """See `EpisodeRecord`; the number is its place in the list."""

    id: str
    started: float
    seen: float
    merged: bool
    finished_early: bool
    final_steps: int
    final_decisions: bytes


class SavedState(msgspec.Struct, frozen=True):
    """See `CampaignState` and `History`."""

    unreadable: int
    late: int
    closed: bool
    archived: bool
    merged: list[str]
    extensions: list[str]
    looks: list[float]  # see `Precision.past`
    reached: bool
    records: list[SavedRecord]
    leases: list[str]  # ids, in the order the leases were taken
    collection: saving.SavedCollection
    history: list[HistoryPoint]
    next_point: int
    first: float | None
    last: float | None
    seconds: list[tuple[int, int]]


def snapshot_due(position: int, last: int, *, rebuilding: bool = False) -> bool:
    """Whether the log has grown enough since the last snapshot."""
    return position - last >= max(LEAST_EVENTS, (REBUILDING if rebuilding else SHARE) * position)


def snapshot_of(state: CampaignState) -> Snapshot:
    """The state as bytes."""
    history = state.history
    open_episodes = [
        record.episode for record in state.records.values() if record.episode is not None
    ]
    record = SavedState(
        unreadable=state.unreadable,
        late=state.late,
        closed=state.closed,
        archived=state.archived,
        merged=sorted(state.merged),
        extensions=sorted(state.extensions),
        looks=state.precision.past,
        reached=state.precision.reached,
        records=[_save_record(record) for record in state.records.values()],
        leases=list(state.leases),
        collection=saving.save(state.collection, open_episodes),
        history=history.points,
        next_point=history.next_point,
        first=history.first_event,
        last=history.last_event,
        seconds=list(history.seconds),
    )
    data = msgspec.msgpack.encode(record)
    return Snapshot(state.position, _digest(state.position, data) + data)


def restore(definition: Definition, snapshot: Snapshot | None) -> CampaignState:
    """The state that was saved, or an empty one where there is no snapshot that can be used."""
    record = None if snapshot is None else read_snapshot(snapshot)
    if snapshot is not None and record is not None:
        with suppress(Exception):  # whatever is wrong with it, the log says the same
            return _restore(definition, snapshot.position, record)
    return CampaignState(definition)


def _restore(definition: Definition, position: int, record: SavedState) -> CampaignState:
    state = CampaignState(definition)
    state.position = position
    state.unreadable, state.late = record.unreadable, record.late
    state.closed, state.archived = record.closed, record.archived
    state.merged, state.extensions = set(record.merged), set(record.extensions)
    _restore_collection(state, record)
    state.precision.budget = state.budget
    state.precision.restore(record.looks, record.reached)
    history = state.history
    history.points, history.next_point = list(record.history), record.next_point
    history.first_event, history.last_event = record.first, record.last
    history.seconds.extend(record.seconds)
    return state


def read_snapshot(snapshot: Snapshot) -> SavedState | None:
    """What was saved; None where it is damaged, or was written by a version with other rules."""
    data = snapshot.body[DIGEST:]
    if snapshot.body[:DIGEST] != _digest(snapshot.position, data):
        return None
    try:
        return msgspec.msgpack.decode(data, type=SavedState)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _digest(position: int, data: bytes) -> bytes:
    """A checksum of all that a snapshot holds, and of its format."""
    salt = f"revar {FORMAT}".encode()
    return blake2b(b"%d " % position + data, digest_size=DIGEST, salt=salt).digest()


def _restore_collection(state: CampaignState, record: SavedState) -> None:
    open_episodes = {e.number: e for e in saving.restore(state.collection, record.collection)}
    for number, row in enumerate(record.records):
        episode = EpisodeRecord(
            row.id,
            number,
            row.started,
            row.seen,
            row.merged,
            open_episodes.get(number),
            row.finished_early,
            row.final_steps,
            row.final_decisions,
        )
        state.records[row.id] = episode
    state.leases = {episode_id: state.records[episode_id] for episode_id in record.leases}
    if not state.definition.has_table:  # the rows that came with acts
        states = state.collection.states
        policies = states.policies  # [J, S, A]
        for number in sorted(states.with_rows):
            key = states[number]
            assert isinstance(key, bytes)
            state.policy[key] = tuple(tuple(row) for row in policies[:, number].tolist())


def _save_record(record: EpisodeRecord) -> SavedRecord:
    return SavedRecord(
        record.id,
        record.started,
        record.seen,
        record.merged,
        record.finished_early,
        record.final_steps,
        record.final_decisions,
    )
