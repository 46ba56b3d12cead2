"""Processes and Ray: the numbers of one process, whatever happens to workers."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revar
from revar import EvaluationError, EvaluationResult
from revar.cluster import start_ray
from revar.environments.opening import environment_seed
from revar.errors import InputError
from tests.collection.test_collection import same_data
from tests.environments.custom import Corridor, energy
from tests.evaluation.test_budgets import PRICED
from tests.evaluation.workers.envs import NAME

SEED = 4
FATAL = environment_seed(SEED, 30)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray on this machine, for all tests of this file."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        # Ray's workers step back behind everything else, also behind other tests.
        patch.setenv("RAY_worker_niceness", "0")
        start_ray(ray, None, 2)
        yield
        ray.shutdown()


@pytest.fixture(params=["processes", "ray"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "ray":
        request.getfixturevalue("cluster")
    return str(request.param)


def run(name: str, engine: str, **options: Any) -> EvaluationResult:
    asked: dict[str, Any] = {"episodes": 120, "workers": 2, "batch": 4, "seed": SEED, **options}
    return revar.evaluate(NAME + name, "uniform", horizon=9, engine=engine, **asked)


@pytest.fixture(scope="module")
def plain() -> EvaluationResult:
    """What all engines must give: the corridor without sleep, trouble or other processes."""
    return run("Sleepy", "inline")


def same(one: EvaluationResult, other: EvaluationResult) -> bool:
    return (
        same_data(one.dataset, other.dataset)
        and (one.value, one.standard_error) == (other.value, other.standard_error)
        and one.checkpoints == other.checkpoints
    )


def test_the_same_numbers_whoever_is_slow(plain: EvaluationResult) -> None:
    assert same(run("Sleepy", "processes"), plain)


def test_costs_and_limits_travel_to_workers(engine: str) -> None:
    limits = revar.Limits(max_ratio=2.0, min_return="80%", max_sums=[("risk", 0.9), (energy, 14.0)])
    asked: dict[str, Any] = {"budget": 1500, "cost": energy, "limits": limits, "horizon": 9}
    one, other = (
        revar.evaluate(PRICED, "uniform", workers=2, engine=each, seed=SEED, **asked)
        for each in (engine, "inline")
    )
    assert same(one, other)
    assert one.kept == other.kept
    assert set(one.dataset.amounts) == {"cost", "risk", "max_sums 1"}
    for name, amounts in one.dataset.amounts.items():
        assert np.array_equal(amounts, other.dataset.amounts[name])
    assert 1500 <= one.spent < 1500 + 27


def test_a_worker_that_is_killed_is_replaced(
    engine: str, plain: EvaluationResult, tmp_path: Path
) -> None:
    marker = tmp_path / "killed"
    result = run("Mortal", engine, env_options={"fatal": FATAL, "marker": str(marker)})
    assert marker.exists()
    assert same(result, plain)


def test_a_batch_that_kills_every_worker_ends_the_run(
    plain: EvaluationResult, tmp_path: Path
) -> None:
    path = tmp_path / "data.npz"
    with pytest.raises(EvaluationError, match=r"^episode \d+: the worker .* ended 4 times") as e:
        run("Mortal", "processes", env_options={"fatal": FATAL}, save=path)
    result = e.value.result
    assert result is not None
    assert 20 <= len(result.dataset) < 60
    assert len(revar.load_dataset(path)) == len(result.dataset)
    assert result.conditions is not None
    kept = result.conditions.resumable
    assert kept <= 30
    assert same_data(result.dataset.head(kept), plain.dataset.head(kept))


def test_an_environment_that_raises_ends_the_run(plain: EvaluationResult) -> None:
    with pytest.raises(
        EvaluationError, match=r"^episode 30: the environment raised RuntimeError in step: the sim"
    ) as caught:
        run("Raising", "processes", env_options={"fatal": FATAL})
    result = caught.value.result
    assert result is not None
    assert result.stopped == "error"
    assert len(result.dataset) >= 30
    assert same_data(result.dataset.head(30), plain.dataset.head(30))


def alive(notes: Path) -> list[int]:
    """Processes that left a note and still run."""
    return [int(note.name) for note in notes.iterdir() if Path("/proc", note.name).exists()]


def test_ctrl_c_returns_what_there_is_and_resuming_completes_it(
    engine: str, plain: EvaluationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, notes = tmp_path / "data.npz", tmp_path / "notes"
    notes.mkdir()
    pressed: list[float] = []

    def press(done: int, total: int) -> None:
        if done >= 40 and not pressed:
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setenv("SLEEPS", "0.05")
    options = {"notes": str(notes)}
    stopped = run("Sleepy", engine, env_options=options, progress=press, save=path)
    monkeypatch.setenv("SLEEPS", "0")
    assert time.monotonic() - pressed[0] < 3.0
    assert stopped.stopped == "interrupted"
    assert 40 <= stopped.episodes < 80
    notes.joinpath(str(os.getpid())).unlink()  # this process opened one to look at it
    assert len(list(notes.iterdir())) == 2
    until = time.monotonic() + 10.0
    while alive(notes) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(notes)
    resumed = revar.evaluate(
        NAME + "Sleepy",
        "uniform",
        horizon=9,
        engine="inline",
        env_options=options,
        episodes=120,
        resume=path,
    )
    assert same(resumed, plain)
    assert same_data(revar.load_dataset(path), plain.dataset)


def test_resuming_with_a_larger_budget_keeps_every_episode(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    quick = {"batch": 8, "workers": 2}
    first = run("Sleepy", "inline", episodes=61, save=path, **quick)
    more = run("Sleepy", "inline", episodes=90, resume=path, **quick)
    assert more.episodes == 90
    assert same_data(more.dataset.head(61), first.dataset)
    with pytest.raises(InputError, match="collected with workers = 2; now it is 3"):
        run("Sleepy", "inline", resume=path, batch=8, workers=3)
    with pytest.raises(InputError, match="collected with batch = 8; now it is 1"):
        run("Sleepy", "inline", resume=path, workers=2, batch=1)


def test_a_factory_and_a_policy_that_can_be_sent() -> None:
    sent = revar.evaluate(
        Corridor,
        revar.epsilon_greedy([[0.0, 1.0]] * 3, 0.3, 2),
        episodes=40,
        horizon=9,
        seed=1,
        workers=2,
    )
    assert sent.episodes == 40


@pytest.mark.parametrize(
    ("env", "policy", "name"),
    [
        (lambda: Corridor(3), "uniform", "env"),
        (NAME + "Sleepy", lambda seen: [0.5, 0.5], "policy"),
    ],
)
def test_what_cannot_be_sent_is_named(env: Any, policy: Any, name: str) -> None:
    with pytest.raises(EvaluationError, match=f"{name} cannot be sent to another process"):
        revar.evaluate(env, policy, episodes=5, horizon=9, workers=2)


SCRIPT = """
import revar
from tests.evaluation.workers.envs import NAME

def main():
    revar.evaluate(NAME + "Sleepy", "uniform", horizon=9, episodes=5000, seed=1, workers=2,
                   env_options={{"notes": {notes!r}}})

{guard}main()
"""


def start_script(tmp_path: Path, notes: Path, guard: str) -> "subprocess.Popen[str]":
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(notes=str(notes), guard=guard))
    root = Path(__file__).parents[3]
    return subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(root), "SLEEPS": "60"},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_workers_end_with_the_process_they_play_for(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    script = start_script(tmp_path, notes, "if __name__ == '__main__': ")
    try:
        until = time.monotonic() + 120.0
        while len(list(notes.iterdir())) < 3 and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1.0)  # so that workers are in the midst of a step, which lasts a minute
        assert len(alive(notes)) == 3  # the script opens one to look at it
    finally:
        script.kill()
        script.communicate()
    until = time.monotonic() + 10.0
    while alive(notes) and time.monotonic() < until:
        time.sleep(0.1)
    assert not alive(notes)


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    script = start_script(tmp_path, tmp_path, "")
    killer = threading.Timer(60.0, script.kill)
    killer.start()
    _, errors = script.communicate()
    killer.cancel()
    assert "a script must start workers below `if __name__ == '__main__':`" in errors
