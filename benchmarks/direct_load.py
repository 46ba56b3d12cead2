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

import numpy as np

from benchmarks.load import Load
from benchmarks.service import BODY, HORIZON, create
from revar.campaigns import Campaign, MemoryStorage

SETTLING = 1.0  # seconds in which all have started


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
    import psycopg  # noqa: PLC0415

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


def measured(what: str, address: str, begin: float, end: float) -> list[float]:
    """How long each call took that began between the two times."""
    campaign = what == "campaign"
    working = calls_of(Campaign.open(address, "bench")) if campaign else commits(address)
    taken = []
    while (before := time.monotonic()) < end:
        next(working)
        if before >= begin:
            taken.append(time.monotonic() - before)
    return taken


def main() -> None:
    """Fork the workers, and put together what they met."""
    address, what, workers, seconds = sys.argv[1:]
    if what == "commits":
        import psycopg  # noqa: PLC0415

        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS bare (position BIGSERIAL, body BYTEA)")
    else:
        warm_up()
    begin = time.monotonic() + SETTLING
    end = begin + float(seconds)
    with multiprocessing.get_context("fork").Pool(int(workers)) as pool:
        asked = [(what, address, begin, end)] * int(workers)
        met = np.concatenate(pool.starmap(measured, asked, chunksize=1))
    load = Load((end - begin) / len(met), *np.percentile(met, [50, 99]).tolist())
    print(json.dumps(asdict(load)))


if __name__ == "__main__":
    main()
