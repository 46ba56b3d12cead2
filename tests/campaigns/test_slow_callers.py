"""Callers that speak slowly, or not at all: they never hold up anybody else."""

import asyncio
import resource
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from revar.campaigns.service.app import listen
from revar.campaigns.service.connections import RESERVED_FILES, Connections, LimitedServer
from revar.campaigns.service.protocol import Wait
from tests.campaigns.serving import PROGRAM, call, serving

SLOW = 1100
FILES = 1024
SECONDS = 3.0  # for which they are there
HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
QUESTION = {"name": "ads", "actions": 2, "horizon": 1, "episodes": 5}
BODY = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\ntok"


@contextmanager
def enough_files(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(count, hard)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_slow_callers_than_the_system_has_files(tmp_path: Path) -> None:
    """Half of them stop amid the headers, half amid the body."""
    log: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(enough_files(SLOW + 400))
        service = stack.enter_context(serving(f"sqlite:///{tmp_path}/slow.db", files=FILES))
        reader = threading.Thread(target=lambda: log.extend(service.process.stderr or ()))
        reader.start()
        waited = []

        def ask() -> None:
            before = time.monotonic()
            assert call(service.address, "/health") == (200, {"status": "ok"})
            waited.append(time.monotonic() - before)

        for number in range(SLOW):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 5))
            slow.sendall(BODY if number % 2 else HEAD)
            if number % 100 == 0:
                ask()
        began = time.monotonic()
        while time.monotonic() - began < SECONDS:
            ask()
            time.sleep(0.1)
        assert call(service.address, "/api/campaigns", QUESTION)[0] == 201
        service.process.terminate()
        service.process.wait(timeout=30)
        reader.join(timeout=5)
        service.stop()
    assert max(waited) < 1.0
    assert sum(map(len, log)) < 20_000


def test_a_system_with_too_few_files_is_told_at_the_start(tmp_path: Path) -> None:
    """It would have no connection left for anybody."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({RESERVED_FILES},) * 2)"
    serve = ["serve", "--storage", f"sqlite:///{tmp_path}/few.db", "--port", "0"]
    done = subprocess.run(
        [sys.executable, "-c", f"{limit}; {PROGRAM}", *serve],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"the system allows {RESERVED_FILES} open files, and a service needs more" in done.stderr


@asynccontextmanager
async def limited(
    most: int, patience: dict[Wait, float], app: Callable[..., Awaitable[None]]
) -> AsyncIterator[tuple[int, Counter[str]]]:
    """A server in this process: its port, and why it dropped connections."""
    dropped: Counter[str] = Counter()
    connections = Connections(most, lambda why: dropped.update([why]), patience)
    with listen("127.0.0.1", 0) as listener:
        server = LimitedServer(app, connections, 1)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1], dropped
        finally:
            server.should_exit = True
            await running


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body, and answers; at /large with more than a connection holds."""
    if scope["type"] != "http":
        return
    while (message := await receive())["type"] == "http.request" and message.get("more_body"):
        pass
    if message["type"] == "http.disconnect":
        return
    if scope["path"] == "/long":
        await asyncio.sleep(1.5)
    size = 10**8 if scope["path"] == "/large" else 2
    length = (b"content-length", str(size).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": b"x" * size})


SHORT = {Wait.HEADERS: 0.3, Wait.BODY: 0.3, Wait.READING: 0.3}
REQUEST = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "reason"),
    [(HEAD, "slow: headers"), (b"", "slow: headers"), (BODY, "slow: a body")],
    ids=["part of the headers", "nothing", "part of the body"],
)
def test_a_request_has_a_time_limit(sent: bytes, reason: str) -> None:
    async def run() -> None:
        async with limited(10, SHORT, answer) as (port, dropped):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            reply = await asyncio.wait_for(reader.read(), 5)
            assert reply.startswith(b"HTTP/1.1 408 ")
            assert dropped == {reason: 1}
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sent", "reason"),
    [(HEAD, "slow: headers"), (BODY, "slow: a body")],
    ids=["headers", "body"],
)
def test_a_request_that_trickles_in_has_no_more_time(sent: bytes, reason: str) -> None:
    async def run() -> None:
        async with limited(10, SHORT, answer) as (port, dropped):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            for _ in range(90):  # fewer than the body is to have
                writer.write(b"x")
                await asyncio.sleep(0.05)
                if dropped:
                    break
            assert dropped == {reason: 1}
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
            writer.close()

    asyncio.run(run())


def test_a_reply_that_nobody_reads_has_a_time_limit() -> None:
    async def run() -> None:
        async with limited(10, SHORT, answer) as (port, dropped):
            with socket.create_connection(("127.0.0.1", port)) as deaf:
                deaf.sendall(b"GET /large" + REQUEST)
                for _ in range(50):
                    await asyncio.sleep(0.1)
                    if dropped:
                        break
                assert dropped == {"slow: a reader": 1}

    asyncio.run(run())


def test_work_under_way_has_no_time_limit_and_is_not_dropped() -> None:
    """Where all connections are at work a new one is refused, and says so."""

    async def run() -> None:
        async with limited(2, SHORT, answer) as (port, dropped):
            busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for _, writer in busy:
                writer.write(b"GET /long" + REQUEST)
            await asyncio.sleep(0.2)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert b"503 Service Unavailable" in await reader.read()
            writer.close()
            assert dropped == {"refused": 1}
            for reader, writer in busy:
                assert (await reader.readuntil(b"xx")).startswith(b"HTTP/1.1 200")
                writer.close()

    asyncio.run(run())


def test_the_one_waited_for_longest_makes_room() -> None:
    async def run() -> None:
        async with limited(3, dict.fromkeys(Wait, 60.0), answer) as (port, dropped):
            slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            for _, writer in slow:
                writer.write(HEAD)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /" + REQUEST)
            assert (await reader.readuntil(b"xx")).startswith(b"HTTP/1.1 200")
            assert (await slow[0][0].read()).startswith(b"HTTP/1.1 408")
            assert dropped == {"for another": 1}
            slow[1][1].write(b"\r\n")  # it only took its time
            assert (await slow[1][0].readuntil(b"xx")).startswith(b"HTTP/1.1 200")
            for _, each in [*slow, (reader, writer)]:
                each.close()

    asyncio.run(run())
