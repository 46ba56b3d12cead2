"""Connections to PostgreSQL: a pool, and time limits that hold even if the server is stopped.

The server's own limits end statements and waits for locks. They do not help where the server's
process is stopped, or the network swallows its answer: then the socket is shut down from here.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from revar.errors import require_extra

PATIENCE = 30.0  # seconds that a statement may take
GRACE = 5.0  # seconds more until the server is taken for stopped
CONNECTING = 5.0  # seconds to wait for a connection
CLOSING = 3.0  # seconds that statements under way get when the storage is closed
LOOKS = 0.5  # seconds between two looks at statements under way
Result = TypeVar("Result")


class Connections:
    """Up to `most` connections, made when they are needed."""

    def __init__(self, url: str, settings: dict[str, Any], most: int) -> None:
        self._pools: Any = require_extra("psycopg_pool", "serve")
        self._url, self._settings, self._most = url, settings, most
        self._lock = threading.Lock()
        self._pool: Any = None
        self._closed = False
        self._busy: dict[Any, float] = {}  # connections in use, and when they are to be free again
        self._watch: threading.Thread | None = None
        self._ends = threading.Event()

    def run(self, work: Callable[[Any], Result], patience: float = CONNECTING) -> Result:
        """Do the work on a connection; on another one if the first has been lost.

        Raises after `patience` seconds without one that is free.
        """
        try:
            return self._try(work, patience)
        except _LostError as lost:
            self._open().drain()  # the others may be lost, too
            try:
                return self._try(work, patience)
            except _LostError as again:
                raise again.error from lost.error

    def close(self) -> None:
        """Let go of all; a statement that does not end by itself is cut off."""
        with self._lock:
            self._closed, pool, self._pool = True, self._pool, None
        if pool is None:
            return
        pool.close(timeout=0.0)
        ends = time.monotonic() + CLOSING
        while self._busy and time.monotonic() < ends:
            time.sleep(0.01)
        self._cut_off(float("inf"))
        self._ends.set()

    def _try(self, work: Callable[[Any], Result], patience: float) -> Result:
        pool = self._open()
        # Nothing is left to commit, so that the pool's own `connection` would do that for nothing.
        connection = pool.getconn(patience)
        self._busy[connection] = time.monotonic() + PATIENCE + GRACE
        try:
            return work(connection)
        except Exception as error:
            # Without a code of the server's: it was the connection that failed.
            if connection.closed and not self._closed:
                raise _LostError(error) from error
            raise
        finally:
            del self._busy[connection]
            pool.putconn(connection)

    def _open(self) -> Any:
        with self._lock:
            if self._closed:
                raise self._pools.PoolClosed("the storage was closed")
            if self._pool is None:
                self._pool = self._pools.ConnectionPool(
                    self._url,
                    kwargs=self._settings,
                    min_size=0,
                    max_size=self._most,
                    timeout=CONNECTING,
                    reconnect_timeout=CONNECTING,
                    num_workers=1,
                    configure=_keep_cursor,
                    open=True,
                )
                self._watch = threading.Thread(target=self._look, name="connections", daemon=True)
                self._watch.start()
            return self._pool

    def _look(self) -> None:
        while not self._ends.wait(LOOKS):
            self._cut_off(time.monotonic())

    def _cut_off(self, now: float) -> None:
        """Shut the sockets down whose answer is overdue; who waits for it gets an error."""
        for connection, until in list(self._busy.items()):
            if now < until:
                continue
            with suppress(Exception):  # it may have ended by itself
                descriptor = os.dup(connection.fileno())
                with socket.socket(fileno=descriptor) as found:
                    found.shutdown(socket.SHUT_RDWR)


def _keep_cursor(connection: Any) -> None:
    """Have one cursor for all statements: a new one learns again how to write and read values."""
    connection.kept = connection.cursor()


class _LostError(Exception):
    """The connection was lost; the work may be done again on another one."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
