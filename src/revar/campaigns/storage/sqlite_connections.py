"""Connections to a SQLite file: one that writes durably, and others that only read."""

import sqlite3
from pathlib import Path

PATIENCE = 30.0  # seconds to wait while another process writes
TURN = 0.1  # seconds of it between two looks whether the storage was closed meanwhile


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A connection whose commits are on the disk when they return."""
    connection = sqlite3.connect(path, timeout=TURN, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


class Reader(sqlite3.Connection):
    """A connection that only reads; one that does not last must not be used for a second read."""

    lasts = True


def connect_to_read(path: Path) -> Reader:
    """A connection that only reads.

    It keeps an index beside the file. Where the folder or the disk has no room for that, it can do
    without one: nobody else has the file open then, or they would have made it.
    """
    problem: sqlite3.Error | None = None
    log = path.with_name(path.name + "-wal")
    # What the log holds would be missed by a connection that takes the file for unchangeable.
    whole = not log.exists() or log.stat().st_size == 0
    for mode in ("mode=ro", "immutable=1" if whole else "mode=rw"):
        connection = sqlite3.connect(
            f"{path.as_uri()}?{mode}",
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,
            factory=Reader,
        )
        connection.lasts = mode == "mode=ro"  # the others hold for the file as it is now
        try:
            if mode == "mode=rw":
                connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
                connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except sqlite3.Error as error:
            connection.close()
            problem = problem or error
        else:
            return connection
    assert problem is not None
    if not whole and problem.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN:
        raise sqlite3.OperationalError(
            f"what was written last is in {log.name}, which cannot be read here without "
            f"{path.name}-shm: copy both files to a folder that can be written to"
        ) from problem
    raise problem
