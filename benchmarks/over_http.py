"""What callers of a service meet: the first byte of a long download, and acts while plans are made.

python -m benchmarks.over_http [--steps 1000000] [--seconds 60]

The service runs in a process of its own, on loopback, with a SQLite file.
"""

import argparse
import asyncio
import json
import random
import re
import tempfile
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import numpy as np

from benchmarks import long_log
from benchmarks.load import Ask, Connection
from benchmarks.service import started
from revar.campaigns import Campaign, SQLiteStorage
from revar.campaigns.events import Acted, Rewarded, Started, encode_event

CALLERS = 8
STATES, HORIZON, ACTIONS = 2_688, 100, 10
FILLED = 60  # episodes that are in the log before
LOOK = 0.02  # seconds between two looks for plans
Spans = list[tuple[float, float]]


class Crowd(threading.Thread):
    """Callers that play episodes; when each act was asked for, and how long it took."""

    def __init__(self, port: int, campaign: str, states: int, steps: int) -> None:
        super().__init__(daemon=True)
        self.acts: list[tuple[float, float]] = []
        self.over = False
        self._port, self._path = port, f"/api/campaigns/{campaign}/episodes"
        self._states, self._steps = states, steps

    def run(self) -> None:
        """Until it is over."""
        asyncio.run(self._all())

    async def _all(self) -> None:
        await asyncio.gather(*(self._call(number) for number in range(CALLERS)))

    async def _call(self, number: int) -> None:
        async with Connection(self._port, []) as connection:
            async for _ in self._play(connection.ask, random.Random(number)):
                if self.over:
                    return

    async def _play(self, ask: Ask, draw: random.Random) -> AsyncIterator[None]:
        while True:
            episode = (await ask(self._path, {}))["episode"]
            state = draw.randrange(self._states)
            for step in range(self._steps):
                began = time.perf_counter()
                await ask(f"{self._path}/{episode}/act", {"step": step, "state": state})
                self.acts.append((began, time.perf_counter() - began))
                yield
                state = draw.randrange(self._states)
                told = {"step": step, "reward": draw.gauss(0.0, 1.0), "next_state": state}
                await ask(f"{self._path}/{episode}/reward", told)
                yield

    def seconds(self, spans: Spans) -> np.ndarray:
        """How long acts took that were asked for, or answered, within these times."""
        return np.array(
            [
                took
                for began, took in self.acts
                if any(first <= began + took and began <= last for first, last in spans)
            ]
        )


def get(port: int, path: str) -> bytes:
    """The body of a reply."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=600) as reply:
        body: bytes = reply.read()
        return body


def download(steps: int, folder: Path) -> None:
    """The whole campaign, while others play."""
    path = folder / "long.db"
    long_log.write(path, steps)
    with SQLiteStorage(path) as storage:
        policy = {state: [0.5, 0.5] for state in range(4)}
        Campaign.create(
            storage, "live", policy=policy, horizon=4, episodes=10**6, strategy="on-policy", seed=1
        )
    with started("-m", "revar", "serve", "--storage", f"sqlite:///{path}", "--port", "0") as port:
        began = time.perf_counter()
        get(port, "/api/campaigns/long")
        print(f"status of {steps:,} steps, without a snapshot: {time.perf_counter() - began:.1f} s")
        crowd = Crowd(port, "live", 4, 4)
        crowd.start()
        time.sleep(8.0)
        first = time.perf_counter()
        address = f"http://127.0.0.1:{port}/api/campaigns/long/data?format=jsonl"
        with urllib.request.urlopen(address, timeout=600) as reply:
            size = len(reply.read(1))
            byte = time.perf_counter() - first
            while piece := reply.read(2**16):
                size += len(piece)
        last = time.perf_counter()
        crowd.over = True
        crowd.join()
    before, during = (crowd.seconds([span]) for span in ((first - 6.0, first), (first, last)))
    print(f"first byte after {byte:.3f} s, {size / 1e6:.0f} MB in {last - first:.1f} s")
    print(f"acts a second: {len(before) / 6.0:.0f} before, {len(during) / (last - first):.0f} then")
    print(f"their p99: {describe(before)} before, {describe(during)} then")


def filling() -> Iterator[bytes]:
    """Events of episodes that have been in every state."""
    draw = random.Random(1)
    places = [number % STATES for number in range(FILLED * HORIZON + 1)]
    draw.shuffle(places)
    for number in range(FILLED):
        name = f"{number:032x}"
        yield encode_event(Started(name))
        for step in range(HORIZON):
            here, there = places[number * HORIZON + step :][:2]
            state, following = (msgspec.Raw(str(each).encode()) for each in (here, there))
            yield encode_event(Acted(name, step, state, draw.randrange(ACTIONS)))
            yield encode_event(Rewarded(name, step, draw.gauss(0.0, 1.0), following))


def plans(seconds: float, folder: Path) -> None:
    """Acts while plans for many states are made, beside acts at other times."""
    path = folder / "plans.db"
    with SQLiteStorage(path) as storage:
        policy = np.random.default_rng(0).dirichlet(np.ones(ACTIONS), STATES)
        campaign = Campaign.create(
            storage, "large", policy=policy, horizon=HORIZON, episodes=10**5, seed=1
        )
        storage.append(campaign.id, list(filling()))
    with started("-m", "revar", "serve", "--storage", f"sqlite:///{path}", "--port", "0") as port:
        get(port, "/api/campaigns/large")
        crowd = Crowd(port, "large", STATES, HORIZON)
        crowd.start()
        time.sleep(5.0)
        began, made = time.perf_counter(), _plans(port)
        spans: Spans = []
        while time.perf_counter() < began + seconds:
            time.sleep(LOOK)
            now, (number, sum_) = time.perf_counter(), _plans(port)
            if number > made[0]:
                spans.append((now - LOOK - (sum_ - made[1]), now))
                made = number, sum_
        ends = time.perf_counter()
        crowd.over = True
        crowd.join()
        status = json.loads(get(port, "/api/campaigns/large"))
    inside = [(max(began, first), last) for first, last in spans]
    edges = [began, *(edge for span in inside for edge in span), ends]
    usual = crowd.seconds(list(zip(edges[::2], edges[1::2], strict=True)))
    during = crowd.seconds(inside)
    print(f"{status['steps']:,} steps, {len(spans)} plans of {STATES:,} x {HORIZON} x {ACTIONS},")
    print("  in " + ", ".join(f"{last - first:.1f}" for first, last in spans) + " s")
    print(f"p99 of acts: usually {describe(usual)}, while one is made {describe(during)}")
    if len(during):
        print(f"ratio {np.quantile(during, 0.99) / np.quantile(usual, 0.99):.2f}")


def _plans(port: int) -> tuple[float, float]:
    """How many plans were made in the background, and in how many seconds."""
    text = get(port, "/metrics").decode()
    number, sum_ = (
        float(re.findall(rf"^revar_plan_seconds_{name} (\S+)", text, re.M)[0])
        for name in ("count", "sum")
    )
    return number, sum_


def describe(times: np.ndarray) -> str:
    """The 99th percentile of some times."""
    if len(times) == 0:
        return "none"
    return f"{1e3 * np.quantile(times, 0.99):.1f} ms of {len(times):,}"


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if given.steps:
            download(given.steps, Path(name))
        if given.seconds:
            plans(given.seconds, Path(name))


if __name__ == "__main__":
    main()
