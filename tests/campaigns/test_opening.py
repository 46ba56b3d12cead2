"""A long log is replayed by a process of its own; nothing but the pace depends on that."""

import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest
from benchmarks.long_log import HORIZON, STATES, events
from starlette.testclient import TestClient

from revar.campaigns import (
    Campaign,
    MemoryStorage,
    Storage,
    StorageError,
    log,
    open_storage,
    snapshots,
)
from revar.campaigns.folding import fold
from revar.campaigns.service import opening
from revar.campaigns.service.app import make_app
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.service.opening import Opener
from revar.campaigns.service.watching import WatchedStorage
from revar.campaigns.snapshots import _digest, read_snapshot
from revar.campaigns.state import CampaignState
from revar.campaigns.storage.interface import Snapshot, StoredEvent
from tests.campaigns.test_readers_agree import assert_agree

STEPS = 3_000  # some more events than a page has, twice as many


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/c.db"


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events this process has replayed, page by page; every log counts as long."""
    counts: list[int] = []

    def count(state: CampaignState, page: Sequence[StoredEvent]) -> None:
        if page:
            counts.append(len(page))
        fold(state, page)

    monkeypatch.setattr(opening, "LONG", 1_000)
    monkeypatch.setattr(log, "fold", count)
    return counts


def create(storage: Storage) -> Campaign:
    """A campaign with a long log, which nobody has replayed."""
    policy = {state: [0.5, 0.25, 0.25] for state in range(STATES)}
    campaign = Campaign.create(
        storage,
        "long",
        policy=policy,
        horizon=HORIZON,
        episodes=STEPS,
        strategy="on-policy",
        seed=1,
    )
    storage.append(campaign.id, list(events(STEPS)))
    return campaign


def test_the_service_replays_no_long_log_itself(address: str, folded: list[int]) -> None:
    with open_storage(address) as storage:
        create(storage)
        shown: list[tuple[int, int]] = []
        opener = Opener(WatchedStorage(storage, Metrics()), lambda: 0)
        campaign = opener.open("long", lambda *read: shown.append(read))
        length = storage.length(campaign.id)
        assert folded == []
        assert shown == [(log.PAGE, length)]
        kept = storage.load_snapshot(campaign.id)
        assert kept is not None
        assert kept.position == length
        # A few more events, and the snapshot serves all who come.
        campaign.start_episode("more")
        Opener(storage, lambda: 0).open("long", lambda *read: shown.append(read))
        assert (folded, len(shown)) == ([1], 1)
        kept = storage.load_snapshot(campaign.id)
        assert kept is not None
        storage.save_snapshot(campaign.id, Snapshot(kept.position, kept.body[:-1]))  # of no use
        plain = Campaign.open(storage, "long")
        assert sum(folded[1:]) == length + 1
        assert_agree([plain, campaign])


def test_who_has_read_a_long_log_leaves_a_snapshot_at_its_end(
    address: str, folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those on the way are few, so that the last of them may be of an early event."""
    monkeypatch.setattr(snapshots, "LEAST_EVENTS", 1_000)
    with open_storage(address) as storage:
        campaign = create(storage)
        first = Campaign.open(storage, "long")
        assert sum(folded) == storage.length(campaign.id)
        folded.clear()
        assert_agree([first, Campaign.open(storage, "long")])
        assert folded == []


def test_a_snapshot_that_is_whole_and_of_no_use_is_like_none(
    tmp_path: Path, folded: list[int]
) -> None:
    """Its checksum is right, but it is that of another campaign, or of no state at all."""
    with open_storage(f"sqlite:///{tmp_path}/c.db") as storage:
        campaign, length = create(storage), STEPS // HORIZON * (1 + 2 * HORIZON)
        other = Campaign.create(storage, "other", actions=2, horizon=1, episodes=1).snapshot()
        assert other is not None
        record = read_snapshot(other)
        assert record is not None
        broken = msgspec.structs.replace(record, leases=["of nobody"])
        for data in (msgspec.msgpack.encode(broken), msgspec.msgpack.encode({"state": 1})):
            body = _digest(length, data) + data
            storage.save_snapshot(campaign.id, Snapshot(length, body))
            found = Opener(storage, lambda: 0).open("long", lambda *_: None)
            assert folded == []
            assert found.status().steps == STEPS
            kept = storage.load_snapshot(campaign.id)
            assert kept is not None
            assert kept.body != body  # what the process made stands in its place


def test_a_status_over_http_comes_from_that_process(tmp_path: Path, folded: list[int]) -> None:
    storage = open_storage(f"sqlite:///{tmp_path}/c.db")
    create(storage)
    with TestClient(make_app(storage), base_url="http://127.0.0.1") as client:
        assert client.get("/api/campaigns/long").json()["steps"] == STEPS
    assert folded == []


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import os; os._exit(3)", "its process ended"),
        ("print('x' * 10**6, file=__import__('sys').stderr); 1 / 0", "ZeroDivisionError"),
        ("print('hello')", "its process ended"),
        ("import sys, pickle; pickle.dump('no such file', sys.stdout.buffer)", "no such file"),
    ],
    ids=["crashes", "says why", "says something else", "cannot"],
)
def test_without_that_process_the_service_replays_the_log(
    program: str,
    why: str,
    tmp_path: Path,
    folded: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(opening, "PROGRAM", program)
    with open_storage(f"sqlite:///{tmp_path}/c.db") as storage:
        create(storage)
        with caplog.at_level("WARNING", "revar.service"):
            campaign = Opener(storage, lambda: 0).open("long", lambda *_: None)
        assert campaign.status().steps == STEPS
        assert sum(folded) == storage.length(campaign.id)
    assert why in caplog.text
    assert len(caplog.text) < 2000


def test_that_process_imports_nothing_from_where_it_runs(
    tmp_path: Path, folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the service itself may have been started in such a way."""
    (tmp_path / "sqlite3.py").write_text("open('imported', 'w').close()")
    with open_storage(f"sqlite:///{tmp_path}/c.db") as storage:
        create(storage)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", ["", *sys.path])
        campaign = Opener(storage, lambda: 0).open("long", lambda *_: None)
        assert campaign.status().steps == STEPS
    assert folded == []
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("processes", [0, 1])
def test_a_storage_in_memory_and_many_openings_need_no_process(
    processes: int, tmp_path: Path, folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "PROCESSES", processes)
    address = f"sqlite:///{tmp_path}/c.db"
    with MemoryStorage() if processes else open_storage(address) as storage:
        create(storage)
        opened = Opener(storage, lambda: 0).open("long", lambda *_: None)
        assert opened.status().steps == STEPS
        assert sum(folded) == storage.length(opened.id)


def test_a_service_that_stops_ends_the_process(
    tmp_path: Path, folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "PROGRAM", "import time; time.sleep(60)")
    with open_storage(f"sqlite:///{tmp_path}/c.db") as storage:
        create(storage)
        opener = Opener(storage, lambda: 0)
        opened: Future[Campaign] = Future()

        def wait() -> None:
            try:
                opened.set_result(opener.open("long", lambda *_: None))
            except StorageError as error:
                opened.set_exception(error)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        while not opener._processes:
            time.sleep(0.01)
        (process,) = opener._processes
        opener.stop()
        with pytest.raises(StorageError, match="shutting down"):
            opened.result(20)
        assert process.poll() is not None
        assert folded == []


def test_a_plan_that_is_waited_for_is_found_in_the_log(
    tmp_path: Path, folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots know nothing of what it is made of: the service reads the log itself."""
    monkeypatch.setattr(opening, "LONG", 1)
    monkeypatch.setattr(log, "PLANNED_AT_ONCE", 0)
    with open_storage(f"sqlite:///{tmp_path}/c.db") as storage:
        policy = {"s": [0.5, 0.5]}
        campaign = Campaign.create(storage, "c", policy=policy, horizon=1, episodes=99, seed=1)
        campaign.plan_later = lambda _: Future()
        while campaign.read(lambda state, _: state.collection.put_off) is None:
            episode = campaign.start_episode()
            episode.act("s")
            episode.reward(1.0, None)
        folded.clear()
        opened = Opener(storage, lambda: 0).open("c", lambda *_: None)
        assert sum(folded) == storage.length(campaign.id)
        assert_agree([campaign, opened])
