"""Campaign: live collection that hands out decisions and takes back outcomes, durably."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

import msgspec

from revar.campaigns.commands import (
    Act,
    ActionReply,
    Command,
    EpisodeReply,
    Reply,
    answer,
    check_episode_id,
    new_episode_id,
    propose,
)
from revar.campaigns.definition import LEASE, Definition, StrategyRecord, check_name, define
from revar.campaigns.episode import CampaignEpisode
from revar.campaigns.events import (
    Closed,
    Event,
    Finished,
    Released,
    Rewarded,
    Started,
    decode_event,
    encode_event,
)
from revar.campaigns.export import export_dataset
from revar.campaigns.rules import (
    BudgetReservedError,
    BudgetSpentError,
    CampaignError,
    UnknownCampaignError,
    Verdict,
    fold,
)
from revar.campaigns.snapshots import restore, snapshot_due, snapshot_of
from revar.campaigns.state import CampaignState
from revar.campaigns.status import Status, ranking_of, status_of
from revar.campaigns.storage import Storage, open_storage
from revar.campaigns.storage.interface import Entry
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking
from revar.model.trajectory import Dataset
from revar.strategies.strategy import Strategy

PAGE = 5_000  # events read at a time

Read = TypeVar("Read")


class Campaign:
    """One campaign of a storage, seen from one process. May be used from any thread.

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
        snapshot = storage.load_snapshot(entry.id)
        self._state = restore(self.definition, snapshot)
        self._snapshot_position = self._state.position
        unusable = snapshot is not None and self._state.position == 0
        self.refresh()
        if unusable and self._state.position > 0:
            self._save_snapshot()  # in its place

    @classmethod
    def create(
        cls,
        storage: Storage | str,
        name: str,
        *,
        policy: Any = None,
        policies: Any = None,
        question: str | None = None,
        actions: int | None = None,
        horizon: int,
        discount: float = 1.0,
        episodes: int,
        strategy: str | Strategy | StrategyRecord = "flow",
        seed: int | None = None,
        lease: float = LEASE,
    ) -> "Campaign":
        """A new campaign.

        `policy` is a table: {state: probabilities}, pairs of states and probabilities, or an
        array [S, A] over states 0, 1, ...; without one, every `act` brings the target policy's
        probabilities, and `actions` says how many there are. `policies` are several to compare:
        {name: table}, or names alone; the `question` is "best" (the default), "values", or
        "difference" of two. An episode that is silent for `lease` seconds gives its place in the
        budget to another one.
        """
        definition = define(
            policy=policy,
            policies=policies,
            question=question,
            actions=actions,
            horizon=horizon,
            discount=discount,
            episodes=episodes,
            strategy=strategy,
            seed=seed,
            lease=lease,
        )
        store = open_storage(storage)
        body = msgspec.json.encode(definition)
        return cls(store, store.create(uuid.uuid4().hex, check_name(name), body))

    @classmethod
    def open(cls, storage: Storage | str, name: str) -> "Campaign":
        """The campaign of that name, as it stands."""
        store = open_storage(storage, create=False)
        entry = store.find(check_name(name))
        if entry is None:
            raise UnknownCampaignError(name)
        return cls(store, entry)

    @classmethod
    def copy_of(cls, source: "Campaign", storage: Storage | str, name: str) -> "Campaign":
        """An empty copy in another storage, with the same question and id, to merge into."""
        store = open_storage(storage)
        body = msgspec.json.encode(source.definition)
        return cls(store, store.create(source.id, check_name(name), body))

    # -- collecting ------------------------------------------------------------------------

    def start_episode(self, episode_id: str | None = None) -> CampaignEpisode:
        """Reserve a place in the budget.

        Raises `BudgetSpentError` where nothing is left to do, and `BudgetReservedError` where
        other workers hold all that is left. The same id again gives the same episode.
        """
        chosen = new_episode_id() if episode_id is None else check_episode_id(episode_id)
        return CampaignEpisode(self, self.execute_one(Started(chosen)))

    def episode(self, episode_id: str) -> CampaignEpisode:
        """An episode that was started before, here or elsewhere."""
        return CampaignEpisode(self, self.find_episode(episode_id))

    def episodes(self, poll: float = 1.0) -> Iterator[CampaignEpisode]:
        """Episodes until the budget is spent; waits while other workers hold all that is left."""
        while True:
            try:
                yield self.start_episode()
            except BudgetSpentError:
                return
            except BudgetReservedError as error:
                time.sleep(min(poll, error.retry_after + 0.001))

    def close(self) -> None:
        """Start no more episodes; open ones may still act and report."""
        self.execute_one(Closed())

    # -- reading ---------------------------------------------------------------------------

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """The target policy's value from every complete step so far."""
        if self.definition.policies is not None:
            raise CampaignError("several-policies", "there are several target policies: rank them")
        return self.read(lambda state, _: state.collection.estimate(confidence))

    def ranking(self, confidence: float = 0.95) -> Ranking:
        """The values of several target policies, the leader, and its differences to the others."""
        if self.definition.policies is None:
            raise CampaignError("one-policy", "there is one target policy: estimate its value")
        return self.read(lambda state, _: ranking_of(state.collection, confidence))

    def status(self) -> Status:
        """Budget, leases, steps per second and estimate."""
        return self.read(lambda state, now: status_of(self.name, self.id, state, now))

    def find_episode(self, episode_id: str) -> EpisodeReply:
        """Where an episode stands."""
        with self._lock:
            self.refresh()
            record = self._state.records.get(episode_id)
            if record is None:
                raise CampaignError("unknown-episode", f"there is no episode {episode_id!r}")
            return EpisodeReply.of(record, repeated=True)

    def read(self, reader: Callable[[CampaignState, float], Read]) -> Read:
        """Call `reader` with the state and the time. Nothing changes the state meanwhile."""
        with self._lock:
            self._read_on(None)
            return reader(self._state, self.storage.now())

    def dataset(self, *, partial: bool = False) -> Dataset:
        """The complete episodes; with `partial` also the complete steps of the others."""
        return export_dataset(self.definition, self.events(), partial=partial)

    def events(self) -> Iterator[tuple[float, Event]]:
        """The log from its beginning: when each event was taken, and the event."""
        after = 0
        while page := self.storage.read(self.id, after, PAGE):
            for stored in page:
                yield stored.time, decode_event(stored.body)
            after = page[-1].position

    # -- the log ---------------------------------------------------------------------------

    def refresh(self) -> None:
        """Fold what others have added to the log."""
        with self._lock:
            self._read_on(None)

    @overload
    def execute_one(self, command: Act) -> ActionReply: ...

    @overload
    def execute_one(self, command: Started | Rewarded | Finished | Released) -> EpisodeReply: ...

    @overload
    def execute_one(self, command: Closed) -> None: ...

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
            for place, command in enumerate(commands):
                needed, verdict = propose(self._state, command, self.storage.now)
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
            return replies

    def add(self, events: Sequence[Event]) -> list[Verdict]:
        """Append events as they are; the verdict on each."""
        with self._lock:
            self._read_on(None)
            verdicts: list[Verdict] = []
            if events:
                self._append(events, lambda _, verdict: verdicts.append(verdict))
            return verdicts

    def _append(self, events: Sequence[Event], judged: Callable[[int, Verdict], None]) -> None:
        """Append the events and fold the log up to them; `judged` is called with each verdict."""
        added = self.storage.append(self.id, [encode_event(event) for event in events])
        first = added.position - len(events) + 1
        if self._state.position < first - 1:
            self._read_on(first - 1)  # others were quicker
        for number, event in enumerate(events):
            judged(number, fold(self._state, first + number, added.time, event))
        self._keep_snapshot()

    def _read_on(self, until: int | None) -> None:
        """Fold events up to a position, or to the end of the log."""
        while until is None or self._state.position < until:
            limit = PAGE if until is None else min(PAGE, until - self._state.position)
            page = self.storage.read(self.id, self._state.position, limit)
            for stored in page:
                fold(self._state, stored.position, stored.time, decode_event(stored.body))
            if len(page) < limit:
                return
            self._keep_snapshot()

    def _keep_snapshot(self) -> None:
        if snapshot_due(self._state.position, self._snapshot_position):
            self._save_snapshot()

    def _save_snapshot(self) -> None:
        self.storage.save_snapshot(self.id, snapshot_of(self._state))
        self._snapshot_position = self._state.position
