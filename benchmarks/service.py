"""Ratios of campaigns: a request to the service beside a bare endpoint and a bare commit, workers
on PostgreSQL itself beside bare commits, and opening with a snapshot beside reading the log.
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import msgspec
import numpy as np
from tests import postgres

from benchmarks.load import Ask, Load, loaded
from benchmarks.registry import Cost, NotMeasuredError, Ratio, benchmark
from revar.campaigns import Campaign, SQLiteStorage, Storage
from revar.campaigns.events import Acted, Rewarded, Started, encode_event

CALLERS, SECONDS, ROUNDS = 16, 2.0, 5
DIRECT_ROUNDS = 3
HORIZON = 4
BODY = b'{"type":"rewarded","episode":"' + b"0" * 32 + b'","step":0,"reward":0.5,"next_state":1}'


async def decisions(ask: Ask) -> AsyncIterator[None]:
    """A worker: starts episodes, acts, reports."""
    while True:
        episode = (await ask("/api/campaigns/bench/episodes", {}))["episode"]
        yield
        for step in range(HORIZON):
            path = f"/api/campaigns/bench/episodes/{episode}"
            action = (await ask(f"{path}/act", {"step": step, "state": step}))["action"]
            yield
            told = {"step": step, "reward": action + 0.5, "next_state": step + 1}
            await ask(f"{path}/reward", told)
            yield


async def echoes(ask: Ask) -> AsyncIterator[None]:
    """The same requests to an endpoint that only answers."""
    for number in count():
        await ask("/api/echo", {"step": number % HORIZON, "reward": 0.5, "next_state": number})
        yield


@contextmanager
def started(*arguments: str) -> Iterator[int]:
    """A server in a process of its own, from the program's arguments; its port."""
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().strip().rpartition(":")[2])
        finally:
            process.terminate()


def commits_of_sqlite(folder: Path) -> Load:
    """One row and one durable commit after the other."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS events (position INTEGER PRIMARY KEY, body BLOB)"
    )
    load = _timed(lambda: connection.execute("INSERT INTO events (body) VALUES (?)", (BODY,)))
    connection.close()
    return load


def commits_of_postgres(address: str) -> Load:
    """The same on a connection to PostgreSQL."""
    import psycopg  # noqa: PLC0415 - only where PostgreSQL is measured

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare (position BIGSERIAL, body BYTEA)")
        return _timed(lambda: connection.execute("INSERT INTO bare (body) VALUES (%s)", (BODY,)))


def _timed(commit: object) -> Load:
    assert callable(commit)
    times = []
    began = time.perf_counter()
    while time.perf_counter() - began < SECONDS / 4:
        before = time.perf_counter()
        commit()
        times.append(time.perf_counter() - before)
    return Load(
        float(np.mean(times)), float(np.percentile(times, 50)), float(np.percentile(times, 99))
    )


def middle(rounds: list[tuple[float, float]]) -> tuple[float, float]:
    """The round with the middle ratio: both sides of one round met the same neighbours."""
    return sorted(rounds, key=lambda sides: sides[0] / sides[1])[len(rounds) // 2]


@cache
def measured(storage: str) -> list[tuple[Load, Load, Load]]:
    """The service, the bare endpoint and the bare commit, in several rounds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if storage == "sqlite":
            return _rounds(f"sqlite:///{folder}/bench.db", lambda: commits_of_sqlite(folder))
        with database() as address:
            return _rounds(address, lambda: commits_of_postgres(address))


@contextmanager
def database() -> Iterator[str]:
    """A new database of a PostgreSQL server of our own, on loopback; its address."""
    programs = postgres.binaries()
    if programs is None:
        raise NotMeasuredError("there is no PostgreSQL server on this machine")
    with postgres.server(programs) as server, postgres.database(server, "bench") as address:
        yield address


def create(storage: Storage | str) -> None:
    """The campaign that all measurements use."""
    made = Campaign.create(
        storage,
        "bench",
        policy=np.full((HORIZON, 2), 0.5),
        horizon=HORIZON,
        episodes=10**8,
        seed=1,
    )
    if isinstance(storage, str):
        made.storage.close()


def _rounds(address: str, commits: object) -> list[tuple[Load, Load, Load]]:
    assert callable(commits)
    create(address)
    serve = ["-c", "from revar.cli.main import main; main()", "serve", "--port", "0"]
    with (
        started(*serve, "--storage", address) as port,
        started("-m", "benchmarks.bare_service") as bare_port,
    ):
        rounds = []
        for _ in range(ROUNDS):
            bare, commit = loaded(bare_port, echoes, CALLERS, SECONDS), commits()
            rounds.append((loaded(port, decisions, CALLERS, SECONDS), bare, commit))
    return rounds


def compared(storage: str, name: str, field: str) -> Ratio:
    """One of the numbers against the sum of the bare ones."""
    rounds = [[getattr(load, field) for load in loads] for loads in measured(storage)]
    ours, both = middle([(ours, bare + commit) for ours, bare, commit in rounds])
    pace = 1.0 / (2.0 * float(np.median([loads[0].seconds for loads in measured(storage)])))
    return Ratio(
        Cost(f"service, {name}", ours, "request"),
        Cost("bare endpoint and commit", both, "request"),
        f"{CALLERS} callers at once, the middle of {ROUNDS} rounds; a bare commit, by a single "
        f"caller, took {1e3 * float(np.median([commit for _, _, commit in rounds])):.3g} ms; the "
        f"service made {pace:,.0f} decisions a second, each an act and a reward",
    )


@benchmark("service / bare endpoint + commit, throughput, SQLite", at_most=3.0)
def throughput_on_sqlite() -> Ratio:
    """Time of a request with all callers at work."""
    return compared("sqlite", "throughput", "seconds")


@benchmark("service / bare endpoint + commit, p50 latency, SQLite", at_most=3.0)
def median_on_sqlite() -> Ratio:
    """What a caller waits for, half of the time."""
    return compared("sqlite", "p50", "p50")


@benchmark("service / bare endpoint + commit, p99 latency, SQLite", at_most=3.0)
def slowest_on_sqlite() -> Ratio:
    """What a caller waits for at worst, but for one time in a hundred."""
    return compared("sqlite", "p99", "p99")


@benchmark("service / bare endpoint + commit, throughput, PostgreSQL", at_most=3.0)
def throughput_on_postgres() -> Ratio:
    """The same on PostgreSQL."""
    return compared("postgres", "throughput", "seconds")


@benchmark("service / bare endpoint + commit, p50 latency, PostgreSQL", at_most=3.0)
def median_on_postgres() -> Ratio:
    """The same on PostgreSQL."""
    return compared("postgres", "p50", "p50")


@benchmark("service / bare endpoint + commit, p99 latency, PostgreSQL", at_most=3.0)
def slowest_on_postgres() -> Ratio:
    """The same on PostgreSQL."""
    return compared("postgres", "p99", "p99")


# -- workers with the storage's address ------------------------------------------------------


@cache
def measured_directly() -> list[tuple[Load, Load]]:
    """Workers on PostgreSQL, and as many that only commit, in several rounds."""
    with database() as address:
        create(address)
        return [
            (_direct_load(address, "campaign"), _direct_load(address, "commits"))
            for _ in range(DIRECT_ROUNDS)
        ]


def _direct_load(address: str, what: str) -> Load:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.direct_load", address, what, str(CALLERS), str(SECONDS)],
        stdout=subprocess.PIPE,
        check=True,
    )
    return Load(**json.loads(done.stdout))


def compared_directly(name: str, field: str) -> Ratio:
    """One of the numbers against that of bare commits."""
    rounds = measured_directly()
    ours, bare = middle([(getattr(one, field), getattr(other, field)) for one, other in rounds])
    pace = 1.0 / (2.0 * float(np.median([campaign.seconds for campaign, _ in rounds])))
    return Ratio(
        Cost(f"call of a campaign, {name}", ours, "call"),
        Cost("bare commit", bare, "commit"),
        f"{CALLERS} processes at once, each with the database's address; together they made "
        f"{pace:,.0f} decisions a second, each an act and a reward; every call reads what the "
        f"others have added, learns from it, and commits",
    )


@benchmark("worker on PostgreSQL / bare commit, throughput")
def direct_throughput() -> Ratio:
    """Time of a call with all workers at work."""
    return compared_directly("throughput", "seconds")


@benchmark("worker on PostgreSQL / bare commit, p50 latency")
def direct_median() -> Ratio:
    """What a worker waits for, half of the time."""
    return compared_directly("p50", "p50")


@benchmark("worker on PostgreSQL / bare commit, p99 latency")
def direct_slowest() -> Ratio:
    """What a worker waits for at worst, but for one time in a hundred."""
    return compared_directly("p99", "p99")


# -- opening ---------------------------------------------------------------------------------

STORED = 25_000  # episodes


@benchmark("opening a campaign: with its snapshot / from the whole log", at_most=0.2)
def opening() -> Ratio:
    """What a process waits for before it can go on with a long campaign."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{folder}/long.db"
        create(address)
        with SQLiteStorage(f"{folder}/long.db") as storage:
            entry = storage.entries()[0]
            for number in range(0, STORED, 100):
                storage.append(entry.id, [e for i in range(100) for e in _episode(number + i)])
        times = []
        for _ in range(2):  # the first leaves a snapshot behind
            began = time.process_time()
            Campaign.open(address, "bench").storage.close()
            times.append(time.process_time() - began)
    steps = STORED * HORIZON
    return Ratio(
        Cost("with the snapshot", times[1], "opening"),
        Cost("from the log", times[0], "opening"),
        f"a campaign of {steps:,} steps in SQLite, opened twice",
    )


def _episode(number: int) -> list[bytes]:
    """The events of an episode, as they stand in a log."""
    name = f"episode-{number}"
    events: list[Started | Acted | Rewarded] = [Started(name)]
    for step in range(HORIZON):
        action = (number + step) % 2
        reward = action + 0.01 * (number % 100)
        events.append(Acted(name, step, msgspec.Raw(str(step).encode()), action))
        events.append(Rewarded(name, step, reward, msgspec.Raw(str(step + 1).encode())))
    return [encode_event(event) for event in events]
