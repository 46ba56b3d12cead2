"""Mistakes that users make: each ends in one sentence that says what to do, and the right code."""

import json
import re
import shlex
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revar
from revar.cli.main import main
from revar.errors import InputError
from tests.cli import mistakes_module

HERE = "tests.cli.mistakes_module"
CORRIDOR = f"{HERE}:corridor --horizon 5 --episodes 4"
BAD_INPUT, REFUSED = 2, 1
REFUSALS = {"a campaign that is not there"}  # all others are bad input

# A command, and what its one sentence says.
COMMANDS = {
    # What is evaluated
    "a misspelled problem": ("evaluate gridwrld", r"'gridwrld' cannot be opened"),
    "a misspelled id": ("evaluate FrozenLake-v9 --policy uniform", "cannot be opened"),
    "no such module": (
        "evaluate nowhere:Env --policy uniform",
        r"cannot import 'nowhere' \(ModuleNotFoundError",
    ),
    "no such factory": (f"evaluate {HERE}:Nothing --policy uniform", "has no 'Nothing'"),
    "no environment": (f"evaluate {HERE}:HERE --policy uniform", "has no 'HERE'"),
    "a VecEnv": (
        f"evaluate {HERE}:VecEnv --policy uniform",
        r"is a VecEnv, several environments as Stable-Baselines3 has them; .* --environments 4",
    ),
    "several agents": (
        f"evaluate {HERE}:Agents --policy uniform",
        "is an Agents, an environment of several agents as PettingZoo has them; revar plays one",
    ),
    "images in a table": (
        f"evaluate {HERE}:Pictures --policy uniform --method table --horizon 5",
        r"images or arrays of shape \(8, 8, 3\), .*; leave --method out: .* what --features makes",
    ),
    "numbers in a table": (
        "evaluate CartPole-v1 --policy uniform --method table",
        r"continuous; say how to discretise them with --bins '\[\[.*, or leave --method out",
    ),
    "no time limit": (f"evaluate {HERE}:endless --policy uniform", "give --horizon"),
    "an option without a value": (
        "evaluate gridworld --env-option slip",
        "'slip' is not NAME=VALUE",
    ),
    "an unknown option of a problem": (
        "evaluate gridworld --env-option slop=1",
        "problem 'gridworld' has no option 'slop'; it has",
    ),
    "bins that are a number": (
        "evaluate CartPole-v1 --policy uniform --bins 6",
        r"--bins 6: bins are 6; they must be a list of edges for each number",
    ),
    "bins that are no JSON": (
        "evaluate CartPole-v1 --policy uniform --bins [0,",
        r"--bins \[0,: this is not JSON",
    ),
    "bins for other numbers": (
        "evaluate CartPole-v1 --policy uniform --bins [[0]]",
        "observations have 4 numbers; bins are given for 1",
    ),
    "bins that descend": (
        "evaluate CartPole-v1 --policy uniform --bins [[1,0],[0],[0],[0]]",
        r"edges of number 0 are \[1.0, 0.0\]; they must ascend",
    ),
    # The policy
    "no policy": (
        f"evaluate {CORRIDOR}",
        "no policy is given; give one with --policy, such as 'uniform'",
    ),
    "an unknown policy": (
        f"evaluate {CORRIDOR} --policy unform",
        "policy 'unform' is not known; give 'uniform', a .npy or .npz file",
    ),
    "no such file": (f"evaluate {CORRIDOR} --policy no.npy", "no.npy: no such file"),
    "an object in a file": (
        f"evaluate {CORRIDOR} --policy object.npy",
        r"object.npy holds no array \(Object arrays cannot be loaded",
    ),
    "another shape": (
        f"evaluate {CORRIDOR} --policy shape.npy",
        r"policy has shape \(4, 2\); for these observations it is \(3, 2\), or \(3,\) of actions",
    ),
    "numbers that are no actions": (
        f"evaluate {CORRIDOR} --policy halves.npy",
        r"no actions, which are whole numbers; .*, and --epsilon 0 makes them",
    ),
    "an action there is not": (
        f"evaluate {CORRIDOR} --policy third.npy",
        "policy has the action 2; actions are 0 to 1",
    ),
    "probabilities that do not sum to 1": (
        f"evaluate {CORRIDOR} --policy sums.npy",
        r"sums? to 1\.2",
    ),
    "a function that raises": (
        f"evaluate {CORRIDOR} --policy {HERE}:broken",
        "the policy raised ZeroDivisionError at observation 0: no such luck",
    ),
    "a function of nothing": (
        f"evaluate {CORRIDOR} --policy {HERE}:not_a_policy",
        "the policy raised TypeError at observation 0",
    ),
    "a class": (
        f"evaluate {CORRIDOR} --policy {HERE}:VecEnv",
        "policy is the class VecEnv; give an object of it",
    ),
    "a function that gives half": (
        f"evaluate {CORRIDOR} --policy {HERE}:half",
        "the policy gives 0.5 at observation 0, which is no row of probabilities and no action",
    ),
    "a function of an action there is not": (
        f"evaluate {CORRIDOR} --policy {HERE}:third",
        "the policy gives the action 2 at observation 0; actions are 0 to 1",
    ),
    "no such model": (f"evaluate {CORRIDOR} --policy no.zip", "no.zip: no such file"),
    "no model": (
        f"evaluate {CORRIDOR} --policy empty.zip",
        "empty.zip is no model that Stable-Baselines3 has saved",
    ),
    "no Stable-Baselines3": (
        f"evaluate {CORRIDOR} --policy model.zip",
        "model.zip is a model of Stable-Baselines3, which is not installed: pip install",
    ),
    "a model of another library": (
        f"evaluate {CORRIDOR} --policy contrib.zip",
        "contrib.zip is of none of A2C, DQN, PPO, SAC, TD3; load it in a module of yours",
    ),
    "epsilon alone": ("evaluate gridworld --epsilon 0.1", "--epsilon is for a policy"),
    "epsilon of nothing to prefer": (
        f"evaluate {CORRIDOR} --policy uniform --epsilon 0.1",
        "--epsilon needs a policy that prefers an action",
    ),
    # The budget and other conditions
    "no episodes": ("evaluate gridworld --episodes 0", "--episodes is 0; it must be a whole"),
    "two budgets": (
        "evaluate gridworld --episodes 9 --steps 9",
        "one budget: --episodes, --steps, or --budget with --cost; got --episodes and --steps",
    ),
    "a budget of nothing": (
        "evaluate gridworld --budget 9",
        "--budget says how much may be spent, --cost what a step costs; give both",
    ),
    "a negative half-width": ("evaluate gridworld --half-width -1", "--half-width is -1.0"),
    "a confidence above 1": (
        "evaluate gridworld --confidence 95",
        "--confidence is 95.0; it",
    ),
    "a discount above 1": ("evaluate gridworld --discount 2", "--discount is 2.0; it must lie"),
    "no horizon": ("evaluate gridworld --horizon 0", "--horizon is 0; it must be a whole"),
    "a misspelled strategy": ("evaluate gridworld --strategy flo", "did you mean 'flow'"),
    "no workers": ("evaluate gridworld --workers 0", "--workers is 0; it must be a whole"),
    "a ratio below 1": ("evaluate gridworld --max-ratio 0.5", "--max-ratio is 0.5; it must be a"),
    "limits without a table": (
        "evaluate CartPole-v1 --policy uniform --max-ratio 2",
        "cannot keep limits; they need --method table",
    ),
    "critics of a table": (
        "evaluate gridworld --critics linear",
        "--critics is for method 'critic'; the method is 'table' here",
    ),
    # Files
    "an output that is there": ("evaluate gridworld --output taken.npz", "go on from it with"),
    "an output of another kind": ("evaluate gridworld --output a.csv", "saved as .npz or .parq"),
    "an output in no folder": ("evaluate gridworld --output no/a.npz", "there is no folder no"),
    "nothing to resume": ("evaluate gridworld --resume no.npz", "no.npz: no such file"),
    "something else to resume": ("evaluate gridworld --resume sums.npz", "not a dataset saved"),
    "a figure of another kind": ("evaluate gridworld --plot a.xyz", r"a\.xyz"),
    # Other commands
    "one policy to compare": ("compare gridworld own=own", "at least two policies to compare"),
    "a policy without a name": ("compare gridworld own uniform", "'own' is not NAME=POLICY"),
    "two policies of one name": ("compare gridworld a=own a=uniform", "two policies are called"),
    "a decision above 1": (
        "compare gridworld a=own b=uniform --decide 95",
        "--decide is 95.0; it must lie between 0 and 1",
    ),
    "an unknown estimator": ("simulate --estimator mean --runs 2", "unknown estimator 'mean'"),
    "an unknown experiment": ("reproduce trees --quick", "trees"),
    "no results": ("report empty", "empty holds no finished experiment"),
    "an unknown command": ("evalute gridworld", "No such command 'evalute'"),
    "an unknown option": ("evaluate gridworld --episode 9", "No such option"),
    "a campaign that is not there": (
        "campaign status ads --storage sqlite:///campaigns.db",
        "there is no file campaigns.db",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("object.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save("shape.npy", np.full((4, 2), 0.5))
    np.save("halves.npy", np.full(3, 0.5))
    np.save("third.npy", np.array([0, 1, 2]))
    np.save("sums.npy", np.full((3, 2), 0.6))
    np.savez("sums.npz", np.full((3, 2), 0.6))
    Path("taken.npz").touch()
    Path("empty").mkdir()
    for name, module in (
        ("model", "stable_baselines3.common.policies"),
        ("contrib", "sb3_contrib"),
    ):
        with zipfile.ZipFile(f"{name}.zip", "w") as archive:
            stored = {"policy_class": {"__module__": module}, "clip_range": 0.2}
            archive.writestr("data", json.dumps(stored))
    zipfile.ZipFile("empty.zip", "w").close()
    return tmp_path


@pytest.mark.parametrize("mistake", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_command_says_what_is_wrong(
    mistake: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, sentence = COMMANDS[mistake]
    monkeypatch.setattr(sys, "argv", ["revar", *shlex.split(command)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    *usage, last = printed.err.strip().splitlines()
    assert ended.value.code == (REFUSED if mistake in REFUSALS else BAD_INPUT)
    assert re.search(sentence, last), last
    assert last.startswith("Error: ")
    # The command line's own errors come after a hint how it is used.
    assert all(line.startswith(("Usage: ", "Try ")) or not line for line in usage), printed.err
    assert printed.out == ""


def test_there_are_at_least_45() -> None:
    assert len(COMMANDS) + len(CALLS) >= 45


UNIFORM = np.full((16, 4), 0.25)


def grid() -> revar.TabularMDP:
    return revar.find_problem("gridworld").mdp


def evaluate(**changes: Any) -> Any:
    """An evaluation that would work, but for the changes."""
    settings: dict[str, Any] = {"env": grid(), "policy": UNIFORM, "episodes": 4, **changes}
    return revar.evaluate(**settings)


# A call, and what its one sentence says.
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "bins that are a number": (
        lambda: evaluate(env="CartPole-v1", policy="uniform", bins=6),
        r"bins is 6; give bins=revar.Bins\(...\) of edges, or equal ones between bounds",
    ),
    "a VecEnv": (
        lambda: evaluate(env=mistakes_module.VecEnv()),
        r"env is a VecEnv, several .* as Stable-Baselines3 .* environments=4 to play them side by",
    ),
    "several agents": (
        lambda: evaluate(env=mistakes_module.Agents()),
        "env is an Agents, .* as PettingZoo has them; revar plays one, so give a Gymnasium",
    ),
    "images in a table": (
        lambda: evaluate(env=mistakes_module.Pictures(), method="table", horizon=5),
        r"arrays of shape \(8, 8, 3\), which no table holds; leave method= out",
    ),
    "no budget": (
        lambda: evaluate(episodes=None),
        "one budget: episodes=, steps=, or budget= with cost=; got none",
    ),
    "no budget to compare": (
        lambda: revar.compare(grid(), {"a": UNIFORM, "b": UNIFORM}),
        "one budget: episodes=, steps=, or budget= with cost=; got none",
    ),
    "progress that is True": (
        lambda: revar.simulate(
            grid(),
            UNIFORM,
            "flow",
            episodes=4,
            runs=1,
            progress=True,  # type: ignore[arg-type]
        ),
        r"progress is True; .* with revar.progress_bar\('runs'\) as progress: simulate",
    ),
    "actions for simulate": (
        lambda: revar.simulate(grid(), [0] * 16, "flow", episodes=4, runs=1),
        r"policy has shape \(16,\); .*; revar.epsilon_greedy\(policy, 0.0, 4\) makes it",
    ),
    "a number for a policy": (
        lambda: evaluate(policy=0.5),
        "policy is a float; it must be a function from an observation to probabilities, an array",
    ),
    "a set for a policy": (
        lambda: evaluate(policy={0, 1}),
        "policy is a set; it must be a function from an observation to probabilities, an array",
    ),
    "a class for a policy": (
        lambda: evaluate(env="CartPole-v1", policy=revar.GaussianPolicy),
        "policy is the class GaussianPolicy; give an object of it",
    ),
    "a class for a policy of a table": (
        lambda: evaluate(policy=mistakes_module.VecEnv),
        "policy is the class VecEnv; give an object of it",
    ),
    "a number for an environment": (
        lambda: evaluate(env=7),
        "env is an int; it must be a Gymnas",
    ),
    "a number for a strategy": (
        lambda: evaluate(strategy=7),
        "strategy is 7; it must be an id",
    ),
    "a number for policies": (
        lambda: revar.compare(grid(), 7, episodes=4),  # type: ignore[arg-type]
        "policies are an int; they must be a mapping from names to policies",
    ),
    "a method there is not": (
        lambda: evaluate(method="tabular"),
        "method is 'tabular'; it must be one of 'table', 'critic', 'mean'",
    ),
    "options of an open environment": (
        lambda: evaluate(env=mistakes_module.corridor(), env_options={"a": 1}),
        "options are for environments that are opened by name",
    ),
}


@pytest.mark.parametrize("mistake", CALLS)
def test_call_says_what_is_wrong(mistake: str) -> None:
    call, sentence = CALLS[mistake]
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
