"""Campaigns in one SQLite file: the default, for one machine and any number of processes."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from revar.campaigns.storage.interface import (
    AppendResult,
    CopyError,
    Entry,
    NameTakenError,
    StorageError,
)
from revar.campaigns.storage.sql import VERSION, Execute, Result, SQLStorage, missing_steps

# Marks the file as ours ("revr"), so that another program's database is not migrated by mistake.
APPLICATION = 0x72657672
DIALECT = {
    "bytes": "BLOB",
    "real": "REAL",
    "whole": "INTEGER",
    "serial": "INTEGER",
    "clustered": "WITHOUT ROWID",
}
PATIENCE = 60.0  # seconds to wait while another process writes


class SQLiteStorage(SQLStorage):
    """One connection, shared by the threads of the process one at a time.

    Write-ahead log with `synchronous=FULL`: a commit is on the disk before `append` returns. With
    `create=False` a file that is missing is refused, not made.
    """

    probe = f"PRAGMA user_version = {VERSION}"

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        if not create and not self.path.exists():
            raise StorageError(f"there is no file {self.path}")
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise StorageError(f"{self.path} cannot be used as a storage: {error}") from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self.close()
            raise StorageError(f"{self.path} cannot be used as a storage: {error}") from error
        except BaseException:
            self.close()
            raise

    def create(self, campaign_id: str, name: str, definition: bytes) -> Entry:
        """See `Storage`."""
        with self._transaction() as cursor:
            for column, value, taken in (
                ("name", name, NameTakenError),
                ("id", campaign_id, CopyError),
            ):
                query = f"SELECT 1 FROM revar_campaigns WHERE {column} = ?"
                if cursor.execute(query, (value,)).fetchone() is not None:
                    raise taken(name)
            entry = Entry(campaign_id, name, definition, time.time())
            cursor.execute(
                "INSERT INTO revar_campaigns (id, name, definition, created, length)"
                " VALUES (?, ?, ?, ?, 0)",
                (entry.id, entry.name, entry.definition, entry.created),
            )
            return entry

    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        """See `Storage`."""
        with self._transaction() as cursor:
            cursor.execute(
                "UPDATE revar_campaigns SET length = length + ? WHERE id = ? RETURNING key, length",
                (len(bodies), campaign_id),
            )
            row = cursor.fetchone()
            if row is None:
                raise StorageError(f"there is no campaign with the id {campaign_id!r}")
            key, last = row
            taken = time.time()
            first = last - len(bodies) + 1
            cursor.executemany(
                "INSERT INTO revar_events (campaign, position, taken, body) VALUES (?, ?, ?, ?)",
                [(key, first + i, taken, body) for i, body in enumerate(bodies)],
            )
        return AppendResult(last, taken)

    def now(self) -> float:
        """See `Storage`."""
        return time.time()

    def close(self) -> None:
        """See `Storage`."""
        with self._lock:
            self._connection.close()

    def _execute(self, query: str, values: Any) -> list[tuple[Any, ...]]:
        """See `SQLStorage`."""
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise StorageError(f"{self.path}: {error}") from error

    def _atomically(self, work: Callable[[Execute], Result]) -> Result:
        """See `SQLStorage`."""
        with self._transaction() as cursor:
            return work(lambda query, values: cursor.execute(query, values).fetchall())

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        """Take the write lock first: two processes that had read would wait for each other."""
        with self._lock:
            try:
                cursor = self._connection.cursor()
                cursor.execute("BEGIN IMMEDIATE")
                try:
                    yield cursor
                    cursor.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        cursor.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StorageError(f"{self.path}: {error}") from error

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL").fetchall()
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        with self._transaction() as cursor:
            marked, version = (
                cursor.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("application_id", "user_version")
            )
            tables = cursor.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if marked != APPLICATION and tables > 0:
                raise StorageError(f"{self.path} is the database of another program")
            for step in missing_steps(version, str(self.path)):
                for statement in step:
                    cursor.execute(statement.format(**DIALECT))
                version += 1
            cursor.execute(f"PRAGMA application_id = {APPLICATION}")
            cursor.execute(f"PRAGMA user_version = {version}")
