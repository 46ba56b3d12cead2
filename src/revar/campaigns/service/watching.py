"""The storage as a service sees it: errors are counted, outages logged when they begin and end."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from revar.campaigns.service.metrics import Metrics
from revar.campaigns.storage.interface import (
    AppendResult,
    CopyError,
    Entry,
    LockedError,
    MissingCampaignError,
    NameTakenError,
    Snapshot,
    Storage,
    StorageError,
    StoredEvent,
)

READ, WRITE = "read", "written"  # what is done with the storage
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_logger = logging.getLogger("revar.storage")


class _Outage:
    """Of reading or of writing: when it began, and how many calls failed since.

    Many threads call. Of whether an outage has begun or ended, a call says something only if it
    was made after the last such change.
    """

    def __init__(self, access: str, metrics: Metrics) -> None:
        self.access = access
        self.began: float | None = None
        self.calls = 0
        self._changed = float("-inf")  # when it last began or ended
        self._lock = threading.Lock()
        self.errors = metrics.storage_errors.labels(access)
        self._up = metrics.storage_up.labels(access)
        self._up.set(1)

    def failed(self, asked: float, error: StorageError) -> None:
        """A call that was made at that time failed."""
        self.errors.inc()
        with self._lock:
            self.calls += 1
            if self.began is not None or asked < self._changed:
                return
            self.began = self._changed = time.monotonic()
            self.calls = 1
            self._up.set(0)
            _logger.error("the storage cannot be %s: %s", self.access, error)

    def worked(self, asked: float) -> None:
        """A call that was made at that time was carried out."""
        with self._lock:
            if self.began is None or asked < self._changed:
                return
            self._changed = time.monotonic()
            seconds, self.began = self._changed - self.began, None
            self._up.set(1)
            _logger.warning(
                "the storage can be %s again, after %.1f s and %d calls that failed",
                self.access,
                seconds,
                self.calls,
            )


class WatchedStorage(Storage):
    """Another storage, watched."""

    def __init__(self, storage: Storage, metrics: Metrics) -> None:
        self._storage = storage
        self._outages = {access: _Outage(access, metrics) for access in (READ, WRITE)}

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._storage,)  # another process watches it, or does not

    def create(self, campaign_id: str, name: str, definition: bytes) -> Entry:
        """See `Storage`."""
        return self._watch(WRITE, self._storage.create, campaign_id, name, definition)

    def entries(self) -> list[Entry]:
        """See `Storage`."""
        return self._watch(READ, self._storage.entries)

    def find(self, name: str) -> Entry | None:
        """See `Storage`."""
        return self._watch(READ, self._storage.find, name)

    def delete(self, name: str) -> None:
        """See `Storage`."""
        self._watch(WRITE, self._storage.delete, name)

    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        """See `Storage`."""
        return self._watch(WRITE, self._storage.append, campaign_id, bodies)

    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        """See `Storage`."""
        return self._watch(READ, self._storage.read, campaign_id, after, limit)

    def length(self, campaign_id: str) -> int:
        """See `Storage`."""
        return self._watch(READ, self._storage.length, campaign_id)

    def save_snapshot(self, campaign_id: str, snapshot: Snapshot) -> None:
        """See `Storage`."""
        self._watch(WRITE, self._storage.save_snapshot, campaign_id, snapshot)

    def load_snapshot(self, campaign_id: str) -> Snapshot | None:
        """See `Storage`."""
        return self._watch(READ, self._storage.load_snapshot, campaign_id)

    def check_writable(self) -> None:
        """See `Storage`."""
        self._watch(WRITE, self._storage.check_writable)

    def now(self) -> float:
        """See `Storage`."""
        return self._storage.now()

    def monotonic(self) -> float:
        """See `Storage`."""
        return self._storage.monotonic()

    def close(self) -> None:
        """See `Storage`."""
        self._storage.close()

    def _watch(
        self,
        access: str,
        method: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        outage, asked = self._outages[access], time.monotonic()
        try:
            result = method(*arguments, **named)
        except (NameTakenError, CopyError, MissingCampaignError):
            outage.worked(asked)  # it has looked
            raise
        except LockedError:  # of one campaign, while others go on
            outage.errors.inc()
            raise
        except StorageError as error:
            outage.failed(asked, error)
            raise
        if outage.began is not None:
            outage.worked(asked)
        return result


def _itself(storage: Storage) -> Storage:
    return storage
