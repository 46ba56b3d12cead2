"""What comes over a connection: in any pieces, several at once, malformed or too large."""

import asyncio
import logging
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revar.campaigns.service.app import make_app
from revar.campaigns.service.protocol import (
    LARGEST_HEAD,
    MOST_FIELDS,
    PIECE,
    LimitedProtocol,
    Wait,
)
from revar.campaigns.storage.interface import MemoryStorage, StoredEvent
from tests.campaigns.test_opening import create
from tests.campaigns.test_slow_callers import limited

HOST = "Host: 127.0.0.1"
CHUNKED = "Transfer-Encoding: chunked"
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAQ")
gone: list[str] = []  # paths whose callers left


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Says what it was asked, in the way that the path names."""
    if scope["type"] != "http":
        return
    path, body, more = scope["path"], b"", True
    while more and not path.startswith("/early"):
        message = await receive()
        if message["type"] == "http.disconnect":
            gone.append(path)
            return
        body += message["body"]
        more = message["more_body"]
    if path == "/slow":
        await asyncio.sleep(0.2)
    if path == "/left":
        gone.append(path + " " + (await receive())["type"])
        return
    names = sorted(name.decode() for name, _ in scope["headers"])
    said = f"<{scope['method']} {scope['raw_path'].decode()} {','.join(names)} {len(body)}>"
    headers = [(b"content-length", str(len(said)).encode())]
    if path == "/close":
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said.encode()})


def request(path: str, *fields: str, body: str = "{}") -> bytes:
    """One that has a body of known length."""
    return raw(f"POST {path} HTTP/1.1", HOST, f"Content-Length: {len(body)}", *fields, body=body)


def raw(*lines: str, body: str = "", end: str = "\r\n") -> bytes:
    """Lines, and what follows them."""
    return end.join((*lines, "", body)).encode("latin-1")


async def talk(
    port: int, pieces: Sequence[bytes], pause: float = 0.0, leaves: float | None = None
) -> bytes:
    """What a caller gets who sends so much at a time, until one of the two hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(OSError):  # it may have ended already
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if leaves is not None:
            await asyncio.sleep(leaves)
            writer.write_eof()
    found = b""
    with suppress(ConnectionResetError):  # by a service that left something unread
        while more := await asyncio.wait_for(reader.read(65_536), 10):
            found += more
    writer.close()
    return found


def replies(pieces: Sequence[bytes], pause: float = 0.0, leaves: float | None = None) -> bytes:
    """The same, of a service of its own."""

    async def run() -> bytes:
        async with limited(10, dict.fromkeys(Wait, 60.0), echo) as (port, _):
            return await talk(port, pieces, pause, leaves)

    return asyncio.run(run())


def said(found: bytes) -> list[str]:
    """The answers among replies, and the status of others."""
    parts = found.decode().split("HTTP/1.1 ")[1:]
    return [part[part.index("<") :] if part.startswith("200") else part[:3] for part in parts]


def expected(path: str, size: int, *names: str) -> str:
    return f"<POST {path} {','.join(sorted(['content-length', 'host', *names]))} {size}>"


def test_requests_may_follow_at_once() -> None:
    """Before the first is answered, one by one or together; replies come in their order."""
    every = [request("/slow"), request("/second?x=%20"), request("/third")]
    wanted = [expected(path, 2) for path in ("/slow", "/second", "/third")]
    for pieces, pause in ((every, 0.3), (every, 0.01), ([b"".join(every)], 0.0)):
        assert said(replies(pieces, pause, 0.5)) == wanted


def test_many_requests_and_large_ones_may_follow_at_once() -> None:
    """More than are read at once: none is lost, and the service does not read far ahead."""
    sizes = [0, 3 * PIECE, 0, 300_000, 1] * 40
    every = b"".join(request("/x", body="x" * size) for size in sizes)
    assert said(replies([every], leaves=2.0)) == [expected("/x", size) for size in sizes]
    short = request("/x", body="") * 3000
    assert said(replies([short], leaves=3.0)) == [expected("/x", 0)] * 3000


@settings(max_examples=30)
@given(st.lists(st.integers(1, 400), max_size=6), st.sampled_from(["known", "chunked", "upgrade"]))
def test_pieces_do_not_matter(cuts: list[int], form: str) -> None:
    chunked = "2;x=y\r\n{}\r\n1\r\n \r\n0\r\nAuthorization: late\r\n\r\n"
    one, wanted = {
        "known": (request("/x"), expected("/x", 2)),
        "chunked": (
            raw("POST /x HTTP/1.1", HOST, CHUNKED, body=chunked),
            "<POST /x host,transfer-encoding 3>",
        ),
        "upgrade": (
            request("/x", *UPGRADE),
            expected("/x", 2, "connection", "http2-settings"),
        ),
    }[form]
    whole = request("/first") + one + request("/last")
    marks = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(marks)]
    found = said(replies(pieces, 0.002, 0.05))
    assert found == [expected("/first", 2), wanted, expected("/last", 2)]


MALFORMED = {
    "both lengths": raw("POST / HTTP/1.1", HOST, "Content-Length: 5", CHUNKED, body="0\r\n\r\n"),
    "lengths, chunked first": raw("POST / HTTP/1.1", HOST, CHUNKED, "Content-Length: 5"),
    "two lengths": request("/", "Content-Length: 3"),
    "the same length twice": request("/", "Content-Length: 2"),
    "a list of lengths": raw("POST / HTTP/1.1", HOST, "Content-Length: 2, 2", body="{}"),
    "a length with a sign": raw("POST / HTTP/1.1", HOST, "Content-Length: +2", body="{}"),
    "no number": raw("POST / HTTP/1.1", HOST, "Content-Length: x"),
    "bare line feeds": raw("GET / HTTP/1.1", HOST, end="\n"),
    "one bare line feed": raw("GET / HTTP/1.1", HOST + "\nX: y"),
    "a bare carriage return": raw("GET / HTTP/1.1", HOST, "X: a\rb"),
    "a space before the colon": raw("GET / HTTP/1.1", HOST, "X : y"),
    "a folded header": raw("GET / HTTP/1.1", HOST, "X: y", " z"),
    "a folded first header": raw("GET / HTTP/1.1", " " + HOST),
    "no colon": raw("GET / HTTP/1.1", HOST, "X"),
    "a null": raw("GET / HTTP/1.1", HOST, "X: \x00"),
    "another coding": raw("POST / HTTP/1.1", HOST, "Transfer-Encoding: gzip, chunked"),
    "no final coding": raw("POST / HTTP/1.1", HOST, "Transfer-Encoding: chunked, gzip"),
    "codings twice": raw("POST / HTTP/1.1", HOST, CHUNKED, CHUNKED, body="0\r\n\r\n"),
    "almost chunked": raw("POST / HTTP/1.1", HOST, "Transfer-Encoding: xchunked"),
    "a wrong chunk": raw("POST / HTTP/1.1", HOST, CHUNKED, body="z\r\n"),
    "a chunk longer than said": raw("POST / HTTP/1.1", HOST, CHUNKED, body="1\r\nab\r\n"),
    "chunks with line feeds": raw("POST / HTTP/1.1", HOST, CHUNKED, body="1\na\n0\n\n"),
    "no host": raw("GET / HTTP/1.1"),
    "two hosts": raw("GET / HTTP/1.1", HOST, "Host: elsewhere"),
    "an old version": raw("GET /"),
    "a newer version": raw("GET / HTTP/2.0", HOST),
    "a preface": raw("PRI * HTTP/2.0", "", body="SM\r\n\r\n"),
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00",
    "a tunnel": raw("CONNECT 127.0.0.1:80 HTTP/1.1", HOST),
    "a target that is no path": raw("GET http://elsewhere/ HTTP/1.1", HOST),
    "a space in the target": raw("GET /a b HTTP/1.1", HOST),
    "bytes in the target": raw("GET /\xe9 HTTP/1.1", HOST),
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_malformed_is_refused(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """After the replies to what came before, and nothing behind it is read."""
    two = request("/slow") + request("/x")

    async def run() -> None:
        async with limited(10, dict.fromkeys(Wait, 60.0), echo) as (port, _):
            alone, together, parted = await asyncio.gather(
                talk(port, [sent + request("/")]),
                talk(port, [two + sent + request("/")]),
                talk(port, [two, sent, request("/")], 0.02),
            )
        assert said(alone) == ["400"]
        assert said(together) == [expected("/slow", 2), expected("/x", 2), "400"]
        assert said(parted) == said(together)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert len(caplog.records) == 3
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    "start",
    [
        "GET /",
        f"GET / HTTP/1.1\r\n{HOST}\r\nX: ",
        f"GET / HTTP/1.1\r\n{HOST}\r\nX",
        f"POST / HTTP/1.1\r\n{HOST}\r\n{CHUNKED}\r\n\r\n0\r\nX: ",
        f"POST / HTTP/1.1\r\n{HOST}\r\n{CHUNKED}\r\n\r\n1;",
        "\r\n",
    ],
    ids=["target", "value", "name", "trailer", "extension", "nothing"],
)
def test_a_head_has_a_largest_size(start: str) -> None:
    fill = b"\r\n" if start == "\r\n" else b"x"
    pieces = [start.encode(), fill * 30_000, fill * (LARGEST_HEAD - 29_000)]
    assert said(replies(pieces, 0.05)) == ["431"]


def test_a_head_may_be_large() -> None:
    large = "X: " + "x" * (LARGEST_HEAD - 1000)
    found = said(replies([request("/x", large) * 2], leaves=0.3))
    assert found == [expected("/x", 2, "x")] * 2
    found = said(replies([request("/x", large, *UPGRADE) * 2], leaves=0.3))
    assert found == [expected("/x", 2, "x", "connection", "http2-settings")] * 2


@pytest.mark.parametrize(
    "last",
    [
        request("/x", "Connection: close"),
        request("/x", "Connection: Upgrade, close", "Upgrade: h2c"),
        request("/x", "Connection: Upgrade", "Upgrade: h2c").replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
    ids=["closes", "would upgrade", "would upgrade from an old version"],
)
def test_nothing_is_read_after_the_last_reply(last: bytes) -> None:
    assert said(replies([request("/close") + request("/x")])) == [expected("/close", 2)]
    assert said(replies([last + request("/x")])) == [expected("/x", 2, "connection")]


def test_a_body_may_follow_its_reply() -> None:
    pieces = [request("/early", body="x" * 100_000)[:-60_000], b"x" * 60_000 + request("/x")]
    assert said(replies(pieces, 0.1, 0.2)) == [expected("/early", 0), expected("/x", 2)]


def test_a_request_learns_that_its_caller_left() -> None:
    """Others that follow are never begun."""
    gone.clear()

    async def run() -> None:
        async with limited(10, dict.fromkeys(Wait, 60.0), echo) as (port, _):
            for asked in (request("/left"), request("/left") + request("/x") + request("/y")):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(asked)
                await asyncio.sleep(0.1)
                writer.close()
                await asyncio.sleep(0.1)

    asyncio.run(run())
    assert gone == ["/left http.disconnect"] * 2


def test_a_body_that_breaks_off_is_told() -> None:
    gone.clear()
    pieces = [raw("POST /x HTTP/1.1", HOST, CHUNKED, body="1\r\na\r\n"), b"z"]
    assert said(replies(pieces, 0.1)) == ["400"]
    assert gone == ["/x"]


def test_a_caller_is_told_to_go_on() -> None:
    expecting = request("/x", "Expect: 100-continue")
    found = replies([expecting[:-2], b"{}"], 0.1, 0.1)
    assert found.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")


def test_a_refused_request_gets_no_second_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its body turns out to be malformed while replies before it have not all been sent."""
    made, asked = LimitedProtocol.connection_made, f"GET /early/{'x' * 2000} HTTP/1.1"

    def narrow(self: LimitedProtocol, transport: asyncio.Transport) -> None:
        made(self, transport)
        found = transport.get_extra_info("socket")
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def ask(port: int) -> bytes:
        with socket.socket() as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.settimeout(10)
            caller.connect(("127.0.0.1", port))
            caller.sendall(20 * raw(asked, HOST))
            caller.sendall(raw("POST /early HTTP/1.1", HOST, CHUNKED, body="zz\r\n"))
            time.sleep(0.3)  # until all is answered
            found = b""
            with suppress(ConnectionResetError):
                while more := caller.recv(65_536):
                    found += more
            return found

    async def run() -> None:
        async with limited(10, dict.fromkeys(Wait, 60.0), echo) as (port, _):
            found = said(await asyncio.to_thread(ask, port))
        assert len(found) == 21
        assert found[-1] == "400"

    monkeypatch.setattr(LimitedProtocol, "connection_made", narrow)
    asyncio.run(run())


def test_part_of_a_head_behind_a_request_has_its_time() -> None:
    """It is a request that has begun, not a quiet connection, and its caller is told."""

    async def run() -> None:
        patience = {Wait.HEADERS: 0.3, Wait.BODY: 60.0, Wait.READING: 60.0}
        async with limited(10, patience, echo) as (port, dropped):
            for path in ("/x", "/slow"):
                found = await talk(port, [request(path) + request("/x")[:30]])
                assert said(found) == [expected(path, 2), "408"]
            assert dropped == {"slow: headers": 2}

    asyncio.run(run())


def test_a_quiet_connection_takes_part_of_a_head_for_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What closes a quiet connection does not close one where a head has begun."""
    made = LimitedProtocol.connection_made

    def impatient(self: LimitedProtocol, transport: asyncio.Transport) -> None:
        self.timeout_keep_alive = 0
        made(self, transport)

    monkeypatch.setattr(LimitedProtocol, "connection_made", impatient)
    pieces = [request("/first") + request("/x")[:30], request("/x")[30:]]
    assert said(replies(pieces, 0.3, 0.3)) == [expected("/first", 2), expected("/x", 2)]


def test_the_time_of_a_head_begins_with_it() -> None:
    """Not with the end of the reply before it."""

    async def run() -> None:
        patience = {Wait.HEADERS: 1.5, Wait.BODY: 60.0, Wait.READING: 60.0}
        async with limited(10, patience, echo) as (port, dropped):
            # The server looks once a second.
            pieces = [request("/first"), request("/x")[:30], request("/x")[30:]]
            assert said(await talk(port, pieces, 1.2, 0.3)) == [
                expected("/first", 2),
                expected("/x", 2),
            ]
            assert not dropped

    asyncio.run(run())


def test_a_request_has_a_time_limit_behind_another() -> None:
    """The clock of a later request starts when it is its turn."""

    async def run() -> None:
        patience = {Wait.HEADERS: 60.0, Wait.BODY: 0.3, Wait.READING: 60.0}
        async with limited(10, patience, echo) as (port, dropped):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request("/slow") + request("/x")[:-1])
            found = await asyncio.wait_for(reader.read(), 5)
            assert said(found) == [expected("/slow", 2), "408"]
            assert dropped == {"slow: a body": 1}
            writer.close()

    asyncio.run(run())


def test_a_request_that_waited_in_line_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that a quiet connection has begins anew with it, though it was there already."""
    made = LimitedProtocol.connection_made

    def impatient(self: LimitedProtocol, transport: asyncio.Transport) -> None:
        self.timeout_keep_alive = 0
        made(self, transport)

    monkeypatch.setattr(LimitedProtocol, "connection_made", impatient)
    short = request("/first", "X-Pad: ")
    first = request("/first", "X-Pad: " + "x" * (PIECE - len(short)))
    assert len(first) == PIECE  # so that the second one is read when it is answered
    wanted = [expected("/first", 2, "x-pad"), expected("/slow", 2)]
    assert said(replies([first + request("/slow")], leaves=0.5)) == wanted


class Slow(MemoryStorage):
    """Takes its time for a page of a log."""

    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        time.sleep(0.5)
        return super().read(campaign_id, after, limit)


def test_a_body_that_is_too_large_ends_a_download_in_good_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It has begun: its caller finds it without its end, and the log has no traceback."""
    storage = Slow()
    create(storage)

    async def run() -> bytes:
        app = make_app(storage, largest_request=1000)
        async with limited(10, dict.fromkeys(Wait, 60.0), app) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(raw("GET /api/campaigns/long/data HTTP/1.1", HOST, CHUNKED))
            found = await reader.readuntil(b"\r\n\r\n")
            writer.write(f"7d0\r\n{'x' * 2000}\r\n".encode())
            found += await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return found

    found = asyncio.run(run())
    assert found.startswith(b"HTTP/1.1 200")
    assert not found.endswith(b"0\r\n\r\n")
    assert not any(record.exc_info for record in caplog.records)


async def much(scope: Any, receive: Any, send: Any) -> None:
    """Says more than a connection holds, at once, and closes it."""
    if scope["type"] == "http":
        await receive()
        headers = [(b"content-length", b"20000000"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x" * 20_000_000})


def test_a_last_reply_that_nobody_takes_is_dropped() -> None:
    async def run() -> int:
        patience = {Wait.HEADERS: 60.0, Wait.BODY: 60.0, Wait.READING: 0.3}
        async with limited(10, patience, much) as (port, dropped):
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(request("/"))
            for _ in range(100):
                await asyncio.sleep(0.05)
                if dropped:
                    break
            writer.close()
            return dropped["slow: a reader"]

    assert asyncio.run(run()) == 1


def test_a_head_has_so_many_fields_at_most() -> None:
    most = [f"X-{i}: 1" for i in range(MOST_FIELDS - 2)]  # besides Host and Content-Length
    assert len(said(replies([request("/", *most)], leaves=0.2))) == 1
    assert said(replies([request("/", *most, "X-More: 1")], leaves=0.2)) == ["400"]
