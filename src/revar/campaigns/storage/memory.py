"""A storage that forgets: for tests, and for trying things out."""

import threading
import time
from collections.abc import Callable, Sequence

from revar.campaigns.storage.interface import (
    Appended,
    CopyError,
    Entry,
    NameTakenError,
    Snapshot,
    Storage,
    StorageError,
    Stored,
)


class MemoryStorage(Storage):
    """Logs in lists. `clock` gives the time, so that a test may turn it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._logs: dict[str, list[Stored]] = {}
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

    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> Appended:
        """See `Storage`."""
        with self._lock:
            log = self._log(campaign_id)
            taken = self._clock()
            for body in bodies:
                log.append(Stored(len(log) + 1, taken, bytes(body)))
            return Appended(len(log), taken)

    def read(self, campaign_id: str, after: int, limit: int) -> list[Stored]:
        """See `Storage`."""
        with self._lock:
            return self._log(campaign_id)[after : after + limit]

    def save_snapshot(self, campaign_id: str, snapshot: Snapshot) -> None:
        """See `Storage`."""
        with self._lock:
            self._log(campaign_id)
            kept = self._snapshots.get(campaign_id)
            if kept is None or kept.position < snapshot.position:
                self._snapshots[campaign_id] = snapshot

    def load_snapshot(self, campaign_id: str) -> Snapshot | None:
        """See `Storage`."""
        with self._lock:
            return self._snapshots.get(campaign_id)

    def now(self) -> float:
        """See `Storage`."""
        return self._clock()

    def close(self) -> None:
        """Nothing to let go of: what it holds is gone with the object."""

    def _log(self, campaign_id: str) -> list[Stored]:
        try:
            return self._logs[campaign_id]
        except KeyError:
            raise StorageError(f"there is no campaign with the id {campaign_id!r}") from None
