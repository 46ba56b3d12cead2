"""What SQL storages share: the versions of the schema, and queries that read the same everywhere.

A store carries the number of its version. Version n is made from version n - 1 by the n-th step,
in one transaction; steps that have been released are never changed, only added to.
"""

from abc import abstractmethod
from collections.abc import Callable
from itertools import repeat
from typing import Any, TypeAlias, TypeVar

from revar.campaigns.storage.interface import (
    Entry,
    MissingCampaignError,
    Snapshot,
    Storage,
    StorageError,
    StoredEvent,
)

Rows: TypeAlias = list[tuple[Any, ...]]
Execute: TypeAlias = Callable[[str, Any], Rows]  # a statement with ? for values; what it gives
Result = TypeVar("Result")

# Each step is a list of statements; what differs between databases stands in braces.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE revar_campaigns (
            key {serial} PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL UNIQUE,
            definition {bytes} NOT NULL,
            created {real} NOT NULL,
            length {whole} NOT NULL
        )
        """,
        """
        CREATE TABLE revar_events (
            campaign {whole} NOT NULL REFERENCES revar_campaigns (key),
            position {whole} NOT NULL,
            taken {real} NOT NULL,
            body {bytes} NOT NULL,
            PRIMARY KEY (campaign, position)
        ) {clustered}
        """,
    ),
    (
        """
        CREATE TABLE revar_snapshots (
            campaign {whole} PRIMARY KEY REFERENCES revar_campaigns (key),
            position {whole} NOT NULL,
            body {bytes} NOT NULL
        )
        """,
    ),
    (),  # logs may hold events that older versions do not know: renewed, extended, and others
)

VERSION = len(STEPS)
READABLE = 2  # from this version on, a store can be read as it is

EVENTS = (  # of a campaign, behind a position, so many at most
    "SELECT position, taken, body FROM revar_events"
    " WHERE campaign = (SELECT key FROM revar_campaigns WHERE id = ?) AND position > ?"
    " ORDER BY position LIMIT ?"
)


def as_events(rows: Rows) -> list[StoredEvent]:
    """What that query gives."""
    return list(map(tuple.__new__, repeat(StoredEvent), rows))  # far faster than one by one


def missing_steps(version: int, place: str) -> tuple[tuple[str, ...], ...]:
    """The steps from `version` to the current one; a newer store is refused."""
    if version > VERSION:
        raise StorageError(
            f"{place} has schema version {version}, written by a newer revar; "
            f"this one knows versions up to {VERSION}"
        )
    return STEPS[version:]


class SQLStorage(Storage):
    """The part of a storage that every database does alike."""

    @abstractmethod
    def _ask(self, query: str, values: Any) -> Rows:
        """What a query gives, with ? where a value goes; over a connection that only reads."""

    @abstractmethod
    def _execute(self, query: str, values: Any) -> Rows:
        """Carry out one statement that writes; the rows that it gives, if any."""

    @abstractmethod
    def _execute_at_once(self, query: str, values: Any) -> None:
        """The same, but nothing is done where others hold a lock that it needs."""

    @abstractmethod
    def _atomically(self, work: Callable[[Execute], Result]) -> Result:
        """Have the work carry out statements that all take effect, or none."""

    def delete(self, name: str) -> None:
        """See `Storage`."""

        def remove(execute: Execute) -> None:
            # The campaign first: that locks its row, so that nobody appends meanwhile.
            query = "UPDATE revar_campaigns SET length = length WHERE name = ? RETURNING key"
            keys = execute(query, (name,))
            if not keys:
                raise MissingCampaignError(name)
            for table in ("revar_events", "revar_snapshots"):
                execute(f"DELETE FROM {table} WHERE campaign = ?", keys[0])
            execute("DELETE FROM revar_campaigns WHERE key = ?", keys[0])

        self._atomically(remove)

    def entries(self) -> list[Entry]:
        """See `Storage`."""
        return self._entries("ORDER BY key", ())

    def find(self, name: str) -> Entry | None:
        """See `Storage`."""
        return next(iter(self._entries("WHERE name = ?", (name,))), None)

    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        """See `Storage`."""
        return as_events(self._ask(EVENTS, (campaign_id, after, limit)))

    def length(self, campaign_id: str) -> int:
        """See `Storage`."""
        rows = self._ask("SELECT length FROM revar_campaigns WHERE id = ?", (campaign_id,))
        if not rows:
            raise MissingCampaignError(campaign_id)
        return int(rows[0][0])

    def save_snapshot(self, campaign_id: str, snapshot: Snapshot) -> None:
        """See `Storage`."""
        self._execute_at_once(
            "INSERT INTO revar_snapshots AS kept (campaign, position, body)"
            " SELECT key, ?, ? FROM revar_campaigns WHERE id = ?"
            " ON CONFLICT (campaign) DO UPDATE"
            " SET position = excluded.position, body = excluded.body"
            " WHERE excluded.position >= kept.position",
            (snapshot.position, snapshot.body, campaign_id),
        )

    def load_snapshot(self, campaign_id: str) -> Snapshot | None:
        """See `Storage`."""
        rows = self._ask(
            "SELECT position, body FROM revar_snapshots"
            " WHERE campaign = (SELECT key FROM revar_campaigns WHERE id = ?)",
            (campaign_id,),
        )
        return Snapshot(*rows[0]) if rows else None

    def _entries(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        query = f"SELECT id, name, definition, created FROM revar_campaigns {condition}"
        return [Entry(*row) for row in self._ask(query, values)]
