"""Load on a storage: many processes that each hold its address, for so many seconds.

    python -m benchmarks.direct_load postgresql://... campaign 16 2

With "commits" in the place of "campaign" they only insert a row each, as a measure. Prints the load
as JSON.
"""

import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from typing import TypeAlias

import numpy as np

from benchmarks.load import Load
from benchmarks.service import BODY, HORIZON, create
from revar.campaigns import Campaign, MemoryStorage

Met: TypeAlias = "SimpleQueue[list[float]]"


def calls_of(campaign: Campaign) -> Iterator[None]:
    """A worker: starts episodes, acts, reports; one call at a time."""
    while True:
        episode = campaign.start_episode()
        yield
        for step in range(HORIZON):
            action = episode.act(step)
            yield
            episode.reward(action + 0.5, step + 1)
            yield


def commits(address: str) -> Iterator[None]:
    """One row and one durable commit after the other."""
    import psycopg  # noqa: PLC0415 - only where PostgreSQL is measured

    with psycopg.connect(address, autocommit=True) as connection:
        while True:
            connection.execute("INSERT INTO bare (body) VALUES (%s)", (BODY,))
            yield


def warm_up() -> None:
    """Load compiled code before the workers are forked."""
    with MemoryStorage() as storage:
        create(storage)
        for _ in zip(calls_of(Campaign.open(storage, "bench")), range(50), strict=False):
            pass


def measured(what: str, address: str, seconds: float, together: Barrier, met: Met) -> None:
    """Work for so long, beginning when all are ready; hands over how long each call took."""
    campaign = what == "campaign"
    working = calls_of(Campaign.open(address, "bench")) if campaign else commits(address)
    next(working)
    together.wait()
    taken = []
    end = time.monotonic() + seconds
    while (before := time.monotonic()) < end:
        next(working)
        taken.append(time.monotonic() - before)
    met.put(taken)


def main() -> None:
    """Fork the workers, and put together what they met."""
    address, what, workers, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    if what == "commits":
        import psycopg  # noqa: PLC0415 - only where PostgreSQL is measured

        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS bare (position BIGSERIAL, body BYTEA)")
    else:
        warm_up()
    forking = multiprocessing.get_context("fork")
    together, met = forking.Barrier(workers), forking.SimpleQueue()
    asked = (what, address, seconds, together, met)
    processes = [forking.Process(target=measured, args=asked) for _ in range(workers)]
    for process in processes:
        process.start()
    times = [taken for _ in processes for taken in met.get()]
    for process in processes:
        process.join()
    load = Load(seconds / len(times), *np.percentile(times, [50, 99]).tolist())
    print(json.dumps(asdict(load)))


if __name__ == "__main__":
    main()
