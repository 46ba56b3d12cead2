"""Experiments on Ray: the tables of this process, also when a worker dies."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from revar.errors import InputError
from revar.experiments import shards
from revar.experiments.engines import RayEngine
from revar.experiments.runner import run_experiment
from tests.experiments.small import small, tables_in

SECONDS = 120.0


def workers_at_work() -> list[int]:
    """The processes that play a shard just now; Ray names them after their task."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"ray::_play" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended meanwhile
    return found


def kill_one(killed: list[int], over: threading.Event) -> None:
    """End the first worker that is seen playing."""
    until = time.monotonic() + SECONDS
    while not killed and not over.is_set() and time.monotonic() < until:
        for worker in workers_at_work()[:1]:
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)
        time.sleep(0.01)


def test_tables_are_those_of_this_process_though_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "EPISODES_OF_A_SHARD", 2_000)
    experiment = small(runs=40)
    run_experiment(experiment, tmp_path / "local")
    killed: list[int] = []
    over = threading.Event()
    killer = threading.Thread(target=kill_one, args=(killed, over))
    killer.start()
    try:
        run_experiment(experiment, tmp_path / "ray", engine=RayEngine(cores=2))
    finally:
        over.set()
        killer.join()
    assert killed
    assert tables_in(tmp_path / "ray") == tables_in(tmp_path / "local")


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no Ray cluster answers at '127\.0\.0\.1:9'"):
        run_experiment(small(), tmp_path, engine=RayEngine(address="127.0.0.1:9"))
