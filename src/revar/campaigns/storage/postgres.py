"""Campaigns in PostgreSQL: for many machines."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from revar.campaigns.storage.address import without_password
from revar.campaigns.storage.connections import CONNECTING, PATIENCE, Connections
from revar.campaigns.storage.forking import ForkAware, leave_to_parent
from revar.campaigns.storage.interface import (
    AppendResult,
    CopyError,
    Entry,
    LockedError,
    MissingCampaignError,
    NameTakenError,
    StorageError,
)
from revar.campaigns.storage.sql import Execute, Result, Rows, SQLStorage, missing_steps
from revar.errors import InputError, require_extra

DIALECT = {
    "bytes": "BYTEA",
    "real": "DOUBLE PRECISION",
    "whole": "BIGINT",
    "serial": "BIGSERIAL",
    "clustered": "",
}
MIGRATION_LOCK = 0x72657672  # advisory: two processes that open a new database at once
NOW = "extract(epoch FROM clock_timestamp())::double precision"
LOCK_PATIENCE = 10.0  # seconds to wait for a row that another transaction holds
LITTLE_PATIENCE = 0.5  # the same, and for a connection, where something may be left undone
LOCK_NOT_AVAILABLE = "55P03"  # the server's code where that was not enough
WRITERS, READERS = 8, 4  # connections at most


class PostgresStorage(SQLStorage, ForkAware):
    """Two pools of connections: some that write, and some that only read.

    A campaign's row is locked from the moment its log grows to the commit, so that positions have
    no gaps and appear in their order; who has to wait for it long is refused, and others have
    connections of their own. The clock is the server's. A lost connection is made again
    once; the events of an append that had been committed all the same then stand in the log
    twice, which does no harm.
    """

    def __init__(self, url: str) -> None:
        ForkAware.__init__(self)
        self._psycopg: Any = require_extra("psycopg", "serve")
        self._pools: Any = require_extra("psycopg_pool", "serve")
        # What it would say of a server that is not there, the errors below say.
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        try:
            host = self._psycopg.conninfo.conninfo_to_dict(url).get("host", "")
        except self._psycopg.Error:  # whose text may quote the password
            raise _unreadable() from None
        if "@" in host[1:]:  # then part of the password would be taken for the host, and shown
            raise _unreadable()
        self._url = url
        self._writers, self._readers = self._connect()
        try:
            with self._psycopg.connect(url, **self._settings()) as connection:
                self._migrate(connection)
        except self._psycopg.Error as error:
            self.close()
            raise _storage_error(error) from error
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return PostgresStorage, (self._url,)

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
            "  FROM grown, unnest(%(bodies)b::bytea[]) WITH ORDINALITY AS new (body, place)"
            ") SELECT before + %(count)s, taken FROM grown",
            {"count": len(bodies), "id": campaign_id, "bodies": list(bodies)},
        )
        if not rows:
            raise MissingCampaignError(campaign_id)
        return AppendResult(*rows[0])

    def check_writable(self) -> None:
        """See `Storage`."""
        self._execute("UPDATE revar_schema SET version = version", ())

    def now(self) -> float:
        """See `Storage`."""
        return float(self._ask(f"SELECT {NOW}", ())[0][0])

    def close(self) -> None:
        """See `Storage`. What still waits for the server some seconds later is given up."""
        for connections in (self._readers, self._writers):
            connections.close()

    def after_fork(self) -> None:
        """See `ForkAware`."""
        leave_to_parent((self._writers, self._readers))
        self._writers, self._readers = self._connect()

    def _ask(self, query: str, values: Any) -> Rows:
        """See `SQLStorage`."""
        return self._run(self._readers, lambda connection: _fetch(connection, query, values))

    def _execute(self, query: str, values: Any) -> Rows:
        """See `SQLStorage`. Values may have names, too: %(name)s."""
        return self._run(self._writers, lambda connection: _fetch(connection, query, values))

    def _execute_at_once(self, query: str, values: Any) -> None:
        """See `SQLStorage`."""

        def carry_out(connection: Any) -> None:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {1000 * LITTLE_PATIENCE:.0f}")
                _fetch(connection, query, values)

        try:
            self._run(self._writers, carry_out, LITTLE_PATIENCE)
        except StorageError as error:
            busy = isinstance(error.__cause__, self._pools.PoolTimeout)
            if not busy and not isinstance(error, LockedError):
                raise

    def _atomically(self, work: Callable[[Execute], Result]) -> Result:
        """See `SQLStorage`."""

        def carry_out(connection: Any) -> Result:
            with connection.transaction():
                return work(lambda query, values: _fetch(connection, query, values))

        return self._run(self._writers, carry_out)

    def _run(
        self,
        connections: Connections,
        work: Callable[[Any], Result],
        patience: float = CONNECTING,
    ) -> Result:
        try:
            return connections.run(work, patience)
        except self._psycopg.Error as error:
            raise _storage_error(error) from error

    def _connect(self) -> tuple[Connections, Connections]:
        """Pools that connect when they are first used."""
        writing = self._settings()
        reading = self._settings("-c default_transaction_read_only=on")
        return Connections(self._url, writing, WRITERS), Connections(self._url, reading, READERS)

    def _settings(self, more: str = "") -> dict[str, Any]:
        limits = {"statement_timeout": PATIENCE, "lock_timeout": LOCK_PATIENCE}
        options = " ".join(f"-c {name}={1000 * limit:.0f}" for name, limit in limits.items())
        return {
            "autocommit": True,
            "connect_timeout": int(CONNECTING),
            "application_name": "revar",
            "options": f"-c synchronous_commit=on {options} {more}".rstrip(),
        }

    def _migrate(self, connection: Any) -> None:
        """Bring the tables up to date; where they are, nothing is written or locked."""
        # Asked first: the notice that a table exists would reach the user at every start.
        if not missing_steps(_version(connection), "the database"):
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            version = _version(connection)
            if version == 0 and not _has_schema(connection):
                connection.execute("CREATE TABLE revar_schema (version BIGINT NOT NULL)")
            for step in missing_steps(version, "the database"):
                for statement in step:
                    connection.execute(statement.format(**DIALECT))
                version += 1
                connection.execute("INSERT INTO revar_schema VALUES (%s)", (version,))


def _has_schema(connection: Any) -> bool:
    return connection.execute("SELECT to_regclass('revar_schema')").fetchone()[0] is not None


def _version(connection: Any) -> int:
    if not _has_schema(connection):
        return 0
    return connection.execute("SELECT max(version) FROM revar_schema").fetchone()[0] or 0


def _fetch(connection: Any, query: str, values: Any) -> Rows:
    cursor = connection.kept
    cursor.execute(query.replace("?", "%s"), values)
    return cursor.fetchall() if cursor.pgresult.nfields else []


def _unreadable() -> InputError:
    return InputError(
        "the address of the PostgreSQL storage cannot be read; signs like %, @ and spaces in a "
        "password must be percent-encoded"
    )


def _storage_error(error: Exception) -> StorageError:
    reason = " ".join(str(error).split())
    locked = getattr(error, "sqlstate", None) == LOCK_NOT_AVAILABLE
    kind = LockedError if locked else StorageError
    return kind(f"PostgreSQL: {without_password(reason)}")
