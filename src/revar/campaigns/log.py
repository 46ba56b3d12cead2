"""The log of one campaign, replayed: reading what others appended, and appending commands."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import takewhile
from typing import Any, TypeVar, overload

from revar.campaigns.commands import (
    Act,
    ActionReply,
    Command,
    EpisodeReply,
    Reply,
    answer,
    check_room,
    propose,
)
from revar.campaigns.events import (
    AboutCampaign,
    Event,
    Finished,
    Released,
    Renewed,
    Rewarded,
    Started,
    Unreadable,
    decode_events,
    encode_event,
)
from revar.campaigns.folding import fold, without_cycles
from revar.campaigns.leases import LeaseClock
from revar.campaigns.rules import CampaignError, replay
from revar.campaigns.snapshots import restore, snapshot_due, snapshot_of
from revar.campaigns.state import CampaignState
from revar.campaigns.storage import Storage
from revar.campaigns.storage.forking import ForkAware
from revar.campaigns.storage.interface import (
    Entry,
    MissingCampaignError,
    Snapshot,
    StorageError,
    StoredEvent,
)
from revar.campaigns.stored import check_there, empty_state, refuse_damage
from revar.campaigns.verdicts import Verdict
from revar.collection.plans import PlanBasis

PAGE = 5_000  # events read at a time
PLANNED_AT_ONCE = 50_000  # combinations of step, state and action: some hundredths of a second

Read = TypeVar("Read")
# Called while a log is read with how many of its events are, and how many there are.
Progress = Callable[[int, int], None]


class CampaignLog(ForkAware):
    """The log and the state that follows from it, in one process. May be used from any thread.

    Every call reads what others have added to the log, appends what it asks for, and answers with
    what the log says then. Nothing is decided outside the log. One thread appends at a time; who
    reads does not wait for it, however long the storage takes.
    """

    def __init__(
        self,
        storage: Storage,
        entry: Entry,
        progress: Progress | None = None,
        state: CampaignState | None = None,  # as it was once
    ) -> None:
        ForkAware.__init__(self)
        self.storage = storage
        self.id = entry.id
        self.name = entry.name
        self.created = entry.created
        self._entry = entry
        self._state = empty_state(entry)
        self.definition = self._state.definition
        self._writing = threading.Lock()  # taken before the other, and held through an append
        self._lock = threading.RLock()  # of the state
        self._appending: bytes | None = None  # the first event of an append that is under way
        # Makes plans that take long in the background, where somebody sees to that.
        self.plan_later: Callable[[Callable[[], None]], Future[None]] | None = None
        self._planning: tuple[PlanBasis, Future[None]] | None = None
        self._torn = False  # a fork left the state in the middle of a change
        self._clock = LeaseClock(storage)
        with refuse_damage(entry):
            self._open(progress, state)

    def _open(self, progress: Progress | None = None, state: CampaignState | None = None) -> None:
        snapshot = self.storage.load_snapshot(self.id) if state is None else None
        self._state = state or restore(self.definition, snapshot)
        self._snapshot_position = self._state.position
        unusable = snapshot is not None and self._state.position == 0
        with without_cycles():
            self._read_on(None, progress or (lambda *_: None))
        if unusable and self._state.position > 0:
            self._save_snapshot()  # in its place
        else:
            self._keep_snapshot()  # else the next to open would read most of that again

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.storage, self._entry)

    def after_fork(self) -> None:
        """See `ForkAware`. What another thread was changing is read anew."""
        whole = self._lock.acquire(blocking=False)
        self._lock, self._writing = threading.RLock(), threading.Lock()
        self._appending = None
        self._torn = not whole

    def read(self, reader: Callable[[CampaignState, float], Read]) -> Read:
        """Call `reader` with the state and the time. Nothing changes the state meanwhile.

        Raises `MissingCampaignError` where others have removed the campaign.
        """
        with self._lock:
            check_there(self.storage, self._entry, self._state.position)
            self._read_on(None)
            return reader(self._state, self.storage.now())

    def peek(self, reader: Callable[[CampaignState], Read]) -> Read:
        """A number of the state as it is in memory, at once: it may change at any time."""
        return reader(self._state)

    def snapshot(self) -> Snapshot | None:
        """The state as it is in memory; None while a plan is waited for.

        What that is made of is in the log alone.
        """
        with self._lock:
            waits = self._state.collection.put_off is not None
            return None if waits else snapshot_of(self._state)

    def events(self) -> Iterator[tuple[float, Event | Unreadable]]:
        """The log from its beginning: when each event was taken, and the event."""
        return read_events(self.storage, self._entry, self._state.position)

    @overload
    def execute_one(self, command: Act) -> ActionReply: ...

    @overload
    def execute_one(
        self, command: Started | Rewarded | Finished | Released | Renewed
    ) -> EpisodeReply: ...

    @overload
    def execute_one(self, command: AboutCampaign) -> None: ...

    def execute_one(self, command: Command) -> Reply:
        """Carry out one command; an error is raised."""
        reply = self.execute([command])[0]
        if isinstance(reply, CampaignError):
            raise reply
        return reply

    def execute(self, commands: Sequence[Command]) -> list[Reply]:
        """Carry out commands, in order and in one commit; errors are returned, not raised.

        Starts for which there is no room beside the others wait for that commit: then they are
        refused, or take what others have given back.
        """
        with self._writing:
            replies: list[Reply] = [None] * len(commands)
            places = list(range(len(commands)))
            while places:
                places = self._execute(commands, places, replies)
            return replies

    def _execute(
        self, commands: Sequence[Command], places: Sequence[int], replies: list[Reply]
    ) -> list[int]:
        """Carry out the commands at these places in one commit; the places of those that wait."""
        events: list[Event] = []
        carried: dict[int, int] = {}  # place of an event -> of the command it carries out
        waiting: list[int] = []
        with self._lock:
            self._read_on(None)
            begun: set[str] = set()  # episodes
            new_states: set[bytes] = set()
            room, put_off = self._state.free, self._puts_plans_off()
            for place in places:
                command = commands[place]
                start = command.episode if isinstance(command, Started) else None
                if start is not None and (start in begun or 0 < len(begun) >= room):
                    waiting.append(place)
                    continue
                needed, verdict = propose(
                    self._state, command, self._clock, new_states, put_plan_off=put_off
                )
                events += needed
                if not needed:
                    replies[place] = answer(self._state, command, verdict, self._clock)
                    continue
                carried[len(events) - 1] = place
                if start is not None:
                    begun.add(start)

        def reply(number: int, verdict: Verdict) -> None:
            """Answer at once: a later event may end the episode that was asked about."""
            if number in carried:
                place = carried[number]
                replies[place] = answer(self._state, commands[place], verdict, self._clock)

        if events:
            self._append(events, reply)
        return waiting

    def add(self, events: Sequence[Event]) -> list[Verdict]:
        """Append events as they are; the verdict on each."""
        with self._writing:
            with self._lock:
                self._read_on(None)
                check_room(self._state, events)
            verdicts: list[Verdict] = []
            if events:
                self._append(events, lambda _, verdict: verdicts.append(verdict))
            return verdicts

    def _puts_plans_off(self) -> bool:
        """Whether acts go on under the plan in force where another is due: it is being made."""
        collection = self._state.collection
        if self.plan_later is None or collection.cells < PLANNED_AT_ONCE:
            return False
        basis = collection.put_off
        if basis is None:
            return True
        if self._planning is None or self._planning[0] is not basis:
            made = self.plan_later(lambda: collection.make_plan_put_off(basis))
            self._planning = basis, made
        return not self._planning[1].done()

    def _append(self, events: Sequence[Event], judged: Callable[[int, Verdict], None]) -> None:
        """Append the events and replay the log up to them; `judged` is called with each verdict."""
        bodies = [encode_event(event) for event in events]
        with self._lock:
            self._appending = bodies[0]
        try:
            added = self.storage.append(self.id, bodies)
        except BaseException:
            with self._lock:
                self._appending = None
            raise
        first = added.position - len(events) + 1
        with self._lock:
            self._appending = None
            if first <= self._state.position:  # the log of another that has its id
                raise MissingCampaignError(self.name)
            if self._state.position < first - 1:
                self._read_on(first - 1)  # others were quicker
            for number, event in enumerate(events):
                judged(number, replay(self._state, first + number, added.time, event))
            self._clock.note(added.time)
            self._keep_snapshot()
            self._puts_plans_off()  # begins with one that has become due

    def _read_on(self, until: int | None, progress: Progress | None = None) -> None:
        """Replay events up to a position, or to the end of the log."""
        if self._torn:
            self._torn = False
            self._open()
        state, length = self._state, 0
        while until is None or state.position < until:
            limit = PAGE if until is None else min(PAGE, until - state.position)
            page = self._others(self.storage.read(self.id, state.position, limit))
            fold(state, page)
            if len(page) < limit:
                return
            if progress is not None:
                length = length or self.storage.length(self.id)
                progress(state.position, max(length, state.position))
            self._keep_snapshot(rebuilding=progress is not None)

    def _others(self, page: list[StoredEvent]) -> list[StoredEvent]:
        """What stands before the events of an append that is under way: it judges these itself."""
        if self._appending is None:
            return page
        return list(takewhile(lambda stored: stored.body != self._appending, page))

    def _keep_snapshot(self, *, rebuilding: bool = False) -> None:
        if snapshot_due(self._state.position, self._snapshot_position, rebuilding=rebuilding):
            self._save_snapshot()

    def _save_snapshot(self) -> None:
        snapshot = self.snapshot()
        if snapshot is None:
            return
        # A snapshot is a convenience: where it cannot be written, at once, the log can be read.
        with suppress(StorageError):
            self.storage.save_snapshot(self.id, snapshot)
        self._snapshot_position = self._state.position


def read_events(
    storage: Storage, entry: Entry, least: int = 0, progress: Progress | None = None
) -> Iterator[tuple[float, Event | Unreadable]]:
    """The log from its beginning, of which `least` events are known: times and events."""
    check_there(storage, entry, least)
    return _all_events(storage, entry, least, progress)


def _all_events(
    storage: Storage, entry: Entry, least: int, progress: Progress | None
) -> Iterator[tuple[float, Event | Unreadable]]:
    after = 0
    while page := storage.read(entry.id, after, PAGE):
        events = decode_events([stored.body for stored in page])
        yield from zip((stored.time for stored in page), events, strict=True)
        after = page[-1].position
        if progress is not None and len(page) == PAGE:
            progress(after, max(storage.length(entry.id), after))
    # Else the log would seem to end where it was removed.
    check_there(storage, entry, max(least, after))
