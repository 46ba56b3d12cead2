"""A campaign whose service and workers are killed again and again, and what is left of it.

python -m tests.campaigns.crashing sqlite --kills 200 --episodes 1500
python -m tests.campaigns.crashing postgres --kills 200 --episodes 1500
"""

import argparse
import json
import os
import random
import signal
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from revar.campaigns import Campaign
from tests.campaigns.accounts import check
from tests.campaigns.processes import (
    HORIZON,
    NAME,
    POLICY,
    Caller,
    Notes,
    await_service,
    forked,
    play,
    service,
    warm_up,
)
from tests.postgres import binaries, database, free_port, server

LEASE = 0.4  # seconds
WORKERS = 4


def work(port: int, notes_path: Path, left: Path, over: Path) -> None:
    """A worker: goes on with the episode it left when it was killed, or leaves it to its lease.

    It ends when the budget is spent and the killing is over, which a file says.
    """
    caller = Caller(port, Notes(notes_path))
    if left.exists() and random.random() < 0.5:
        play(caller, json.loads(left.read_text()))
    while True:
        episode = {"id": uuid.uuid4().hex, "step": 0, "state": "a"}
        status, answer = caller.post("/episodes", {"episode": episode["id"]})
        if status == 409:
            if answer["error"]["code"] == "budget-spent" and over.exists():
                return
            time.sleep(0.02)
            continue
        assert status in (200, 201), answer
        play(caller, episode, left)


def crash(
    storage: str, folder: Path, kills: int, episodes: int, every: float, seed: int
) -> dict[str, Any]:
    """The experiment, with notes in `folder`; raises where the promise is broken."""
    draw = random.Random(seed)
    port = free_port()
    notes, over = folder / "notes.jsonl", folder / "over"
    campaign = Campaign.create(
        storage, NAME, policy=POLICY, horizon=HORIZON, episodes=episodes, seed=seed, lease=LEASE
    )
    campaign.storage.close()
    warm_up()

    def worker(number: int) -> Callable[[], None]:
        return lambda: work(port, notes, folder / f"left-{number}.json", over)

    jobs = {"service": service(storage, port), **{f"worker {i}": worker(i) for i in range(WORKERS)}}
    began = time.monotonic()
    alive = {name: forked(job) for name, job in jobs.items()}
    killed: Counter[str] = Counter()
    try:
        while sum(killed.values()) < kills:
            if draw.random() < 0.9:  # now and then a service is killed before it has started
                await_service(port)
            time.sleep(draw.expovariate(1 / every))
            name = draw.choice(["service", *sorted(alive)])
            process = alive.pop(name)
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            if os.WIFEXITED(status):
                code = os.waitstatus_to_exitcode(status)
                raise AssertionError(f"{name} ended by itself ({code}) after {killed}")
            killed[name.partition(" ")[0]] += 1
            alive[name] = forked(jobs[name])
        at_kills = time.monotonic() - began
        over.touch()
        for name in [name for name in alive if name != "service"]:
            _, status = os.waitpid(alive.pop(name), 0)
            if os.waitstatus_to_exitcode(status) != 0:
                raise AssertionError(f"{name} failed")
    finally:
        for process in alive.values():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    found = check(storage, notes)
    return {
        **found,
        "killed": dict(killed),
        "seconds_of_killing": round(at_kills, 1),
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("storage", help="an address, or sqlite or postgres for a new one")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=1500)
    parser.add_argument("--every", type=float, default=0.05, help="mean seconds between kills")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="revar-crash-") as folder, ExitStack() as stack:
        storage = asked.storage
        if storage == "sqlite":
            storage = f"sqlite:///{folder}/crash.db"
        elif storage == "postgres":
            programs = binaries()
            if programs is None:
                parser.error("there is no PostgreSQL server on this machine")
            storage = stack.enter_context(database(stack.enter_context(server(programs)), "crash"))
        found = crash(storage, Path(folder), asked.kills, asked.episodes, asked.every, asked.seed)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
