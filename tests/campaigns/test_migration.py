"""Stores of older versions are brought up to date when they are opened, and lose nothing."""

import shutil
import sqlite3
from pathlib import Path

import msgspec
import numpy as np
import psycopg
import pytest

from revar.campaigns import Campaign, SQLiteStorage, StorageError, open_storage
from revar.campaigns.storage import postgres, sql, sqlite
from revar.campaigns.storage.interface import Snapshot

# Written by schema version 1; see its content in the tests below.
OLD = Path(__file__).parents[1] / "golden" / "campaign_store_1.db"
# With a snapshot of format 2, whose plan only the process had that wrote it.
OLD_SNAPSHOT = OLD.with_name("campaign_store_2.db")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    copy = tmp_path / "old.db"
    shutil.copy(OLD, copy)
    return copy


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


def test_the_old_file_is_old() -> None:
    assert version(OLD) == 1 < sql.VERSION


def test_an_old_file_is_read(old: Path) -> None:
    with open_storage(f"sqlite:///{old}") as storage:
        assert [entry.name for entry in storage.entries()] == ["old", "second"]
        status = Campaign.open(storage, "old").status()
        assert (status.budget, status.episodes, status.open, status.steps) == (5, 3, 1, 9)
        assert status.partial == 1
        assert status.estimate is not None
        # Certainty equivalence of nine steps: what was not tried takes what is typical.
        assert status.estimate.value == pytest.approx(5.452385, abs=1e-6)
        data = Campaign.open(storage, "old").dataset()
        assert data.labels == ("home", ("list", 2), '{"n":1.5,"page":"café"}')
        assert data.rewards.tolist() == [0.5, 1.0, 2.5, 2.0, 2.5, 3.0, 3.5, 4.0]
    assert version(old) == sql.VERSION


def test_an_old_file_goes_on(old: Path) -> None:
    storage = SQLiteStorage(old)
    campaign = Campaign.open(storage, "old")
    episode = campaign.episode("open-2")
    assert episode.act("home") == 0  # decided before the file was stored
    episode.reward(1.0, None)
    assert campaign.status().episodes == 4
    storage.save_snapshot(campaign.id, Snapshot(5, b"what version 1 had no place for"))
    assert storage.load_snapshot(campaign.id) is not None
    assert SQLiteStorage(old).find("second") is not None  # opened by two at once


def test_an_old_snapshot_is_ignored(tmp_path: Path) -> None:
    """The state is that of the log; the snapshot holds a plan that follows from no log."""
    copy = tmp_path / "old.db"
    shutil.copy(OLD_SNAPSHOT, copy)
    with SQLiteStorage(copy) as storage:
        entry = storage.entries()[0]
        saved = storage.load_snapshot(entry.id)
        assert saved is not None
        assert msgspec.msgpack.decode(saved.body)["format"] == 2
        campaign = Campaign.open(storage, "due")
        assert campaign.read(lambda state, _: state.position) == saved.position == 44
        assert campaign.estimate().value == pytest.approx(6.0869, abs=1e-4)
        plan = campaign.read(lambda state, _: state.collection.plan_in_force)
        assert plan is not None
        expected = np.array(
            [[0.644943086913893, 0.35505691308610704], [0.34857070982513805, 0.651429290174862]]
        )
        assert plan.plan.scores[0] == pytest.approx(expected)


def test_a_newer_file_is_refused(old: Path) -> None:
    SQLiteStorage(old).close()
    connection = sqlite3.connect(old)
    connection.execute(f"PRAGMA user_version = {sql.VERSION + 1}")
    connection.close()
    with pytest.raises(StorageError, match="written by a newer revar"):
        SQLiteStorage(old)


def test_the_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    with pytest.raises(StorageError, match="the database of another program"):
        SQLiteStorage(other)
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to be read as one" * 100)
    with pytest.raises(StorageError, match="cannot be used as a storage"):
        SQLiteStorage(text)
    with pytest.raises(StorageError, match="cannot be used as a storage"):
        SQLiteStorage(tmp_path / "no folder" / "campaigns.db")


def test_an_old_database_of_postgres(postgres_url: str, old: Path) -> None:
    """The same content as the old file, in tables of version 1."""
    source = sqlite3.connect(old)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE revar_schema (version BIGINT NOT NULL)")
        connection.execute("INSERT INTO revar_schema VALUES (1)")
        for statement in sql.STEPS[0]:
            connection.execute(statement.format(**postgres.DIALECT))
        for table in ("revar_campaigns", "revar_events"):
            for row in source.execute(f"SELECT * FROM {table}"):
                places = ", ".join(["%s"] * len(row))
                connection.execute(f"INSERT INTO {table} VALUES ({places})", row)
    source.close()
    with open_storage(postgres_url) as storage:
        assert Campaign.open(storage, "old").status().steps == 9
        storage.save_snapshot(storage.entries()[0].id, Snapshot(1, b"x"))
    with open_storage(postgres_url) as storage:
        assert len(storage.entries()) == 2


def test_a_newer_database_of_postgres_is_refused(postgres_url: str) -> None:
    open_storage(postgres_url).close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO revar_schema VALUES (%s)", (sql.VERSION + 1,))
    with pytest.raises(StorageError, match="written by a newer revar"):
        open_storage(postgres_url)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(StorageError, match="PostgreSQL: "):
        open_storage("postgresql://revar@127.0.0.1:1/none")


def test_a_lost_connection_is_made_again(postgres_url: str) -> None:
    storage = open_storage(postgres_url)
    campaign = Campaign.create(storage, "c", policy={"s": [1.0]}, horizon=1, episodes=9)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'revar'"
        )
    episode = campaign.start_episode()
    episode.act("s")
    episode.reward(1.0, None)
    assert campaign.status().episodes == 1
    storage.close()


def test_durable_settings(tmp_path: Path) -> None:
    storage = SQLiteStorage(tmp_path / "campaigns.db")
    assert storage._writer is not None
    ask = storage._writer.execute
    assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ask("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert ask("PRAGMA application_id").fetchone()[0] == sqlite.APPLICATION
