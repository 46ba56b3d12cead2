"""Storages in trouble: locked, stopped, full, read-only, deleted; and shared after a fork."""

import os
import pickle
import resource
import runpy
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from revar.campaigns import (
    Campaign,
    CampaignError,
    MemoryStorage,
    SQLiteStorage,
    StorageError,
    log,
    open_storage,
    snapshots,
)
from revar.campaigns.export import export_text
from revar.campaigns.service.app import make_app
from revar.campaigns.storage import connections, forking, postgres, sqlite
from revar.campaigns.storage.interface import LockedError
from revar.campaigns.storage.sqlite_connections import Reader
from revar.cli.main import revar
from revar.errors import InputError
from tests.campaigns.processes import forked

SOON = 5.0  # seconds: far below every patience, far above what a call takes


def create(storage: object, name: str = "c", episodes: int = 50) -> Campaign:
    return Campaign.create(
        storage,  # type: ignore[arg-type]
        name,
        policy={"s": [0.5, 0.5]},
        horizon=1,
        episodes=episodes,
        strategy="on-policy",
        seed=1,
    )


def play(campaign: Campaign) -> None:
    episode = campaign.start_episode()
    episode.act("s")
    episode.reward(1.0, None)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        with pytest.raises(StorageError):
            work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


# -- locks ---------------------------------------------------------------------------------


def test_a_held_write_lock_does_not_stall_readers(tmp_path: Path) -> None:
    storage = SQLiteStorage(tmp_path / "c.db")
    campaign = create(storage)
    play(campaign)
    other = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = in_thread(lambda: play(Campaign.open(storage, "c")))
    time.sleep(0.1)
    began = time.monotonic()
    assert campaign.status().episodes == 1
    assert Campaign.open(str(tmp_path / "c.db"), "c").status().episodes == 1
    storage.close()  # and who waits is told
    waiting.join(SOON)
    assert not waiting.is_alive()
    assert time.monotonic() - began < SOON
    other.close()


def test_a_locked_row_stalls_its_own_campaign_alone(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_storage(postgres_url) as storage, psycopg.connect(postgres_url) as other:
        locked, free = create(storage, "locked"), create(storage, "free")
        other.execute("SELECT 1 FROM revar_campaigns WHERE name = 'locked' FOR UPDATE")
        waiting = threading.Thread(target=play, args=(locked,), daemon=True)
        waiting.start()
        for _ in range(3):
            play(free)
        assert Campaign.open(storage, "locked").status().episodes == 0
        assert waiting.is_alive()
        monkeypatch.setattr(postgres, "LOCK_PATIENCE", 0.1)
        with open_storage(postgres_url) as impatient:
            campaign = Campaign.open(impatient, "locked")
            with pytest.raises(LockedError, match="lock timeout"):
                campaign.start_episode()
        other.rollback()
        waiting.join(SOON)
        assert locked.status().episodes == 1


def test_a_stopped_backend_does_not_keep_a_storage_open(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CLOSING", 0.2)
    storage = open_storage(postgres_url)
    campaign = create(storage)
    play(campaign)
    with stopped_backends(postgres_url):
        waiting = in_thread(campaign.start_episode)
        time.sleep(0.2)
        began = time.monotonic()
        storage.close()
        waiting.join(SOON)
        assert not waiting.is_alive()
        assert time.monotonic() - began < SOON


def test_a_stopped_backend_is_given_up(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    monkeypatch.setattr(connections, "GRACE", 0.0)
    monkeypatch.setattr(connections, "LOOKS", 0.05)
    with open_storage(postgres_url) as storage:
        campaign = create(storage)
        with stopped_backends(postgres_url):
            began = time.monotonic()
            play(campaign)  # over connections that are made anew
            assert 0.2 < time.monotonic() - began < SOON
        assert campaign.status().episodes == 1


class stopped_backends:  # noqa: N801 - used like a function
    """The server's processes that serve revar stand still meanwhile."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'revar'"
                " AND datname = current_database()"
            ).fetchall()
        self.processes = [row[0] for row in rows]

    def __enter__(self) -> None:
        assert self.processes
        self._send(signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        self._send(signal.SIGCONT)

    def _send(self, sent: signal.Signals) -> None:
        for process in self.processes:
            os.kill(process, sent)


# -- forks and pickles ---------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/c.db"


def test_forked_workers_have_connections_of_their_own(address: str) -> None:
    storage = open_storage(address)
    campaign = create(storage, episodes=40)
    play(campaign)

    def work() -> None:
        for _ in range(9):
            play(campaign)

    children = [forked(work) for _ in range(4)]
    for _ in range(3):
        play(campaign)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert campaign.status().episodes == 40
    storage.close()


def test_a_fork_in_the_middle_of_a_change(tmp_path: Path) -> None:
    """A lock that another thread holds at the fork is nobody's in the child."""
    campaign = create(SQLiteStorage(tmp_path / "c.db"))
    play(campaign)
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        def reader(*_: object) -> None:
            inside.set()
            done.wait(SOON)

        campaign.read(reader)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(SOON)
    child = forked(lambda: play(campaign))
    done.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0
    assert campaign.status().episodes == 2


def test_a_system_without_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    assert "ForkAware" in runpy.run_path(str(forking.__file__))


def test_a_campaign_that_another_process_deleted(address: str) -> None:
    """Whoever has it open is told, also where another has its name, or even its id."""
    with open_storage(address) as storage, open_storage(address) as elsewhere:
        campaign = create(storage)
        play(campaign)
        create(elsewhere, "other")
        elsewhere.delete("c")
        calls = (campaign.status, campaign.estimate, campaign.dataset, campaign.start_episode)
        for again in (None, "f" * 32, campaign.id):
            if again is not None:
                entry = elsewhere.create(again, "c", b"{}")
                assert entry.id == again
            for call in calls:
                with pytest.raises(StorageError, match="there is no campaign"):
                    call()
            if again is not None:
                elsewhere.delete("c")
        assert Campaign.open(storage, "other").status().episodes == 0


def test_a_log_that_is_removed_while_it_is_read_does_not_seem_complete(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("revar.campaigns.log.PAGE", 3)
    with open_storage(address) as storage:
        campaign = create(storage)
        for _ in range(4):
            play(campaign)
        lines = export_text(campaign.definition, campaign.events(), "jsonl")
        next(lines)
        storage.delete("c")
        with pytest.raises(StorageError, match="there is no campaign 'c'"):
            list(lines)


def test_campaigns_and_episodes_can_be_pickled(address: str) -> None:
    with open_storage(address) as storage:
        campaign = create(storage)
        episode = campaign.start_episode()
        action = episode.act("s")
        sent = pickle.loads(pickle.dumps(campaign))
        assert sent.status().open == 1
        again = pickle.loads(pickle.dumps(episode))
        assert again.act("s") == action
        again.reward(2.0, None)
        assert campaign.status().episodes == 1
        for each in (sent, again._campaign):
            each.storage.close()
    with pytest.raises(TypeError, match="in memory cannot be sent"):
        pickle.dumps(create(MemoryStorage()))


# -- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "replace(body, '\"probabilities\":[0.5', '\"probabilities\":[0.7')",
        "CAST(body AS TEXT)",
        "replace(body, '\"reward\":1.0', '\"reward\":1e300')",
    ],
)
def test_a_damaged_log_leaves_other_campaigns_in_peace(tmp_path: Path, body: str) -> None:
    path = tmp_path / "c.db"
    with SQLiteStorage(path) as storage:
        for name in ("damaged", "sound"):
            campaign = Campaign.create(storage, name, actions=2, horizon=1, episodes=5, seed=1)
            episode = campaign.start_episode()
            episode.act("s", [0.5, 0.5])
            episode.reward(1.0, None)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE revar_events SET body = {body} WHERE campaign = 1")
    connection.close()
    with SQLiteStorage(path) as storage:
        with suppress(CampaignError):  # one sentence, or the event has no effect
            Campaign.open(storage, "damaged").status()
        assert Campaign.open(storage, "sound").status().steps == 1
        with TestClient(make_app(storage), base_url="http://127.0.0.1") as client:
            assert client.get("/").status_code == 200
            assert client.get("/api/campaigns/sound").status_code == 200
    listed = CliRunner().invoke(revar, ["campaign", "list", "--storage", f"sqlite:///{path}"])
    assert listed.exit_code == 0 and "sound" in listed.output


def read_elsewhere(path: Path, before: Callable[[], object]) -> int:
    """Status and export in a process that cannot write; its exit code."""

    def read() -> None:
        before()
        campaign = Campaign.open(str(path), "c")
        lines = list(export_text(campaign.definition, campaign.events(), "jsonl"))
        assert (campaign.status().episodes, len(lines)) == (1, 1)
        with pytest.raises(StorageError):
            campaign.start_episode()
        assert campaign.status().open == 0

    return os.waitstatus_to_exitcode(os.waitpid(forked(read), 0)[1])


def want_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every reader try to write one."""
    monkeypatch.setattr(snapshots, "LEAST_EVENTS", 1)
    monkeypatch.setattr(log, "PAGE", 1)


@pytest.mark.parametrize("left", ["closed", "in use", "crashed"])
def test_reading_needs_no_room_on_the_disk(
    tmp_path: Path, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.db"
    storage = SQLiteStorage(path)
    play(create(storage))
    want_snapshots(monkeypatch)
    if left == "closed":
        storage.close()
        assert not (tmp_path / "c.db-wal").exists()
    elif left == "crashed":  # its log was never taken into the file, and nobody has it open
        (tmp_path / "copy").mkdir()
        for name in ("c.db", "c.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / "copy" / name)
        path = tmp_path / "copy" / "c.db"

    def full() -> None:  # no file may grow
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    assert read_elsewhere(path, full) == 0
    storage.close()


def test_reading_needs_no_permission_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    path = folder / "c.db"
    with SQLiteStorage(path) as storage:
        play(create(storage))
    want_snapshots(monkeypatch)
    path.chmod(0o444)
    with read_only(folder):
        assert read_elsewhere(path, become_nobody) == 0


def test_a_log_beside_the_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A copy of files in use, where nothing may be written."""
    folder = tmp_path / "copy"
    folder.mkdir()
    with SQLiteStorage(tmp_path / "c.db") as storage:
        play(create(storage))
        for name in ("c.db", "c.db-wal"):
            shutil.copy(tmp_path / name, folder / name)

    def read() -> None:
        become_nobody()
        with pytest.raises(StorageError, match=r"written last is in c\.db-wal, .* copy both files"):
            Campaign.open(str(folder / "c.db"), "c")

    with read_only(folder):
        assert os.waitpid(forked(read), 0)[1] == 0
    assert Campaign.open(str(folder / "c.db"), "c").status().episodes == 1


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody may write into the folder; everybody may read in it."""
    folder.chmod(0o555)
    for above in folder.parents:
        if above.parent.is_relative_to(tempfile.gettempdir()):  # made by pytest, for its user alone
            above.chmod(0o755)
    try:
        yield
    finally:
        folder.chmod(0o755)


def become_nobody() -> None:
    """Root may write everywhere."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


def test_a_file_that_was_deleted_takes_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    storage = SQLiteStorage(path)
    campaign = create(storage)
    play(campaign)
    kept = path.rename(tmp_path / "elsewhere.db")
    for ask in (campaign.start_episode, campaign.status, storage.check_writable):
        with pytest.raises(StorageError, match="deleted or replaced"):
            ask()
    kept.rename(path)
    assert campaign.status().open == 0
    play(campaign)
    assert campaign.status().episodes == 2


def test_names_of_files_may_hold_any_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_storage("sqlite:///we#ird?x.db") as storage:
        create(storage)
        assert storage.entries()[0].name == "c"
    assert [path.name for path in tmp_path.glob("*.db")] == ["we#ird?x.db"]
    assert not (tmp_path / "we").exists()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://revar:se/cr@et@127.0.0.1:1/none",
        "postgresql://revar@127.0.0.1:1/none?password=se/cr@et",
        "postgresql+driver://revar:se/cr@et@host/database",
        "mysql://revar:se/cr@et@host/database",
        "postgres//revar:se/cr@et@host/database",
    ],
)
def test_passwords_are_not_shown(address: str) -> None:
    with pytest.raises((StorageError, InputError)) as caught:
        open_storage(address, create=False)
    assert "cr@et" not in str(caught.value)
    assert "se/" not in str(caught.value)


@pytest.mark.parametrize(
    "password", ["SECRET%zz1", "SEC RET", "SECRET%", "SEC@RET", "SEC?RET", "SEC/RET", "S@EC:RET"]
)
def test_passwords_that_cannot_be_read_are_not_shown_either(password: str) -> None:
    with pytest.raises((StorageError, InputError)) as caught:
        open_storage(f"postgresql://u:{password}@127.0.0.1:1/db", create=False)
    assert "SEC" not in str(caught.value) and "RET" not in str(caught.value)


def test_a_reader_that_takes_the_file_for_unchangeable_reads_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.db"
    with SQLiteStorage(path) as storage:
        create(storage, "first")

    def unchangeable(path: Path) -> Reader:
        address = f"{path.as_uri()}?immutable=1"
        reader = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, factory=Reader
        )
        reader.lasts = False
        return reader

    monkeypatch.setattr(sqlite, "connect_to_read", unchangeable)
    with SQLiteStorage(path, create=False) as reading:
        assert len(reading.entries()) == 1
        with SQLiteStorage(path) as storage:
            create(storage, "second")
        assert len(reading.entries()) == 2
