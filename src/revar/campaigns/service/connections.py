"""How many connections a server keeps, and how long a caller may take to speak or to listen.

A caller that is slow never holds up another one: where there are too many connections, the one that
has been waited for longest is dropped, and only where none is waited for is a new one refused.
"""

import asyncio
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from revar.campaigns.service.protocol import LimitedProtocol, Wait
from revar.errors import RefusedError

MOST_CONNECTIONS = 1000
RESERVED_FILES = 128  # for storages, the log, and connections that are being taken or dropped
TAKEN_AT_ONCE = 32  # connections, before anything else has its turn
FILES_ON_WINDOWS = 512
BACKLOG = 1024  # callers that may wait to be let in
PATIENCE = {Wait.HEADERS: 10.0, Wait.BODY: 30.0, Wait.READING: 60.0}  # seconds, at most


class Connections(ServerState):
    """The connections of a server, and which of them wait for their callers."""

    def __init__(
        self,
        most: int,
        dropped: Callable[[str], None],
        patience: Mapping[Wait, float] = PATIENCE,
    ) -> None:
        super().__init__()
        self.patience = patience
        files = _files()
        if files <= RESERVED_FILES:
            raise RefusedError(
                f"the system allows {files} open files, and a service needs more than "
                f"{RESERVED_FILES}: see `ulimit -n`"
            )
        self.most = min(most, files - RESERVED_FILES)
        self.dropped = dropped  # is told why
        self.waiting: dict[LimitedProtocol, tuple[Wait, float]] = {}  # since when, oldest first

    def make_room(self, newest: LimitedProtocol) -> None:
        """Keep to the limit, now that there is one more."""
        if len(self.connections) <= self.most:
            return
        slowest = next(iter(self.waiting), None)
        if slowest is None:
            newest.refuse("503 Service Unavailable", "too many connections", "Retry-After: 1")
            self.dropped("refused")
        else:
            slowest.refuse("408 Request Timeout", "others wait for a connection")
            self.dropped("for another")

    def drop_late(self, now: float) -> None:
        """Drop connections whose callers took too long."""
        for protocol, (wait, since) in list(self.waiting.items()):
            longest = self.patience[wait]
            if now > since + longest:
                reason = f"waited for {wait.value} for {longest:g} s"
                protocol.refuse("408 Request Timeout", reason)
                self.dropped(f"slow: {wait.value}")


class LimitedServer(uvicorn.Server):
    """A server whose connections are limited in number and time."""

    def __init__(self, app: Any, connections: Connections, patience: int) -> None:
        config = uvicorn.Config(
            app,
            http=LimitedProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # callers could take any address, and with it escape throttling
            # As many are taken at once before one is looked at; `startup` lets more wait.
            backlog=TAKEN_AT_ONCE,
            timeout_graceful_shutdown=patience,
        )
        super().__init__(config)
        self.server_state: Connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)

    async def on_tick(self, counter: int) -> bool:
        """Look after connections once a second."""
        if counter % 10 == 0:
            self.server_state.drop_late(asyncio.get_running_loop().time())
        return await super().on_tick(counter)


def _files() -> int:
    """How many files and connections the process may have open."""
    if sys.platform == "win32":
        return FILES_ON_WINDOWS
    import resource  # noqa: PLC0415 - Windows has none

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else soft
