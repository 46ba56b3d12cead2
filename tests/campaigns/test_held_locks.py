"""A lock that somebody holds in the storage keeps those waiting who write, and nobody else."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from revar.campaigns import Campaign, StorageError, open_storage, snapshots
from revar.campaigns.storage import postgres
from revar.campaigns.storage.sql import SQLStorage
from tests.campaigns.serving import call
from tests.campaigns.test_storage_faults import create, play
from tests.client.services import running

SOON = 3.0  # seconds: far below what writers wait for, far above what a read takes
CALLERS = 12  # more than there are threads that read


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/c.db"


@contextmanager
def held(address: str) -> Iterator[None]:
    """Another session holds the row of the campaign `locked`, or the only lock that there is."""
    if address.startswith("sqlite"):
        other = sqlite3.connect(address.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.close()
    else:
        with psycopg.connect(address) as connection:
            connection.execute("SELECT 1 FROM revar_campaigns WHERE name = 'locked' FOR UPDATE")
            yield
            connection.rollback()


def within(seconds: float, work: Callable[..., object], *arguments: object) -> None:
    began = time.monotonic()
    work(*arguments)
    assert time.monotonic() - began < seconds


def test_a_campaign_is_read_while_its_writer_waits(address: str) -> None:
    with open_storage(address) as storage:
        campaign = create(storage, "locked")
        play(campaign)
        with held(address):
            waiting = threading.Thread(target=play, args=(campaign,), daemon=True)
            waiting.start()
            time.sleep(0.2)
            for ask in (campaign.status, campaign.estimate, campaign.dataset):
                within(SOON, ask)
            assert campaign.status().episodes == 1
            assert waiting.is_alive()
        waiting.join(SOON)
        assert campaign.status().episodes == 2


def test_what_others_add_is_read_while_a_writer_waits(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that were appended and not judged yet are left to who appended them."""
    with open_storage(address) as storage, open_storage(address) as elsewhere:
        campaign, other = create(storage, "locked"), Campaign.open(elsewhere, "locked")
        append, appended, may_go_on = storage.append, threading.Event(), threading.Event()

        def slow(campaign_id: str, bodies: list[bytes]) -> object:
            play(other)
            result = append(campaign_id, bodies)
            play(other)
            appended.set()
            assert may_go_on.wait(20)
            return result

        monkeypatch.setattr(storage, "append", slow)
        with ThreadPoolExecutor() as pool:
            starting = pool.submit(campaign.start_episode, "mine")
            assert appended.wait(20)
            assert (campaign.status().episodes, campaign.status().open) == (1, 0)
            may_go_on.set()
            assert (starting.result().number, starting.result().steps) == (1, 0)
        assert (campaign.status().episodes, campaign.status().open) == (2, 1)


def test_snapshots_do_not_wait(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are due while a campaign is opened and read, and can be left for later."""
    with open_storage(address) as storage:
        campaign = create(storage, "locked")
        play(campaign)
        monkeypatch.setattr(snapshots, "LEAST_EVENTS", 1)
        monkeypatch.setattr("revar.campaigns.log.PAGE", 1)
        with held(address), open_storage(address) as elsewhere:
            within(2 * SOON, lambda: Campaign.open(elsewhere, "locked").status())
        assert storage.load_snapshot(campaign.id) is None
        Campaign.open(storage, "locked")
        assert storage.load_snapshot(campaign.id) is not None


def test_a_statement_has_a_time_limit(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "PATIENCE", 0.2)
    with open_storage(postgres_url) as storage:
        assert isinstance(storage, postgres.PostgresStorage)
        for carry_out in (storage._ask, storage._execute):
            with pytest.raises(StorageError, match="statement timeout"):
                within(SOON, carry_out, "SELECT pg_sleep(10)", ())


def test_reads_go_over_connections_that_only_read(address: str) -> None:
    with open_storage(address) as storage:
        assert isinstance(storage, SQLStorage)
        create(storage)
        with pytest.raises(StorageError, match=r"read-?only"):
            storage._ask("DELETE FROM revar_campaigns", ())
        assert len(storage.entries()) == 1


def test_callers_of_one_campaign_leave_threads_to_others(address: str) -> None:
    storage = open_storage(address)
    for name in ("locked", "free"):
        play(create(storage, name))
    with running(storage) as service, ThreadPoolExecutor(4 * CALLERS) as pool:
        for name in ("locked", "free"):
            call(service, f"/api/campaigns/{name}")
        with held(address):
            starts = [
                pool.submit(call, service, "/api/campaigns/locked/episodes", {"episode": "mine"})
                for _ in range(2)
            ]
            more = [
                pool.submit(call, service, "/api/campaigns/locked/extend", {"episodes": 5})
                for _ in range(CALLERS)
            ]
            added = {"events": [{"type": "renewed", "episode": "mine"}]}
            more += [
                pool.submit(call, service, "/api/campaigns/locked/events", added)
                for _ in range(CALLERS)
            ]
            time.sleep(0.3)
            reads = [pool.submit(call, service, "/api/campaigns/locked") for _ in range(CALLERS)]
            for path in ("", "/estimate", "/history"):
                within(SOON, call, service, f"/api/campaigns/free{path}")
            assert [read.result(SOON)[1]["episodes"] for read in reads] == [1] * CALLERS
            expected = 503 if address.startswith("sqlite") else 200
            if expected == 200:  # a lock of one campaign alone
                question = {"name": "new", "actions": 2, "horizon": 1, "episodes": 5}
                for path, body in (("/free/episodes", {}), ("/free/events", added), ("", question)):
                    within(SOON, call, service, f"/api/campaigns{path}", body)
            within(SOON, call, service, "/ready")
            assert call(service, "/ready")[0] == expected
            assert not any(write.done() for write in (*starts, *more))
        assert sorted(start.result(20)[0] for start in starts) == [200, 201]
        assert {each.result(20)[0] for each in more} == {200}
        _, status = call(service, "/api/campaigns/locked")
        assert (status["open"], status["budget"]) == (1, 50 + 5 * CALLERS)
