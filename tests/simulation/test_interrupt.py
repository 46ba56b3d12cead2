"""Ctrl-C: what is finished comes back, within a second, flagged incomplete."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from revar import simulate
from revar.errors import InputError
from revar.problems import problems
from revar.simulation.result import SimulationResult

SCRIPT = """
import json, signal, time
from dataclasses import dataclass
import revar
from revar.problems import problems
from revar.strategies import OnPolicy, Plan, Selection

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it otherwise

@dataclass(frozen=True)
class Slow(OnPolicy):
    def plan(self, task, statistics):
        if statistics.episodes > 1:
            time.sleep(60)
        return Plan(task.policy[None], Selection.SAMPLE, lasts=1)

said = False
def progress(done, total):
    global said
    if done >= {enough} and not said:
        said = True
        print("playing", flush=True)

problem = problems.find({problem!r})({size})
result = revar.simulate(
    problem.mdp, problem.policy, {strategy}, runs={runs}, episodes={episodes},
    checkpoints=[{episodes}], estimator={estimator!r}, compiled={compiled}, progress=progress,
)
print(json.dumps({{
    "complete": result.complete,
    "runs": result.runs,
    "shapes": [list(result.estimates.shape), list(result.visits.shape[:1])],
    "finite": bool(abs(result.estimates).max() < 1e9) if result.runs else True,
    "steps": sorted(set(result.visits.sum(axis=(1, 2)).tolist())),
}}), flush=True)
"""


def interrupted(
    *,
    problem: str = "tree",
    size: str = "",
    strategy: str = "'revar'",
    episodes: int = 1000,
    enough: int = 1,
    estimator: str = "certainty-equivalence",
    compiled: bool | None = None,
) -> tuple[dict[str, object], float]:
    """What the simulation returned after Ctrl-C, and how long that took."""
    script = SCRIPT.format(
        problem=problem,
        size=size,
        strategy=strategy,
        runs=100_000,
        episodes=episodes,
        enough=enough,
        estimator=estimator,
        compiled=compiled,
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "playing\n"
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        found = json.loads(process.stdout.readline())
        seconds = time.monotonic() - begin
        assert process.wait(10) == 0
    return found, seconds


@pytest.mark.parametrize("compiled", [None, False])
def test_finished_runs_come_back_within_a_second(compiled: bool | None) -> None:
    episodes = 1000 if compiled is None else 20
    found, seconds = interrupted(episodes=episodes, enough=3 * episodes, compiled=compiled)
    assert seconds < 1.0
    assert not found["complete"]
    runs = found["runs"]
    assert isinstance(runs, int)
    assert 0 < runs < 100_000
    assert found["shapes"] == [[runs, 1], [runs]]
    assert found["finite"]
    # Every run that comes back was played to its end: 4 steps an episode.
    assert found["steps"] == [4 * episodes]


@pytest.mark.parametrize(
    "job",
    [
        # Sweeps over 1600 states at 120 steps after every episode.
        {"problem": "gridworld", "size": "40"},
        # Estimates from 50,000 whole episodes.
        {"strategy": "'on-policy'", "estimator": "doubly-robust", "episodes": 50_000},
        # A plan that takes a minute.
        {"strategy": "Slow()", "compiled": False},
    ],
    ids=["large model", "slow estimator", "slow plan"],
)
def test_slow_runs_do_not_delay_it(job: dict[str, object]) -> None:
    found, seconds = interrupted(**job)  # type: ignore[arg-type]
    assert seconds < 1.0
    assert not found["complete"]


LEFT_BEHIND = """
import os, signal, threading, time
import numpy as np
from revar.simulation.parallel import play_runs

numbers = np.arange(2000) % 7

def play(run):
    try:
        while True:
            {step}
    finally:
        print("ended", flush=True)

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it otherwise
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
play_runs(
    play, np.zeros((1, 1), dtype=np.int64), 1,
    threads=1, progress=None, stop=np.zeros(1, dtype=np.int64),
)
print("returned", flush=True)
"""


@pytest.mark.parametrize(
    "step",
    [
        # Forced out of this one, a thread takes the process with it.
        "np.unique(numbers)",
        "time.sleep(0.3)",
    ],
)
def test_what_was_left_behind_ends_before_the_process(step: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LEFT_BEHIND.format(step=step)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.stdout == "returned\nended\n"
    assert process.stderr == ""
    assert process.returncode == 0


def stopped_at(episodes_done: int, compiled: bool | None) -> SimulationResult:
    """An interrupt while progress is shown."""
    tree = problems.find("tree")()

    def interrupt(done: int, total: int) -> None:
        if done >= episodes_done:
            raise KeyboardInterrupt

    return simulate(
        tree.mdp,
        tree.policy,
        "revar",
        episodes=100,
        runs=100_000 if compiled is None else 10_000,
        threads=1,
        progress=interrupt,
        compiled=compiled,
        keep_episodes=compiled is False,
    )


@pytest.mark.parametrize("compiled", [None, False])
def test_what_comes_back_is_what_the_runs_are_alone(compiled: bool | None) -> None:
    result = stopped_at(1000, compiled)
    assert not result.complete
    assert result.runs >= 9
    tree = problems.find("tree")()
    whole = simulate(tree.mdp, tree.policy, "revar", episodes=100, runs=result.runs)
    assert np.array_equal(result.estimates, whole.estimates)
    assert np.array_equal(result.standard_errors, whole.standard_errors)
    assert np.array_equal(result.visits, whole.visits)
    assert len(result.datasets) == (result.runs if compiled is False else 0)


def test_without_a_finished_run_there_is_no_error_to_speak_of() -> None:
    tree = problems.find("tree")()

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    result = simulate(
        tree.mdp, tree.policy, "on-policy", episodes=10**9, runs=2, progress=interrupt
    )
    assert (result.complete, result.runs) == (False, 0)
    assert np.all(result.mse_standard_error == np.inf)
    with pytest.raises(InputError, match="no run was finished"):
        _ = result.mse
    with pytest.raises(InputError, match="no run was finished"):
        result.coverage()
