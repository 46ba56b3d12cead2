"""Campaigns in PostgreSQL: for many machines."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from revar.campaigns.storage.interface import (
    Appended,
    CopyError,
    Entry,
    NameTakenError,
    Snapshot,
    Storage,
    StorageError,
    Stored,
)
from revar.campaigns.storage.schema import missing_steps
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
Result = TypeVar("Result")


class PostgresStorage(Storage):
    """One connection, shared by the threads of the process one at a time.

    A campaign's row is locked from the moment its log grows to the commit, so that positions have
    no gaps and appear in their order. The clock is the server's. A lost connection is made again
    once; the events of an append that had been committed all the same then stand in the log
    twice, which does no harm.
    """

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

        def insert(connection: Any) -> Any:
            return connection.execute(
                "INSERT INTO revar_campaigns (id, name, definition, created, length)"
                f" VALUES (%s, %s, %s, {NOW}, 0) ON CONFLICT DO NOTHING RETURNING id",
                (campaign_id, name, definition),
            ).fetchone()

        self._run(insert)
        entry = self.find(name)
        if entry is None:
            raise CopyError(name)
        if entry.id != campaign_id:
            raise NameTakenError(name)
        return entry

    def entries(self) -> list[Entry]:
        """See `Storage`."""
        return self._entries("ORDER BY key", ())

    def find(self, name: str) -> Entry | None:
        """See `Storage`."""
        return next(iter(self._entries("WHERE name = %s", (name,))), None)

    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> Appended:
        """See `Storage`."""
        rows = self._rows(
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
        return Appended(*rows[0])

    def read(self, campaign_id: str, after: int, limit: int) -> list[Stored]:
        """See `Storage`."""
        rows = self._rows(
            "SELECT position, taken, body FROM revar_events"
            " WHERE campaign = (SELECT key FROM revar_campaigns WHERE id = %s) AND position > %s"
            " ORDER BY position LIMIT %s",
            (campaign_id, after, limit),
        )
        return [Stored(*row) for row in rows]

    def save_snapshot(self, campaign_id: str, snapshot: Snapshot) -> None:
        """See `Storage`."""
        self._run(
            lambda connection: connection.execute(
                "INSERT INTO revar_snapshots AS kept (campaign, position, body)"
                " SELECT key, %s, %s FROM revar_campaigns WHERE id = %s"
                " ON CONFLICT (campaign) DO UPDATE"
                " SET position = excluded.position, body = excluded.body"
                " WHERE excluded.position > kept.position",
                (snapshot.position, snapshot.body, campaign_id),
            )
        )

    def load_snapshot(self, campaign_id: str) -> Snapshot | None:
        """See `Storage`."""
        rows = self._rows(
            "SELECT position, body FROM revar_snapshots"
            " WHERE campaign = (SELECT key FROM revar_campaigns WHERE id = %s)",
            (campaign_id,),
        )
        return Snapshot(*rows[0]) if rows else None

    def now(self) -> float:
        """See `Storage`."""
        return float(self._rows(f"SELECT {NOW}", ())[0][0])

    def close(self) -> None:
        """See `Storage`."""
        with self._lock:
            self._drop()

    def _entries(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        query = f"SELECT id, name, definition, created FROM revar_campaigns {condition}"
        return [Entry(*row) for row in self._rows(query, values)]

    def _rows(self, query: str, values: Any) -> list[tuple[Any, ...]]:
        def fetch(connection: Any) -> list[tuple[Any, ...]]:
            rows: list[tuple[Any, ...]] = connection.execute(query, values).fetchall()
            return rows

        return self._run(fetch)

    def _run(self, work: Callable[[Any], Result]) -> Result:
        """Do the work on the connection, which is made again once if it has been lost."""
        lost = (self._psycopg.OperationalError, self._psycopg.InterfaceError)
        with self._lock:
            try:
                try:
                    return work(self._connected())
                except lost:
                    self._drop()
                    return work(self._connected())
            except self._psycopg.Error as error:
                reason = " ".join(str(error).split())
                raise StorageError(f"PostgreSQL: {reason}") from error

    def _connected(self) -> Any:
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
