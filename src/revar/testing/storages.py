"""Contracts of storages: what campaigns rely on, for storages of third parties too.

A factory is called without arguments and gives an open, empty storage each time.
"""

import threading
from collections.abc import Callable

from revar.campaigns.campaign import Campaign
from revar.campaigns.storage.interface import (
    CopyError,
    NameTakenError,
    Snapshot,
    Storage,
    StorageError,
)
from revar.testing.contracts import contract, expect

Factory = Callable[[], Storage]

WRITERS, APPENDS = 4, 25


def check_storage(factory: Factory) -> None:
    """Every contract of storages."""
    for check in STORAGE_CHECKS:
        check(factory)


@contract
def check_entries(factory: Factory) -> None:
    """Campaigns are found by name, in the order of creation, as they were given."""
    with factory() as storage:
        expect(storage.entries() == [], "a new storage has campaigns")
        expect(storage.find("none") is None, "a campaign was found that was never created")
        made = [storage.create(f"id-{name}", name, name.encode()) for name in ("b", "a", "c")]
        expect(storage.entries() == made, "entries are not those created, in order")
        expect(storage.find("a") == made[1], "a campaign is not found by its name")
        expect(made[1].definition == b"a" and made[1].id == "id-a", "an entry was changed")


@contract
def check_names_are_unique(factory: Factory) -> None:
    """A name or an id that is taken is refused, and its campaign stays as it was."""
    with factory() as storage:
        first = storage.create("1", "name", b"first")
        try:
            storage.create("2", "name", b"second")
        except NameTakenError:
            pass
        else:
            raise AssertionError("a name was given to two campaigns")
        storage.append("1", [b"event"])
        try:
            storage.create("1", "another name", b"first")
        except CopyError:
            pass
        else:
            raise AssertionError("an id was given to two campaigns")
        expect(storage.entries() == [first], "a refused campaign left something behind")
        expect(len(storage.read("1", 0, 9)) == 1, "a refused campaign has emptied the log")


@contract
def check_delete(factory: Factory) -> None:
    """A campaign that is deleted is gone with its log; its name is free, the others stay."""
    with factory() as storage:
        for name in ("one", "two"):
            storage.create(f"id-{name}", name, b"")
            storage.append(f"id-{name}", [name.encode()])
            storage.save_snapshot(f"id-{name}", Snapshot(1, name.encode()))
        storage.delete("one")
        expect(storage.find("one") is None, "a deleted campaign is still found")
        expect(storage.load_snapshot("id-one") is None, "its snapshot is still there")
        expect(
            [e.body for e in storage.read("id-two", 0, 9)] == [b"two"], "another log was touched"
        )
        expect(storage.load_snapshot("id-two") == Snapshot(1, b"two"), "so was its snapshot")
        for refused in (
            lambda: storage.append("id-one", [b"late"]),
            lambda: storage.length("id-one"),
            lambda: storage.delete("one"),
        ):
            try:
                refused()
            except StorageError:
                continue
            raise AssertionError("a campaign that was deleted is still there")
        storage.create("id-new", "one", b"")
        expect(storage.read("id-new", 0, 9) == [], "a new campaign has the events of an old one")


@contract
def check_log(factory: Factory) -> None:
    """Events come back unchanged, in order, from any position, page by page."""
    bodies = [bytes([i, 0, 255]) * (1 + i) for i in range(20)]
    with factory() as storage:
        storage.create("one", "one", b"")
        storage.create("two", "two", b"")
        expect(storage.append("one", bodies[:1]).position == 1, "the first event is not number 1")
        expect(storage.append("two", [b"other"]).position == 1, "campaigns share their positions")
        expect(storage.append("one", bodies[1:]).position == 20, "append does not give the last")
        read = storage.read("one", 0, 100)
        expect([event.position for event in read] == list(range(1, 21)), "positions have gaps")
        expect([event.body for event in read] == bodies, "events were changed")
        expect(storage.read("one", 5, 3) == read[5:8], "reading from a position gives others")
        expect(storage.read("one", 20, 3) == [], "there are events after the last one")
        expect([event.body for event in storage.read("two", 0, 9)] == [b"other"], "logs are mixed")


@contract
def check_unknown_campaign(factory: Factory) -> None:
    """Events for a campaign that does not exist are refused."""
    with factory() as storage:
        try:
            storage.append("nothing", [b"event"])
        except StorageError:
            return
        raise AssertionError("events were taken for a campaign that does not exist")


@contract
def check_time(factory: Factory) -> None:
    """Events carry the time of the storage's clock at which they were taken."""
    with factory() as storage:
        storage.create("one", "one", b"")
        before = storage.now()
        added = storage.append("one", [b"a", b"b"])
        after = storage.now()
        expect(before <= added.time <= after, "append tells another time than the clock")
        times = [event.time for event in storage.read("one", 0, 9)]
        expect(times == [added.time] * 2, "events carry another time than append told")


@contract
def check_snapshots(factory: Factory) -> None:
    """The latest snapshot is kept, whatever the order in which they come."""
    with factory() as storage:
        storage.create("one", "one", b"")
        expect(storage.load_snapshot("one") is None, "there is a snapshot of nothing")
        late, early = Snapshot(7, b"\x00late"), Snapshot(3, b"early")
        for snapshot in (early, late, early):
            storage.save_snapshot("one", snapshot)
        expect(storage.load_snapshot("one") == late, "the latest snapshot is not the one kept")


@contract
def check_concurrent_appends(factory: Factory) -> None:
    """Threads that append at once lose nothing, and each append stays in one piece."""
    with factory() as storage:
        storage.create("one", "one", b"")
        told: dict[int, list[int]] = {}
        together = threading.Barrier(WRITERS)

        def write(writer: int) -> None:
            together.wait()
            told[writer] = [
                storage.append(
                    "one", [f"{writer}:{i}:{part}".encode() for part in range(3)]
                ).position
                for i in range(APPENDS)
            ]

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log = storage.read("one", 0, 10 * WRITERS * APPENDS)
        positions = [event.position for event in log]
        expect(positions == list(range(1, 3 * WRITERS * APPENDS + 1)), "events are missing")
        for writer, ends in told.items():
            for i, end in enumerate(ends):
                bodies = [event.body.decode() for event in log[end - 3 : end]]
                expect(
                    bodies == [f"{writer}:{i}:{part}" for part in range(3)],
                    "the events of one append do not stand where it was told",
                )


@contract
def check_campaign(factory: Factory) -> None:
    """A campaign runs on it, and another process finds the same state."""
    with factory() as storage:
        campaign = Campaign.create(
            storage, "campaign", policy={"s": [0.5, 0.5]}, horizon=2, episodes=3, seed=1
        )
        for episode in campaign.episodes():
            while not episode.over:
                episode.reward(float(episode.act("s")), "s")
        found = Campaign.open(storage, "campaign")
        expect(found.status().episodes == 3, "episodes are not found again")
        expect(found.estimate() == campaign.estimate(), "the estimate is another one")


STORAGE_CHECKS: tuple[Callable[[Factory], None], ...] = (
    check_entries,
    check_names_are_unique,
    check_delete,
    check_log,
    check_unknown_campaign,
    check_time,
    check_snapshots,
    check_concurrent_appends,
    check_campaign,
)
