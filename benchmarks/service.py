"""Ratios of the campaign service: a request beside a bare endpoint and a bare commit."""

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

import numpy as np
from tests import postgres

from benchmarks.load import Ask, Load, loaded
from benchmarks.registry import Cost, NotMeasuredError, Ratio, benchmark
from revar.campaigns import Campaign

CALLERS, SECONDS, ROUNDS = 16, 2.0, 3
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
    import psycopg  # noqa: PLC0415

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


def least(loads: list[Load]) -> Load:
    """Of several rounds the quickest, number by number: others may have disturbed the rest."""
    return Load(*(min(getattr(load, name) for load in loads) for name in ("seconds", "p50", "p99")))


@cache
def measured(storage: str) -> tuple[Load, Load, Load]:
    """The service, the bare endpoint and the bare commit, in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if storage == "sqlite":
            return _rounds(f"sqlite:///{folder}/bench.db", lambda: commits_of_sqlite(folder))
        programs = postgres.binaries()
        if programs is None:
            raise NotMeasuredError("there is no PostgreSQL server on this machine")
        with postgres.server(programs) as server, postgres.database(server, "bench") as address:
            return _rounds(address, lambda: commits_of_postgres(address))


def _rounds(address: str, commits: object) -> tuple[Load, Load, Load]:
    assert callable(commits)
    Campaign.create(
        address,
        "bench",
        policy=np.full((HORIZON, 2), 0.5),
        horizon=HORIZON,
        episodes=10**8,
        seed=1,
    ).storage.close()
    serve = ["-c", "from revar.cli.main import main; main()", "serve", "--port", "0"]
    with (
        started(*serve, "--storage", address) as port,
        started("-m", "benchmarks.bare_service") as bare_port,
    ):
        ours, bare, bare_commits = [], [], []
        for _ in range(ROUNDS):
            bare.append(loaded(bare_port, echoes, CALLERS, SECONDS))
            bare_commits.append(commits())
            ours.append(loaded(port, decisions, CALLERS, SECONDS))
    return least(ours), least(bare), least(bare_commits)


def compared(storage: str, name: str, field: str) -> Ratio:
    """One of the numbers against the sum of the bare ones."""
    ours, bare, commit = (getattr(load, field) for load in measured(storage))
    pace = 1.0 / (2.0 * measured(storage)[0].seconds)
    return Ratio(
        Cost(f"service, {name}", ours, "request"),
        Cost("bare endpoint and commit", bare + commit, "request"),
        f"{CALLERS} callers at once; bare endpoint {1e3 * bare:.3g} ms, bare commit "
        f"{1e3 * commit:.3g} ms; the service made {pace:,.0f} decisions a second, each an act and "
        f"a reward",
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


@benchmark("service / bare endpoint + commit, p99 latency, PostgreSQL", at_most=3.0)
def slowest_on_postgres() -> Ratio:
    """The same on PostgreSQL."""
    return compared("postgres", "p99", "p99")
