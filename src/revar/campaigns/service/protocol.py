"""One connection: what comes over it is read within limits, one request after the other."""

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

if TYPE_CHECKING:
    from revar.campaigns.service.connections import Connections

LARGEST_HEAD = 65_536  # bytes, give or take a piece
MOST_FIELDS = 200  # of a head, or after a body
PIECE = 4096  # bytes that are read at once: all requests that end in them wait for their replies
VERSIONS = ("1.0", "1.1")


class Wait(Enum):
    """What a connection waits for."""

    HEADERS = "headers"
    BODY = "a body"
    READING = "a reader"  # the caller does not take what it asked for


class LimitedProtocol(HttpToolsProtocol):
    """A connection that notes while it waits for its caller.

    What comes while a request is answered is left unread until then.
    """

    server_state: "Connections"
    _unread = False  # more was sent than the caller has taken
    _current: RequestResponseCycle | None = None  # the request that is answered, or was last
    _begun = False  # a head that has not come to its end
    _pending = 0  # bytes since the last part of a request
    _refusal: tuple[str, str] | None = None  # due once what came before is answered

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._coming = bytearray()  # not read yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A caller has connected."""
        super().connection_made(transport)
        self.server_state.make_room(self)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self.server_state.waiting.pop(self, None)
        if self.pipeline and self._current is not None:  # else uvicorn tells it
            self._current.disconnected = True
            self._current.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A piece of a request: the clock starts again only with a new part of it."""
        self._unset_keepalive_if_required()
        self._coming += data
        self._read()

    def on_message_begin(self) -> None:
        """The first byte of a request is there: the time for its head begins."""
        super().on_message_begin()
        self._begun = True
        if not self._unread:
            self.server_state.waiting.pop(self, None)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field is there: many small ones take far more room than they came in."""
        if len(self.headers) >= MOST_FIELDS:
            raise httptools.HttpParserError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head is there."""
        self._check_head()
        if self.parser.should_upgrade():
            return  # see `_parse`
        self._begun = False
        super().on_headers_complete()
        self._unset_keepalive_if_required()  # set by a reply before, if this was there by then
        self.headers = []  # what follows the body is none of the request's headers
        self._pending = 0
        if not self.pipeline:
            self._current = self.cycle

    def on_body(self, body: bytes) -> None:
        """A part of a body is there."""
        super().on_body(body)
        self._pending = 0

    def on_message_complete(self) -> None:
        """A request is there."""
        if not self.parser.should_upgrade():
            super().on_message_complete()
            self._pending = 0

    def on_response_complete(self) -> None:
        """The next request may come."""
        if self.pipeline:
            self._current = self.pipeline[-1][0]
        super().on_response_complete()
        self._read()
        if self._begun:  # no quiet connection, which would be closed earlier
            self._unset_keepalive_if_required()

    @property
    def _owes_reply(self) -> bool:
        """Whether a request is there that has not been answered."""
        current = self._current
        return current is not None and not (current.more_body or current.response_complete)

    def _read(self) -> None:
        """Read what has come, up to a request that is to be answered first."""
        while self._coming and not (
            self._owes_reply or self._refusal or self.transport.is_closing()
        ):
            piece = bytes(self._coming[:PIECE])
            del self._coming[:PIECE]
            self._parse(piece)
        if self._coming:
            self.transport.pause_reading()
            self.flow.read_paused = False  # else whoever takes the body would end the pause
        elif not self.flow.read_paused:
            self.transport.resume_reading()
        self._look()

    def _parse(self, piece: bytes) -> None:
        self._pending += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            # Nothing is upgraded here. The parser has not read the body, as if there were none,
            # and reads no more where this is to be the last request.
            head = self._head_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            self._coming[:0] = head + piece[upgrade.args[0] :]
            self._pending = 0
        except httptools.HttpParserError:
            reason = "Invalid HTTP request received."
            self.logger.warning(reason)
            self._refusal = "400 Bad Request", reason
        if self._pending > LARGEST_HEAD:
            self._refusal = "431 Request Header Fields Too Large", "the headers are too large"

    def _check_head(self) -> None:
        """Refuse what the parser lets through, but others may read in another way."""
        version = self.parser.get_http_version()
        names = [name for name, _ in self.headers]
        hosts = names.count(b"host")
        if (
            version not in VERSIONS
            or self.parser.get_method() == b"CONNECT"
            or not self.url.startswith(b"/")
            or hosts > 1
            or (hosts == 0 and version == "1.1")
        ):
            raise httptools.HttpParserError
        if b"transfer-encoding" in names:
            coding = self.headers[names.index(b"transfer-encoding")][1]
            if coding.lower() != b"chunked":
                raise httptools.HttpParserError

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        lines += [b"%s: %s" % field for field in self.headers if field[0] != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

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
        current = self._current
        if self._unread or self.transport.is_closing():
            self.transport.abort()
            return
        # Else it would be a reply to no request.
        if (
            current is None
            or not current.response_started
            or (current.response_complete and (self._refusal or self._begun))
        ):
            head = (f"HTTP/1.1 {status}", "Content-Type: text/plain", "Connection: close")
            length = f"Content-Length: {len(reason)}"
            self.transport.write("\r\n".join((*head, *headers, length, "", reason)).encode())
            if current is not None and not current.response_complete:
                current.disconnected = True  # a reply of its own would be a second one
                current.message_event.set()
        self.transport.close()
        self._look()

    def _look(self) -> None:
        """Note what the connection waits for now."""
        current = self._current
        if self.transport.is_closing():
            # It is not closed before its caller has taken what was sent.
            if self.transport.get_write_buffer_size() > 0:
                self._wait_for(Wait.READING)
            else:
                self.server_state.waiting.pop(self, None)
        elif self._refusal and not self._owes_reply:
            self.refuse(*self._refusal)
        elif self._unread:
            self._wait_for(Wait.READING)
        elif current is None or current.response_complete:
            self._wait_for(Wait.HEADERS)
        elif current.more_body:
            self._wait_for(Wait.BODY)
        else:
            self.server_state.waiting.pop(self, None)

    def _wait_for(self, what: Wait) -> None:
        waiting = self.server_state.waiting
        before = waiting.get(self)
        if before is None or before[0] is not what:
            waiting.pop(self, None)
            waiting[self] = what, self.loop.time()
