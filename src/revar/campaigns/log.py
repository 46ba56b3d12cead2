"""The log of one campaign, replayed: reading what others appended, and appending commands."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TypeVar, overload

import msgspec

from revar.campaigns.commands import Act, ActionReply, Command, EpisodeReply, Reply, answer, propose
from revar.campaigns.definition import Definition
from revar.campaigns.events import (
    AboutCampaign,
    Event,
    Finished,
    Released,
    Renewed,
    Rewarded,
    Started,
    decode_event,
    encode_event,
)
from revar.campaigns.rules import CampaignError, replay
from revar.campaigns.snapshots import restore, snapshot_due, snapshot_of
from revar.campaigns.state import CampaignState
from revar.campaigns.storage import Storage
from revar.campaigns.storage.interface import Entry
from revar.campaigns.verdicts import Verdict
from revar.collection.plans import PlanBasis

PAGE = 5_000  # events read at a time
PLANNED_AT_ONCE = 50_000  # combinations of step, state and action: some hundredths of a second

Read = TypeVar("Read")


class CampaignLog:
    """The log and the state that follows from it, in one process. May be used from any thread.

    Every call reads what others have added to the log, appends what it asks for, and answers with
    what the log says then. Nothing is decided outside the log.
    """

    def __init__(self, storage: Storage, entry: Entry) -> None:
        self.storage = storage
        self.id = entry.id
        self.name = entry.name
        self.created = entry.created
        self.definition = msgspec.json.decode(entry.definition, type=Definition)
        self._lock = threading.RLock()
        # Makes plans that take long in the background, where somebody sees to that.
        self.plan_later: Callable[[Callable[[], None]], Future[None]] | None = None
        self._planning: tuple[PlanBasis, Future[None]] | None = None
        snapshot = storage.load_snapshot(entry.id)
        self._state = restore(self.definition, snapshot)
        self._snapshot_position = self._state.position
        unusable = snapshot is not None and self._state.position == 0
        self.refresh()
        if unusable and self._state.position > 0 and self._state.collection.put_off is None:
            self._save_snapshot()  # in its place

    def read(self, reader: Callable[[CampaignState, float], Read]) -> Read:
        """Call `reader` with the state and the time. Nothing changes the state meanwhile."""
        with self._lock:
            self._read_on(None)
            return reader(self._state, self.storage.now())

    def peek(self, reader: Callable[[CampaignState], Read]) -> Read:
        """A number of the state as it is in memory, at once: it may change at any time."""
        return reader(self._state)

    def events(self) -> Iterator[tuple[float, Event]]:
        """The log from its beginning: when each event was taken, and the event."""
        after = 0
        while page := self.storage.read(self.id, after, PAGE):
            for stored in page:
                yield stored.time, decode_event(stored.body)
            after = page[-1].position

    def refresh(self) -> None:
        """Fold what others have added to the log."""
        with self._lock:
            self._read_on(None)

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
        """Carry out commands, in order and in one commit; errors are returned, not raised."""
        with self._lock:
            self._read_on(None)
            events: list[Event] = []
            carried: dict[int, int] = {}  # place of an event -> of the command it carries out
            replies: list[Reply] = [None] * len(commands)
            put_off = self._puts_plans_off()
            for place, command in enumerate(commands):
                needed, verdict = propose(
                    self._state, command, self.storage.now, put_plan_off=put_off
                )
                events += needed
                if needed:
                    carried[len(events) - 1] = place
                else:
                    replies[place] = answer(self._state, command, verdict, self.storage.now)

            def reply(number: int, verdict: Verdict) -> None:
                """Answer at once: a later event may end the episode that was asked about."""
                if number in carried:
                    place = carried[number]
                    replies[place] = answer(self._state, commands[place], verdict, self.storage.now)

            if events:
                self._append(events, reply)
                self._puts_plans_off()  # begins with one that has become due
            return replies

    def add(self, events: Sequence[Event]) -> list[Verdict]:
        """Append events as they are; the verdict on each."""
        with self._lock:
            self._read_on(None)
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
        added = self.storage.append(self.id, [encode_event(event) for event in events])
        first = added.position - len(events) + 1
        if self._state.position < first - 1:
            self._read_on(first - 1)  # others were quicker
        for number, event in enumerate(events):
            judged(number, replay(self._state, first + number, added.time, event))
        self._keep_snapshot()

    def _read_on(self, until: int | None) -> None:
        """Replay events up to a position, or to the end of the log."""
        while until is None or self._state.position < until:
            limit = PAGE if until is None else min(PAGE, until - self._state.position)
            page = self.storage.read(self.id, self._state.position, limit)
            for stored in page:
                replay(self._state, stored.position, stored.time, decode_event(stored.body))
            if len(page) < limit:
                return
            self._keep_snapshot()

    def _keep_snapshot(self) -> None:
        # What a plan that is waited for is made of is in the log alone.
        waits = self._state.collection.put_off is not None
        if not waits and snapshot_due(self._state.position, self._snapshot_position):
            self._save_snapshot()

    def _save_snapshot(self) -> None:
        self.storage.save_snapshot(self.id, snapshot_of(self._state))
        self._snapshot_position = self._state.position
