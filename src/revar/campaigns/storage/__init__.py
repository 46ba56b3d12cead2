"""Where campaigns are kept: SQLite, PostgreSQL or memory, behind one small interface."""

from pathlib import Path
from urllib.parse import unquote

from revar.campaigns.storage.address import without_password
from revar.campaigns.storage.interface import MemoryStorage, Storage, StorageError
from revar.campaigns.storage.sqlite import SQLiteStorage
from revar.errors import InputError

__all__ = ["MemoryStorage", "SQLiteStorage", "Storage", "StorageError", "open_storage"]

FORMS = "sqlite:///file.db, postgresql://user@host/database, memory:, or the path of a file"


def open_storage(storage: Storage | str | Path, *, create: bool = True) -> Storage:
    """The storage itself, or the one at that address.

    Parameters
    ----------
    storage
        A path, or an address: sqlite:///…, postgresql://…, memory:
    create
        Whether a missing SQLite file is made; to a reader its name is mistyped.
    """
    if isinstance(storage, Storage):
        return storage
    if isinstance(storage, Path):
        return SQLiteStorage(storage, create=create)
    scheme, _, _ = storage.partition(":")
    if storage in ("memory:", "memory://"):
        return MemoryStorage()
    if scheme in ("postgresql", "postgres"):
        from revar.campaigns.storage.postgres import PostgresStorage  # noqa: PLC0415

        return PostgresStorage(storage)
    if scheme == "sqlite":
        # sqlite:///campaigns.db lies in the current folder, sqlite:////srv/campaigns.db does not.
        path = unquote(storage.removeprefix("sqlite:///"))
        if not storage.startswith("sqlite:///") or not path:
            raise _unknown(storage)
        return SQLiteStorage(path, create=create)
    if "://" in storage or not storage:
        raise _unknown(storage)
    return SQLiteStorage(storage, create=create)


def _unknown(storage: str) -> InputError:
    return InputError(f"the storage is {without_password(storage)!r}; it must be one of {FORMS}")
