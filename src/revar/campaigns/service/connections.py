"""How many connections a server keeps, and how long a caller may take to speak or to listen.

A caller that is slow never holds up another one: where there are too many connections, the one that
has been waited for longest is dropped, and only where none is waited for is a new one refused.
"""

import asyncio
import socket
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any
from urllib.parse import unquote

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from revar.campaigns.service.usual_requests import UsualReply, UsualRequest, read_usual

MOST_CONNECTIONS = 1000
RESERVED_FILES = 128  # for storages, the log, and connections that are being taken or dropped
TAKEN_AT_ONCE = 32  # connections, before anything else has its turn
FILES_ON_WINDOWS = 512
BACKLOG = 1024  # callers that may wait to be let in


class Wait(Enum):
    """What a connection waits for."""

    HEADERS = "headers"
    BODY = "a body"
    READING = "a reader"  # the caller does not take what it asked for


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
        self.most = min(most, _files() - RESERVED_FILES)
        self.dropped = dropped  # is told why
        self.waiting: dict[LimitedProtocol, tuple[Wait, float]] = {}  # since when, oldest first

    def make_room(self, newest: "LimitedProtocol") -> None:
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


class Joined(h11.Connection):
    """Has the head of a reply wait for what follows it: both are sent at once."""

    _head = b""

    def send(self, event: h11.Event) -> bytes | None:  # type: ignore[override]
        """What is to be sent now."""
        data = super().send(event)
        if isinstance(event, h11.Response):
            self._head, data = data or b"", b""
        elif self._head and data is not None:
            self._head, data = b"", self._head + data
        return data


class LimitedProtocol(H11Protocol):
    """A connection that notes while it waits for its caller."""

    server_state: Connections
    _unread = False  # more was sent than the caller has taken

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn = Joined(h11.SERVER)
        self._usual: RequestResponseCycle | None = None  # a request that h11 knows nothing of

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A caller has connected."""
        super().connection_made(transport)
        self.server_state.make_room(self)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self.server_state.waiting.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A piece of a request: the clock starts again only with a new part of it."""
        usual = read_usual(data) if self._is_idle else None
        if self._usual is not None:  # it is answered first
            self.conn.receive_data(data)
            self.flow.pause_reading()
        elif usual is not None:
            self._unset_keepalive_if_required()
            self._answer(usual)
        else:
            super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """The next request may come."""
        usual, self._usual = self._usual, None
        super().on_response_complete()
        if usual is not None and self.conn.trailing_data[0] and not self.transport.is_closing():
            self.handle_events()
        self._look()

    @property
    def _is_idle(self) -> bool:
        """Whether a new request is waited for, of which nothing has come."""
        waits = self._usual is None and self.conn.our_state is h11.IDLE
        return waits and not self.conn.trailing_data[0]

    def _answer(self, request: UsualRequest) -> None:
        """Have the application answer, as h11's requests are."""
        path, _, query = request.target.partition(b"?")
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": "http",
            "method": "POST",
            "root_path": "",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "headers": request.headers,
            "state": self.app_state.copy(),
        }
        self._usual = self.cycle = RequestResponseCycle(
            scope=self.scope,
            conn=UsualReply(),  # type: ignore[arg-type]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            on_response=self.on_response_complete,
        )
        self.cycle.body += request.body
        self.cycle.more_body = False
        self.cycle.message_event.set()
        task = self.loop.create_task(self.cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def pause_writing(self) -> None:
        """The caller has not taken what was sent."""
        super().pause_writing()
        self._unread = True
        self._look()

    def resume_writing(self) -> None:
        """The caller has taken it."""
        super().resume_writing()
        self._unread = False
        self._look()

    def refuse(self, status: str, reason: str, *headers: str) -> None:
        """Hang up, and say why where a reply is due that has not begun."""
        self.server_state.waiting.pop(self, None)
        if self._unread:
            self.transport.abort()
            return
        if self.cycle is None or not self.cycle.response_started:  # else a reply to no request
            head = (f"HTTP/1.1 {status}", "Content-Type: text/plain", "Connection: close")
            length = f"Content-Length: {len(reason)}"
            self.transport.write("\r\n".join((*head, *headers, length, "", reason)).encode())
        self.transport.close()

    def _look(self) -> None:
        """Note what the connection waits for now."""
        cycle = self.cycle
        if self.transport.is_closing():
            self.server_state.waiting.pop(self, None)
        elif self._unread:
            self._wait_for(Wait.READING)
        elif cycle is None or cycle.response_complete:
            self._wait_for(Wait.HEADERS)
        elif cycle.more_body:
            self._wait_for(Wait.BODY)
        else:
            self.server_state.waiting.pop(self, None)

    def _wait_for(self, what: Wait) -> None:
        waiting = self.server_state.waiting
        before = waiting.get(self)
        if before is None or before[0] is not what:
            waiting.pop(self, None)
            waiting[self] = what, self.loop.time()


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
