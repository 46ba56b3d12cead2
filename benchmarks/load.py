"""Load on a service: many callers at once, each waiting for its answer before it asks again."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Ask = Callable[[str, Any], Awaitable[Any]]
Caller = Callable[[Ask], AsyncIterator[None]]  # yields after every request


@dataclass(frozen=True)
class Load:
    """What callers met: seconds for a request by the wall clock, and until it was answered."""

    seconds: float  # a request, all callers together
    p50: float
    p99: float


class Connection:
    """A connection that speaks just enough HTTP to cost little itself."""

    def __init__(self, port: int, latencies: list[float]) -> None:
        self._port, self._latencies = port, latencies

    async def __aenter__(self) -> "Connection":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *problem: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def ask(self, path: str, body: Any) -> Any:
        """POST the body as JSON; the reply's JSON."""
        text = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\n\r\n"
        )
        began = time.perf_counter()
        self._writer.write(head.encode() + text)
        reply = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(reply.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = json.loads(await self._reader.readexactly(length))
        self._latencies.append(time.perf_counter() - began)
        if not reply.startswith(b"http/1.1 2"):
            raise RuntimeError(f"{path}: {answer}")
        return answer


async def _call(port: int, caller: Caller, until: float, latencies: list[float]) -> None:
    async with Connection(port, latencies) as connection:
        async for _ in caller(connection.ask):
            if time.perf_counter() > until:
                return


def loaded(port: int, caller: Caller, callers: int, seconds: float) -> Load:
    """So many callers for so long; the first fifth does not count."""

    async def all_of_them() -> tuple[int, float, list[float]]:
        warm: list[float] = []
        await asyncio.gather(
            *(_call(port, caller, time.perf_counter() + seconds / 5, warm) for _ in range(callers))
        )
        latencies: list[float] = []
        began = time.perf_counter()
        await asyncio.gather(
            *(_call(port, caller, began + seconds, latencies) for _ in range(callers))
        )
        return len(latencies), time.perf_counter() - began, latencies

    count, elapsed, latencies = asyncio.run(all_of_them())
    return Load(
        elapsed / count, float(np.percentile(latencies, 50)), float(np.percentile(latencies, 99))
    )
