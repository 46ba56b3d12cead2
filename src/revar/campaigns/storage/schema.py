"""The versions of the SQL schema, and how a store gets from one to the next.

A store carries the number of its version. Version n is made from version n - 1 by the n-th step,
in one transaction; steps that have been released are never changed, only added to.
"""

from revar.campaigns.storage.interface import StorageError

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
)

VERSION = len(STEPS)


def missing_steps(version: int, place: str) -> tuple[tuple[str, ...], ...]:
    """The steps from `version` to the current one; a newer store is refused."""
    if version > VERSION:
        raise StorageError(
            f"{place} has schema version {version}, written by a newer revar; "
            f"this one knows versions up to {VERSION}"
        )
    return STEPS[version:]
