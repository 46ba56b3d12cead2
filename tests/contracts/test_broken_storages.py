"""Each contract of storages catches what breaks it."""

import time
from collections.abc import Sequence

import pytest

from revar.campaigns import MemoryStorage, Storage
from revar.campaigns.storage.interface import AppendResult, Entry, Snapshot, StoredEvent
from revar.testing import STORAGE_CHECKS, check_storage
from revar.testing import storages as checks


class Unsorted(MemoryStorage):
    def entries(self) -> list[Entry]:
        return sorted(super().entries(), key=lambda entry: entry.name)


class SharesNames(MemoryStorage):
    def create(self, campaign_id: str, name: str, definition: bytes) -> Entry:
        entry = Entry(campaign_id, name, definition, self.now())
        self._entries[campaign_id] = entry
        self._logs[campaign_id] = []
        return entry


class SharesIds(MemoryStorage):
    def create(self, campaign_id: str, name: str, definition: bytes) -> Entry:
        self._entries.pop(campaign_id, None)
        return super().create(campaign_id, name, definition)


class StripsBytes(MemoryStorage):
    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        return super().append(campaign_id, [body.rstrip(b"\x00\xff") for body in bodies])


class CountsFromZero(MemoryStorage):
    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        found = super().read(campaign_id, after, limit)
        return [StoredEvent(event.position - 1, event.time, event.body) for event in found]


class IgnoresThePosition(MemoryStorage):
    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        return super().read(campaign_id, 0, limit)


class TakesEverything(MemoryStorage):
    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        self._logs.setdefault(campaign_id, [])
        return super().append(campaign_id, bodies)


class WrongClock(MemoryStorage):
    def now(self) -> float:
        return super().now() - 3600.0


class KeepsTheLastSnapshot(MemoryStorage):
    def save_snapshot(self, campaign_id: str, snapshot: Snapshot) -> None:
        self._snapshots[campaign_id] = snapshot


class WithoutLock(MemoryStorage):
    """Positions are counted before the events are there: two writers may count the same."""

    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        log = self._logs.get(campaign_id)
        if log is None:
            return super().append(campaign_id, bodies)
        length = len(log)
        time.sleep(0.005)
        now = self.now()
        log.extend(StoredEvent(length + i + 1, now, body) for i, body in enumerate(bodies))
        return AppendResult(length + len(bodies), now)


class Forgets(MemoryStorage):
    """Loses every event after the tenth when a campaign is opened again."""

    def load_snapshot(self, campaign_id: str) -> Snapshot | None:
        del self._logs.get(campaign_id, [])[10:]
        return None


class EmptyWhenGone(MemoryStorage):
    """Says of a campaign that is gone that its log is empty."""

    def length(self, campaign_id: str) -> int:
        return len(self._logs.get(campaign_id, ()))


BROKEN: list[tuple[type[Storage], str]] = [
    (Unsorted, "check_entries"),
    (SharesNames, "check_names_are_unique"),
    (SharesIds, "check_names_are_unique"),
    (EmptyWhenGone, "check_delete"),
    (StripsBytes, "check_log"),
    (CountsFromZero, "check_log"),
    (IgnoresThePosition, "check_log"),
    (TakesEverything, "check_unknown_campaign"),
    (WrongClock, "check_time"),
    (KeepsTheLastSnapshot, "check_snapshots"),
    (WithoutLock, "check_concurrent_appends"),
    (Forgets, "check_campaign"),
]


@pytest.mark.parametrize(
    ("storage", "check"), BROKEN, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_broken_storage_is_caught(storage: type[Storage], check: str) -> None:
    with pytest.raises(AssertionError):
        getattr(checks, check)(storage)
    with pytest.raises(AssertionError):
        check_storage(storage)


def test_every_check_catches_something() -> None:
    assert {check.__name__ for check in STORAGE_CHECKS} == {name for _, name in BROKEN}
