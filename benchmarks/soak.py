"""A service under load for minutes, while services and clients are killed and PostgreSQL restarts.

python -m benchmarks.soak --minutes 10
python -m benchmarks.soak --minutes 10 --storage sqlite

In the end what the clients were told is held against the log. Everything is on loopback, and ends
after the given time.
"""

import argparse
import http.client
import json
import os
import random
import signal
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from tests import postgres
from tests.campaigns.accounts import check
from tests.campaigns.crashing import work
from tests.campaigns.processes import (
    HORIZON,
    NAME,
    POLICY,
    await_service,
    forked,
    service,
    warm_up,
)

from revar.campaigns import Campaign

CLIENTS = 16
LEASE = 2.0  # seconds
EVERY = 1.0  # seconds between two kills, on average
RESTARTED = 20.0  # seconds between two restarts of PostgreSQL
PROBED = 0.25  # seconds between two looks at /health
STOPS = (signal.SIGINT, signal.SIGQUIT)  # in good order, and as in a power failure
MOST_MINUTES = 60.0


class Probe(threading.Thread):
    """Asks for /health all the time, and notes how long that took, or that nobody was there."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.address = f"http://127.0.0.1:{port}/health"
        self.seconds: list[float] = []
        self.nobody = 0
        self.over = threading.Event()

    def run(self) -> None:
        """Until it is over."""
        while not self.over.wait(PROBED):
            began = time.monotonic()
            try:
                with urllib.request.urlopen(self.address, timeout=10) as reply:
                    reply.read()
            except (OSError, http.client.HTTPException):  # it may end between head and body
                self.nobody += 1
            else:
                self.seconds.append(time.monotonic() - began)


def soak(
    storage: str, folder: Path, seconds: float, seed: int, server: postgres.Server | None
) -> dict[str, Any]:
    """The experiment, with notes in `folder`; raises where a promise is broken."""
    draw = random.Random(seed)
    port = postgres.free_port()
    notes, over = folder / "notes.jsonl", folder / "over"
    question: dict[str, Any] = {"policy": POLICY, "horizon": HORIZON, "episodes": 10**6}
    made = Campaign.create(storage, NAME, seed=seed, lease=LEASE, **question)
    made.storage.close()
    warm_up()

    def client(number: int) -> Callable[[], None]:
        return lambda: work(port, notes, folder / f"left-{number}.json", over)

    jobs = {"service": service(storage, port), **{f"client {i}": client(i) for i in range(CLIENTS)}}
    alive = {name: forked(job) for name, job in jobs.items()}
    probe = Probe(port)
    blows: Counter[str] = Counter()
    began = time.monotonic()
    try:
        await_service(port)
        probe.start()
        while time.monotonic() - began < seconds:
            time.sleep(draw.expovariate(1 / EVERY))
            due = time.monotonic() - began > (blows["PostgreSQL"] + 1) * RESTARTED
            if server is not None and due:
                server.stop(STOPS[blows["PostgreSQL"] % len(STOPS)])
                time.sleep(draw.random())
                server.start()
                blows["PostgreSQL"] += 1
                continue
            name = "service" if draw.random() < 0.2 else draw.choice(sorted(alive))
            os.kill(alive[name], signal.SIGKILL)
            _, status = os.waitpid(alive[name], 0)
            if os.WIFEXITED(status):
                raise AssertionError(f"{name} had ended by itself after {blows}")
            blows[name.partition(" ")[0]] += 1
            alive[name] = forked(jobs[name])
        probe.over.set()
        elapsed = time.monotonic() - began
        _end(port, alive, over)
    finally:
        for process in alive.values():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    found = check(storage, notes, complete=False)
    return {
        "seconds": round(elapsed, 1),
        "clients": CLIENTS,
        "blows": dict(blows),
        "requests_a_second": round(found["acknowledged"] / elapsed, 1),
        "health_p99": round(float(np.percentile(probe.seconds, 99)), 4),
        "health_slowest": round(max(probe.seconds), 4),
        "health_without_service": probe.nobody,
        **found,
    }


def _end(port: int, alive: dict[str, int], over: Path) -> None:
    """Close the campaign, and let the clients find out."""
    await_service(port)
    over.touch()
    address = f"http://127.0.0.1:{port}/api/campaigns/{NAME}/close"
    body = urllib.request.Request(address, b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(body, timeout=30) as reply:
        reply.read()
    for name in [name for name in alive if name != "service"]:
        _, status = os.waitpid(alive.pop(name), 0)
        if os.waitstatus_to_exitcode(status) != 0:
            raise AssertionError(f"{name} failed")


def main() -> None:
    """Run it, and print what came of it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--storage", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if not 0 < asked.minutes <= MOST_MINUTES:
        parser.error(f"--minutes must lie above 0 and be at most {MOST_MINUTES:g}")
    with tempfile.TemporaryDirectory(prefix="revar-soak-") as folder, ExitStack() as stack:
        server, storage = None, f"sqlite:///{folder}/soak.db"
        if asked.storage == "postgres":
            programs = postgres.binaries()
            if programs is None:
                parser.error("there is no PostgreSQL server on this machine")
            server = stack.enter_context(postgres.running(programs))
            storage = postgres.create_database(server.address, "soak")
        found = soak(storage, Path(folder), 60 * asked.minutes, asked.seed, server)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
