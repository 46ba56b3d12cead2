"""Where campaigns are kept: SQLite, PostgreSQL or memory, behind one small interface."""

from revar.campaigns.storage.interface import Storage, StorageError
from revar.campaigns.storage.memory import MemoryStorage
from revar.campaigns.storage.opening import open_storage
from revar.campaigns.storage.sqlite import SQLiteStorage

__all__ = ["MemoryStorage", "SQLiteStorage", "Storage", "StorageError", "open_storage"]
