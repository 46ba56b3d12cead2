"""Crashes and crowds: the accounts agree in the end, whatever happened on the way.

Both run as programs of their own (see `crashing` and `crowd`), which also take larger numbers.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def run(program: str, *arguments: str) -> Any:
    """Run a program of this folder; what it found. It fails where the accounts do not agree."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.campaigns.{program}", *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


KILLS, EPISODES = 200, 800  # more than are played while processes are killed


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_nothing_is_lost_or_counted_twice(storage: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue("postgres_url") if storage == "postgres" else storage
    found = run("crashing", address, "--kills", str(KILLS), "--episodes", str(EPISODES))
    assert sum(found["killed"].values()) == KILLS
    assert min(found["killed"].values()) >= KILLS / 5  # both the service and the workers
    assert found["unanswered"] > 0  # kills did hit requests that were under way


def test_sixteen_workers_through_the_service_on_sqlite(tmp_path: Path) -> None:
    found = run("crowd", f"sqlite:///{tmp_path}/crowd.db", "--episodes", "400")
    assert found["finished"] == 400


def test_sixteen_workers_through_the_service_on_postgres(postgres_url: str) -> None:
    found = run("crowd", postgres_url, "--episodes", "400")
    assert found["finished"] == 400


def test_sixteen_workers_directly_on_postgres(postgres_url: str) -> None:
    found = run("crowd", postgres_url, "--episodes", "120", "--direct")
    assert found["finished"] == 120


def test_sixteen_workers_directly_on_sqlite(tmp_path: Path) -> None:
    found = run("crowd", f"sqlite:///{tmp_path}/crowd.db", "--episodes", "120", "--direct")
    assert found["finished"] == 120


@pytest.mark.parametrize("directly", [[], ["--direct"]], ids=["service", "direct"])
@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_several_policies(
    storage: str, directly: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = f"sqlite:///{tmp_path}/crowd.db"
    if storage == "postgres":
        address = request.getfixturevalue("postgres_url")
    found = run("crowd", address, "--episodes", "100", "--workers", "4", "--compare", *directly)
    assert found["finished"] == 100
    assert len(found["values"]) == 2


@pytest.mark.parametrize(("workers", "directly"), [(2, ["--direct"]), (8, ["--direct"]), (8, [])])
def test_a_budget_of_steps_on_one_sqlite_file(
    workers: int, directly: list[str], tmp_path: Path
) -> None:
    """The accounts see to it that no more than one episode is collected beyond the budget."""
    address = f"sqlite:///{tmp_path}/crowd.db"
    found = run("crowd", address, "--steps", "301", "--workers", str(workers), *directly)
    assert 301 <= found["steps"] < 305
