"""Campaigns in PostgreSQL: for many machines."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from revar.campaigns.storage.interface import (
    AppendResult,
    CopyError,
    Entry,
    NameTakenError,
    StorageError,
)
from revar.campaigns.storage.sql import Execute, Result, Rows, SQLStorage, missing_steps
from revar.errors import require_extra

DIALECT = {
    "bytes": "BYTEA",
    "real": "DOUBLE PRECISION",
    "whole": "BIGINT",
    "serial": "BIGSERIAL",
    "clustered": "",
}
MIGRATION_LOCK = 0x72657672  # advisory: two processes that open a new database at once
NOW = "extract(epoch FROM clock_timestamp())::double precision"


class PostgresStorage(SQLStorage):
    """One connection, shared by the threads of the process one at a time.

    A campaign's row is locked from the moment its log grows to the commit, so that positions have
    no gaps and appear in their order. The clock is the server's. A lost connection is made again
    once; the events of an append that had been committed all the same then stand in the log
    twice, which does no harm.
    """

    probe = "SELECT pg_logical_emit_message(true, 'revar', '')"  # to the write-ahead log alone

    def __init__(self, url: str) -> None:
        self._psycopg: Any = require_extra("psycopg", "serve")
        self._url = url
        self._lock = threading.Lock()
        self._connection: Any = None
        try:
            self._run(self._migrate)
        except BaseException:
            self.close()
            raise

    def create(self, campaign_id: str, name: str, definition: bytes) -> Entry:
        """See `Storage`."""
        self._execute(
            "INSERT INTO revar_campaigns (id, name, definition, created, length)"
            f" VALUES (?, ?, ?, {NOW}, 0) ON CONFLICT DO NOTHING",
            (campaign_id, name, definition),
        )
        entry = self.find(name)
        if entry is None:
            raise CopyError(name)
        if entry.id != campaign_id:
            raise NameTakenError(name)
        return entry

    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        """See `Storage`."""
        rows = self._execute(
            "WITH grown AS ("
            "  UPDATE revar_campaigns SET length = length + %(count)s WHERE id = %(id)s"
            f"  RETURNING key, length - %(count)s AS before, {NOW} AS taken"
            "), added AS ("
            "  INSERT INTO revar_events (campaign, position, taken, body)"
            "  SELECT key, before + place, taken, body"
            "  FROM grown, unnest(%(bodies)s::bytea[]) WITH ORDINALITY AS new (body, place)"
            ") SELECT before + %(count)s, taken FROM grown",
            {"count": len(bodies), "id": campaign_id, "bodies": list(bodies)},
        )
        if not rows:
            raise StorageError(f"there is no campaign with the id {campaign_id!r}")
        return AppendResult(*rows[0])

    def now(self) -> float:
        """See `Storage`."""
        return float(self._execute(f"SELECT {NOW}", ())[0][0])

    def close(self) -> None:
        """See `Storage`."""
        with self._lock:
            self._drop()

    def _execute(self, query: str, values: Any) -> Rows:
        """See `SQLStorage`. Values may have names, too: %(name)s."""

        return self._run(lambda connection: _fetch(connection, query, values))

    def _atomically(self, work: Callable[[Execute], Result]) -> Result:
        """See `SQLStorage`."""

        def carry_out(connection: Any) -> Result:
            with connection.transaction():
                return work(lambda query, values: _fetch(connection, query, values))

        return self._run(carry_out)

    def _run(self, work: Callable[[Any], Result]) -> Result:
        """Do the work on the connection, which is made again once if it has been lost."""
        lost = (self._psycopg.OperationalError, self._psycopg.InterfaceError)
        with self._lock:
            try:
                try:
                    return work(self._connect())
                except lost:
                    self._drop()
                    return work(self._connect())
            except self._psycopg.Error as error:
                reason = " ".join(str(error).split())
                raise StorageError(f"PostgreSQL: {reason}") from error

    def _connect(self) -> Any:
        if self._connection is None:
            self._connection = self._psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=10,
                application_name="revar",
                options="-c synchronous_commit=on",
            )
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _migrate(self, connection: Any) -> None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            # Asked first: the notice that a table exists would reach the user at every start.
            present = connection.execute("SELECT to_regclass('revar_schema')").fetchone()[0]
            if present is None:
                connection.execute("CREATE TABLE revar_schema (version BIGINT NOT NULL)")
            row = connection.execute("SELECT max(version) FROM revar_schema").fetchone()
            version = row[0] or 0
            for step in missing_steps(version, "the database"):
                for statement in step:
                    connection.execute(statement.format(**DIALECT))
                version += 1
                connection.execute("INSERT INTO revar_schema VALUES (%s)", (version,))


def _fetch(connection: Any, query: str, values: Any) -> Rows:
    cursor = connection.execute(query.replace("?", "%s"), values)
    return cursor.fetchall() if cursor.description else []
