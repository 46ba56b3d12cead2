"""Campaigns in one SQLite file: the default, for one machine and any number of processes."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from revar.campaigns.storage.address import without_password
from revar.campaigns.storage.forking import ForkAware, leave_to_parent
from revar.campaigns.storage.interface import (
    AppendResult,
    CopyError,
    Entry,
    MissingCampaignError,
    NameTakenError,
    StorageError,
    StoredEvent,
)
from revar.campaigns.storage.sql import (
    EVENTS,
    READABLE,
    VERSION,
    Execute,
    Result,
    Rows,
    SQLStorage,
    as_events,
    missing_steps,
)
from revar.campaigns.storage.sqlite_connections import (
    PATIENCE,
    TURN,
    Reader,
    connect_to_read,
    connect_to_write,
)

# Marks the file as ours ("revr"), so that another program's database is not migrated by mistake.
APPLICATION = 0x72657672
DIALECT = {
    "bytes": "BLOB",
    "real": "REAL",
    "whole": "INTEGER",
    "serial": "INTEGER",
    "clustered": "WITHOUT ROWID",
}
IDLE_READERS = 8  # connections that are kept for the next readers


class SQLiteStorage(SQLStorage, ForkAware):
    """One connection that writes, for one thread at a time, and others that only read.

    Write-ahead log with `synchronous=FULL`: a commit is on the disk before `append` returns.
    Readers wait for nobody. With `create=False` a file that is missing is refused, not made; one
    that cannot be written to can still be read.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        ForkAware.__init__(self)
        self.path = Path(path).absolute()
        self._name = str(self.path)
        self._shown = without_password(path)
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        self._readers: list[Reader] = []
        self._lock, self._idle = threading.Lock(), threading.Lock()
        self._ends: dict[str, int] = {}  # of logs, by campaign, after what was appended here
        if not create and not self.path.exists():
            raise StorageError(f"there is no file {self._shown}")
        try:
            if not self.path.exists() or self._version() < VERSION:
                self._migrate()
            self._file = self._identity()
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StorageError(f"{self._shown} cannot be used as a storage: {error}") from error
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path,)

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
                raise MissingCampaignError(campaign_id)
            key, last = row
            taken = time.time()
            first = last - len(bodies) + 1
            cursor.executemany(
                "INSERT INTO revar_events (campaign, position, taken, body) VALUES (?, ?, ?, ?)",
                [(key, first + i, taken, body) for i, body in enumerate(bodies)],
            )
        self._ends[campaign_id] = last
        return AppendResult(last, taken)

    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        """See `Storage`.

        Who has just appended, and looks whether others have, has the connection that writes look
        if it is free: it knows the pages, which any other would have to read again.
        """
        if self._ends.get(campaign_id) == after and self._lock.acquire(blocking=False):
            try:
                if self._writer is not None:
                    with self._errors():
                        self._check_file()
                        values = campaign_id, after, limit
                        return as_events(self._writer.execute(EVENTS, values).fetchall())
            finally:
                self._lock.release()
        return super().read(campaign_id, after, limit)

    def check_writable(self) -> None:
        """See `Storage`."""
        with self._transaction() as cursor:
            (version,) = cursor.execute("PRAGMA user_version").fetchone()
            cursor.execute(f"PRAGMA user_version = {version}")  # as it is, but written

    def now(self) -> float:
        """See `Storage`."""
        return time.time()

    def close(self) -> None:
        """See `Storage`. Who waits for another process to end its writing is told at once."""
        self._closed = True
        with self._idle:
            while self._readers:
                self._readers.pop().close()
        with self._lock:  # last, because it is the one that can tidy up
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def after_fork(self) -> None:
        """See `ForkAware`."""
        leave_to_parent((self._writer, self._readers))
        self._writer, self._readers = None, []
        self._lock, self._idle = threading.Lock(), threading.Lock()

    def _ask(self, query: str, values: Any) -> Rows:
        """See `SQLStorage`."""
        with self._errors():
            self._check_file()
            with self._reader() as reader:
                return reader.execute(query, values).fetchall()

    def _execute(self, query: str, values: Any) -> Rows:
        """See `SQLStorage`."""
        return self._atomically(lambda execute: execute(query, values))

    def _execute_at_once(self, query: str, values: Any) -> None:
        """See `SQLStorage`."""
        with suppress(_BusyError), self._transaction(TURN) as cursor:
            cursor.execute(query, values)

    def _atomically(self, work: Callable[[Execute], Result]) -> Result:
        """See `SQLStorage`."""
        with self._transaction() as cursor:
            return work(lambda query, values: cursor.execute(query, values).fetchall())

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection that only reads, for one thread at a time."""
        if self._closed:
            raise StorageError(f"{self._shown} was closed")
        with self._idle:
            reader = self._readers.pop() if self._readers else None
        if reader is None:
            reader = connect_to_read(self.path)
        yield reader  # one that failed is not used again
        with self._idle:
            if reader.lasts and len(self._readers) < IDLE_READERS and not self._closed:
                self._readers.append(reader)
                return
        reader.close()

    @contextmanager
    def _transaction(self, patience: float = PATIENCE) -> Iterator[sqlite3.Cursor]:
        """A cursor that writes; `_BusyError` where others write for longer than that."""
        with self._errors(), self._alone(patience):
            if self._writer is None:
                self._writer = connect_to_write(self.path)
            cursor = self._writer.cursor()
            self._begin(cursor, patience)
            try:
                yield cursor
                self._check_file()
                cursor.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    cursor.execute("ROLLBACK")
                raise

    @contextmanager
    def _alone(self, patience: float) -> Iterator[None]:
        """No other thread writes meanwhile."""
        if not self._lock.acquire(timeout=patience):
            raise _BusyError(f"{self._shown}: database is locked")
        try:
            yield
        finally:
            self._lock.release()

    def _begin(self, cursor: sqlite3.Cursor, patience: float) -> None:
        """Take the write lock first: two processes that had read would wait for each other."""
        ends = time.monotonic() + patience
        while not self._closed:
            try:
                cursor.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() >= ends:
                    raise _BusyError(f"{self._shown}: {error}") from error
            else:
                return
        raise StorageError(f"{self._shown} was closed")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"{self._shown}: {error}") from error

    def _check_file(self) -> None:
        """Refuse to go on with a file that is no longer there: nothing in it would be found."""
        file = getattr(self, "_file", None)  # there is none while it is made
        if file is not None and self._identity() != file:
            raise StorageError(f"{self._shown} was deleted or replaced while it was in use")

    def _identity(self) -> tuple[int, int] | None:
        """Which file it is, None if there is none."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 - a path takes far longer
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _version(self) -> int:
        """The version of a file that is ours."""
        with self._reader() as reader:
            return _check_ours(reader, self._shown)

    def _migrate(self) -> None:
        """Bring the file up to date; one that cannot be written to is read as it is."""
        try:
            with self._transaction() as cursor:
                version = _check_ours(cursor, self._shown)
                for step in missing_steps(version, self._shown):
                    for statement in step:
                        cursor.execute(statement.format(**DIALECT))
                    version += 1
                cursor.execute(f"PRAGMA application_id = {APPLICATION}")
                cursor.execute(f"PRAGMA user_version = {version}")
        except StorageError as error:
            if not isinstance(error.__cause__, sqlite3.Error):
                raise
            if not self.path.exists() or self._version() < READABLE:
                raise error.__cause__ from None


class _BusyError(StorageError):
    """Others are writing."""


def _reopen(path: Path) -> SQLiteStorage:
    return SQLiteStorage(path, create=False)


def _check_ours(database: sqlite3.Connection | sqlite3.Cursor, shown: str) -> int:
    """The version of the database; that of another program is refused."""
    marked, version = (
        database.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if marked != APPLICATION and tables > 0:
        raise StorageError(f"{shown} is the database of another program")
    missing_steps(version, shown)
    return int(version)
