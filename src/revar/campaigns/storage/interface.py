"""What a storage must do: keep one log of events for each campaign, and never lose what it took.

Nothing else is asked of it. It does not know what an event means: two events that contradict each
other are both appended, and readers judge them by their order. The storage in memory shows
it in the fewest lines.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, NoReturn, Self

from revar.errors import RefusedError


class StorageError(RefusedError):
    """The storage cannot be reached, or cannot be used as it is."""


class LockedError(StorageError):
    """Others hold what is needed, for longer than it is waited for; all else may be well."""


class NameTakenError(StorageError):
    """There is a campaign of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a campaign {name!r} already")


class CopyError(StorageError):
    """The storage has this very campaign already, under another name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} would be a copy of a campaign that this storage has already, under another "
            f"name"
        )


class MissingCampaignError(StorageError):
    """There is no such campaign, or not any more."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no campaign {name!r}")


@dataclass(frozen=True)
class Entry:
    """A campaign as the storage knows it: what never changes about it."""

    id: str
    name: str
    definition: bytes
    created: float  # seconds since 1970, by the storage's clock


class StoredEvent(NamedTuple):
    """An event with its place in the log, from 1, and when it was taken."""

    position: int
    time: float
    body: bytes


@dataclass(frozen=True)
class AppendResult:
    """Where the last of the appended events stands, and when they were taken."""

    position: int
    time: float


@dataclass(frozen=True)
class Snapshot:
    """The state after the event at `position`, so that the log need not be read up to there."""

    position: int
    body: bytes


class Storage(ABC):
    """Logs of campaigns. Every method may be called from any thread, and after a fork.

    `append` returns when the events are durable. Positions of a log are 1, 2, 3, ... in the order
    in which appends took effect, the events of one append side by side; a reader that sees an
    event sees every event before it.
    """

    @abstractmethod
    def create(self, campaign_id: str, name: str, definition: bytes) -> Entry:
        """Begin an empty log; `NameTakenError` or `CopyError` where name or id is in use."""

    @abstractmethod
    def entries(self) -> list[Entry]:
        """Every campaign, in the order of creation."""

    @abstractmethod
    def find(self, name: str) -> Entry | None:
        """The campaign of that name."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove the campaign of that name with its log; `StorageError` where there is none."""

    @abstractmethod
    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        """Add events to the end of the log, all of them or none."""

    @abstractmethod
    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        """At most `limit` events that follow the position `after`, in order."""

    @abstractmethod
    def length(self, campaign_id: str) -> int:
        """How many events the log has; `MissingCampaignError` where there is no campaign."""

    @abstractmethod
    def save_snapshot(self, campaign_id: str, snapshot: Snapshot) -> None:
        """Keep the snapshot, unless a later one is kept already, or others keep it waiting."""

    @abstractmethod
    def load_snapshot(self, campaign_id: str) -> Snapshot | None:
        """The snapshot that is kept."""

    def check_writable(self) -> None:
        """Write something that changes nothing; `StorageError` where that cannot be done.

        One that does not say better is reached at least.
        """
        self.entries()

    @abstractmethod
    def now(self) -> float:
        """Seconds since 1970 by the clock that stamps the events."""

    def monotonic(self) -> float:
        """Seconds by a clock of this process that nobody sets: how long something is silent."""
        return time.monotonic()

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class MemoryStorage(Storage):
    """Logs in lists, gone with the object: for tests and for trying things out.

    `clock` gives the time, so that a test may turn it; `monotonic` counts silence, and is the
    same clock unless a test sets one of them.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._monotonic = monotonic or (time.monotonic if clock is time.time else clock)
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._logs: dict[str, list[StoredEvent]] = {}
        self._snapshots: dict[str, Snapshot] = {}

    def create(self, campaign_id: str, name: str, definition: bytes) -> Entry:
        """See `Storage`."""
        with self._lock:
            if any(entry.name == name for entry in self._entries.values()):
                raise NameTakenError(name)
            if campaign_id in self._entries:
                raise CopyError(name)
            entry = Entry(campaign_id, name, definition, self._clock())
            self._entries[campaign_id] = entry
            self._logs[campaign_id] = []
            return entry

    def entries(self) -> list[Entry]:
        """See `Storage`."""
        with self._lock:
            return list(self._entries.values())

    def find(self, name: str) -> Entry | None:
        """See `Storage`."""
        return next((entry for entry in self.entries() if entry.name == name), None)

    def delete(self, name: str) -> None:
        """See `Storage`."""
        entry = self.find(name)
        with self._lock:
            if entry is None or self._entries.pop(entry.id, None) is None:
                raise MissingCampaignError(name)
            del self._logs[entry.id]
            self._snapshots.pop(entry.id, None)

    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        """See `Storage`."""
        with self._lock:
            log = self._log(campaign_id)
            taken = self._clock()
            for body in bodies:
                log.append(StoredEvent(len(log) + 1, taken, bytes(body)))
            return AppendResult(len(log), taken)

    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        """See `Storage`."""
        with self._lock:
            return self._log(campaign_id)[after : after + limit]

    def length(self, campaign_id: str) -> int:
        """See `Storage`."""
        with self._lock:
            return len(self._log(campaign_id))

    def save_snapshot(self, campaign_id: str, snapshot: Snapshot) -> None:
        """See `Storage`."""
        with self._lock:
            self._log(campaign_id)
            kept = self._snapshots.get(campaign_id)
            if kept is None or kept.position <= snapshot.position:
                self._snapshots[campaign_id] = snapshot

    def load_snapshot(self, campaign_id: str) -> Snapshot | None:
        """See `Storage`."""
        with self._lock:
            return self._snapshots.get(campaign_id)

    def now(self) -> float:
        """See `Storage`."""
        return self._clock()

    def monotonic(self) -> float:
        """See `Storage`."""
        return self._monotonic()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a storage in memory cannot be sent to another process")

    def close(self) -> None:
        """See `Storage`; there is nothing to let go of."""

    def _log(self, campaign_id: str) -> list[StoredEvent]:
        try:
            return self._logs[campaign_id]
        except KeyError:
            raise MissingCampaignError(campaign_id) from None
