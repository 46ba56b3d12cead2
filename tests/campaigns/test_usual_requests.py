"""Requests of the usual form: what is read without h11, h11 reads alike, and replies are its."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from revar.campaigns.service.connections import Wait
from revar.campaigns.service.usual_requests import LONGEST, read_usual
from tests.campaigns.test_slow_callers import limited

LINES = ["POST /act HTTP/1.1", "POST /a%20b?x=1 HTTP/1.1", "POST / HTTP/1.0", "GET / HTTP/1.1"]
ODD_LINES = ["POST  / HTTP/1.1", "POST act HTTP/1.1", "POST /\t HTTP/1.1", "post / HTTP/1.1", ""]
HOST, LENGTH = "Host: 127.0.0.1", "Content-Length: 2"
FIELDS = [HOST, LENGTH, "content-length:2", "Content-Length: 02", "Accept: */*", "X-Empty:"]
FRAMING = ["Content-Length: +2", "Content-Length: 2, 2", "Transfer-Encoding: chunked", "TE: gzip"]
OF_CONNECTION = ["Connection: keep-alive", "Connection: close", "Connection: upgrade"]
ODD_FIELDS = [
    *("Upgrade: websocket", "Expect: 100-continue", "Host : x", " folded", "X: a\tb", "X: \x00"),
    *("X: trailing ", "X:  two", "X_Y: 1", "Content-Length : 2", "X: \xe9", "no colon", "X: a\rb"),
]
request = st.tuples(
    st.sampled_from(LINES * 8 + ODD_LINES),
    st.lists(st.sampled_from(FIELDS * 4 + FRAMING + OF_CONNECTION + ODD_FIELDS), max_size=4),
    st.lists(st.sampled_from([HOST, LENGTH]), max_size=2),
    st.sampled_from(["\r\n"] * 20 + ["\n", "\r"]),
    st.sampled_from(["{}"] * 8 + ["", "{", "{}{}", "{}POST / HTTP/1.1\r\n\r\n"]),
)


@given(request)
@example(("POST /act HTTP/1.1", [], [HOST, LENGTH], "\r\n", "{}"))
@example(("POST /act HTTP/1.1", [OF_CONNECTION[0]], [HOST, LENGTH], "\r\n", "{}"))
def test_what_is_read_is_what_h11_reads(made: tuple[str, list[str], list[str], str, str]) -> None:
    line, some, others, end, body = made
    data = end.join((line, *some, *others, "", body)).encode("latin-1")
    found = read_usual(data)
    if found is None:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    read = connection.next_event()
    assert isinstance(read, h11.Request)
    assert (read.method, read.http_version, read.target) == (b"POST", b"1.1", found.target)
    assert list(read.headers) == found.headers
    got = b""
    while isinstance(event := connection.next_event(), h11.Data):
        got += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert got == found.body
    assert connection.trailing_data == (b"", False)
    assert connection.their_state is h11.DONE  # it goes on after that
    assert not connection.they_are_waiting_for_100_continue


def usual(path: str, *fields: str, body: str = "{}") -> bytes:
    """A request that is one."""
    head = (f"POST {path} HTTP/1.1", HOST, f"Content-Length: {len(body)}", *fields)
    return "\r\n".join((*head, "", body)).encode()


def test_only_the_usual_is_read() -> None:
    assert read_usual(usual("/act")) is not None
    assert read_usual(usual("/act", body="x" * LONGEST)) is None
    for field in (*FRAMING, *OF_CONNECTION[1:], *ODD_FIELDS[:5], HOST, LENGTH):
        assert read_usual(usual("/act", field)) is None, field


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Says what it was asked, in the way that the path names."""
    if scope["type"] != "http":
        return
    body = (await receive())["body"]
    path = scope["path"]
    if path == "/slow":
        await asyncio.sleep(0.2)
    said = repr([scope[name] for name in ("method", "path", "raw_path", "query_string")]).encode()
    said += body
    headers = [(b"content-length", str(len(said)).encode())]
    if path == "/close":
        headers.append((b"Connection", b"close"))
    if path == "/unknown":
        headers = []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if path == "/broken":
        raise RuntimeError
    await send({"type": "http.response.body", "body": said})


def replies(pieces: Sequence[bytes], pause: float) -> bytes:
    """What a caller gets who sends so much at a time, and then no more."""

    async def run() -> bytes:
        async with limited(10, dict.fromkeys(Wait, 60.0), echo) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(pause)
            await asyncio.sleep(0.3)
            with suppress(OSError):  # it may have ended already
                writer.write_eof()
            found = await asyncio.wait_for(reader.read(), 5)
            writer.close()
            return b"\r\n".join(
                line for line in found.split(b"\r\n") if not line.startswith(b"date:")
            )

    return asyncio.run(run())


@pytest.mark.parametrize("path", ["/act", "/a%20b?x=%20", "/close", "/slow", "/broken"])
def test_replies_are_those_of_h11(path: str) -> None:
    """It gets the same request in two pieces, behind one that arrives whole."""
    whole = [usual("/first"), usual(path)]
    parted = [whole[0], whole[1][:20], whole[1][20:]]
    assert replies(whole, 0.1) == replies(parted, 0.1)


def test_requests_may_follow_at_once() -> None:
    """Before the first is answered, one by one or together."""
    all_of_them = [usual("/slow"), usual("/second"), usual("/third")]
    expected = replies(all_of_them, 0.3)
    assert expected.count(b"HTTP/1.1 200") == 3
    assert replies(all_of_them, 0.01) == replies([b"".join(all_of_them)], 0.0) == expected


def test_a_reply_of_unknown_length_ends_with_its_connection() -> None:
    found = replies([usual("/unknown")], 0.1)
    assert found.count(b"HTTP/1.1") == 1
    assert b"connection: close\r\n\r\n['POST'" in found
