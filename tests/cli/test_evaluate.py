"""`revar evaluate` and `revar advise`, as a person or a program calls them."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from revar import load_dataset
from revar.cli.main import revar
from tests.collection.test_collection import same_data

SLOW = """
import os
import time
import gymnasium
import numpy as np

class Slow(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, pause=0.0):
        self.pause = pause

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return 0, {}

    def step(self, action):
        time.sleep(self.pause or float(os.environ.get("PAUSE", 0)))
        self.place += 1
        reward = float(self.np_random.normal())
        return min(self.place, 2), reward, self.place == 3, False, {}

def policy(observation):
    return [0.3, 0.7]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("slow.py").write_text(SLOW)
    monkeypatch.delitem(sys.modules, "slow", raising=False)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(revar, list(arguments))


def test_the_result_is_a_line_and_a_table(folder: Path) -> None:
    result = run(
        "evaluate",
        "FrozenLake-v1",
        "--policy",
        "uniform",
        "--episodes",
        "60",
        "--seed",
        "1",
        "--output",
        "lake.npz",
        "--plot",
        "lake.png",
    )
    assert result.exit_code == 0, result.output
    assert result.output.startswith("value 0")
    assert "standard error" in result.output
    assert "60 episodes saved to lake.npz" in result.output
    assert len(load_dataset("lake.npz")) == 60
    assert Path("lake.png").stat().st_size > 10_000
    again = run("evaluate", "FrozenLake-v1", "--policy", "uniform", "--output", "lake.npz")
    assert "lake.npz exists; go on from it with --resume" in str(again.exception)


def test_machines_get_json(folder: Path) -> None:
    np.save("policy.npy", np.full((64, 4), 0.25))
    result = run(
        "evaluate",
        "FrozenLake-v1",
        "--env-option",
        "map_name=8x8",
        "--env-option",
        "is_slippery=false",
        "--policy",
        "policy.npy",
        "--epsilon",
        "0.5",
        "--episodes",
        "20",
        "--seed",
        "1",
        "--json",
    )
    found = json.loads(result.output)
    assert found["episodes"] == 20
    assert found["stopped"] == "budget"
    assert found["interval"][0] <= found["value"] <= found["interval"][1]


def test_own_modules_in_this_folder(folder: Path) -> None:
    result = run(
        "evaluate",
        "slow:Slow",
        "--policy",
        "slow:policy",
        "--horizon",
        "9",
        "--episodes",
        "30",
        "--env-option",
        "pause=0",
        "--environments",
        "2",
    )
    assert result.exit_code == 0, result.output
    built_in = run("evaluate", "gridworld", "--episodes", "30", "--strategy", "revar")
    assert built_in.exit_code == 0
    binned = run(
        "evaluate",
        "CartPole-v1",
        "--policy",
        "uniform",
        "--episodes",
        "5",
        "--bins",
        "[[], [], [0], [0]]",
        "--horizon",
        "20",
    )
    assert binned.exit_code == 0


def test_prior_episodes_and_a_half_width(folder: Path) -> None:
    common = ("evaluate", "slow:Slow", "--policy", "slow:policy", "--horizon", "9")
    run(*common, "--episodes", "150", "--output", "first.parquet", "--seed", "0")
    result = run(*common, "--prior", "first.parquet", "--episodes", "4000", "--half-width", "0.3")
    assert "and 150 earlier ones" in result.output
    assert "enough for a half-width of 0.3" in result.output


def test_advice(folder: Path) -> None:
    result = run(
        "advise",
        "slow:Slow",
        "--policy",
        "slow:policy",
        "--horizon",
        "9",
        "--half-width",
        "0.1",
        "--seed",
        "0",
    )
    assert result.exit_code == 0, result.output
    assert "on-policy" in result.output
    assert "on-policy is already within" in result.output
    run(
        "evaluate",
        "slow:Slow",
        "--policy",
        "slow:policy",
        "--horizon",
        "9",
        "--episodes",
        "50",
        "--output",
        "data.npz",
    )
    stored = run(
        "advise",
        "data.npz",
        "--policy",
        "slow:policy",
        "--horizon",
        "9",
        "--half-width",
        "0.1",
        "--json",
    )
    assert json.loads(stored.output)["pilot_episodes"] == 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "CliffWalking-v1", "--policy", "uniform"], "has no time limit"),
        (["evaluate", "FrozenLake-v1"], "no policy is given"),
        (["evaluate", "FrozenLake-v1", "--policy", "x"], "policy 'x' is not known"),
        (
            ["evaluate", "CartPole-v1", "--policy", "uniform", "--method", "table"],
            "say how to discretise them",
        ),
        (["evaluate", "tree", "--env-option", "depth"], "is not NAME=VALUE"),
        (["evaluate", "tree", "--plot", "nodir/x.png"], "nodir/x.png: there is no folder nodir"),
        (["evaluate", "tree", "--plot", "x.xyz"], "x.xyz: figures are saved as one of"),
        (
            ["evaluate", "CartPole-v1", "--bins", "3", "--policy", "uniform"],
            "--bins 3: bins are 3",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    folder: Path, arguments: list[str], message: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from revar.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_fault_in_the_middle_keeps_and_saves_what_is_complete(folder: Path) -> None:
    Path("slow.py").write_text(
        SLOW
        + """
class Breaking(Slow):
    total = 0

    def step(self, action):
        Breaking.total += 1
        if Breaking.total == 50:
            raise OSError("cable unplugged")
        return super().step(action)
"""
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from revar.cli.main import main; main()",
            "evaluate",
            "slow:Breaking",
            "--policy",
            "slow:policy",
            "--horizon",
            "9",
            "--seed",
            "4",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "Error: episode 16: the environment raised OSError in step: cable unplugged"
    )
    assert "16 episodes saved to revar-slow-Breaking-seed4.npz" in done.stdout
    assert len(load_dataset("revar-slow-Breaking-seed4.npz")) == 16


@pytest.mark.parametrize("module", ["click", "mine"])
def test_ctrl_c_while_something_is_loaded_is_one_line(folder: Path, module: str) -> None:
    """While the command itself is imported, and while the user's own module is."""
    # A test run in the background is started with the signal ignored, and so is what it starts.
    Path("sitecustomize.py").write_text(
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    )
    Path(f"{module}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "revar", "evaluate", "tree", "--policy", "mine:policy"],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


def interrupted(arguments: list[str], after: float) -> tuple[int, str]:
    """The command in a terminal of its own, stopped by Ctrl-C once three episodes are shown."""
    terminal, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from revar.cli.main import main; main()", *arguments],
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
        env={**os.environ, "PAUSE": "0.01"},
    )
    os.close(other)
    shown = b""
    begun: float | None = None
    sent = False
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            break
        if begun is None and re.search(rb"([3-9]|[1-9]\d+)/200", shown):
            begun = time.monotonic()
        if begun is not None and not sent and time.monotonic() - begun > after:
            os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all of a group
            sent = True
    os.close(terminal)
    return process.wait(timeout=60), shown.decode()


@pytest.mark.parametrize("workers", [[], ["--workers", "2", "--batch", "1"]])
def test_ctrl_c_prints_and_saves_and_resume_ends_with_the_same_numbers(
    folder: Path, workers: list[str]
) -> None:
    common = [
        "evaluate",
        "slow:Slow",
        "--policy",
        "slow:policy",
        "--horizon",
        "9",
        "--episodes",
        "200",
        "--seed",
        "7",
        *workers,
    ]
    code, text = interrupted([*common, "--output", "run.npz"], 0.5)
    assert code == 130, text
    assert "(interrupted)" in text
    assert "episodes saved to run.npz" in text
    stopped: Any = load_dataset("run.npz")
    assert 2 < len(stopped) < 200
    if workers:
        common += ["--engine", "inline"]  # the numbers are those of processes
    resumed = run(*common, "--resume", "run.npz")
    whole = run(*common, "--output", "whole.npz")
    assert resumed.output.splitlines()[:10] == whole.output.splitlines()[:10]
    assert same_data(load_dataset("run.npz"), load_dataset("whole.npz"))
