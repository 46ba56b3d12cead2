from pathlib import Path
from typing import Any

import gymnasium
import pytest

import revar
from revar.environments.opening import (
    KNOWN_HORIZONS,
    horizon_of,
    open_environment,
    open_environments,
)
from revar.errors import InputError
from tests.environments.custom import Corridor


def failing() -> Any:
    raise RuntimeError("no licence\nsee the manual")


def number() -> Any:
    return 5


def make_corridor(length: int = 3) -> Any:
    return Corridor(length)


def test_environments_by_id_factory_problem_and_model() -> None:
    lake = open_environment("FrozenLake-v1", {"map_name": "8x8"})
    assert lake.observation_space.n == 64
    assert horizon_of(lake, None) == 100
    assert horizon_of(lake, 7) == 7
    made = open_environment("tests.environments.test_opening:make_corridor", {"length": 5})
    assert made.observation_space.n == 5
    assert horizon_of(open_environment("tree"), None) == revar.find_problem("tree").mdp.horizon
    grid = revar.find_problem("gridworld")
    assert open_environment(grid).observation_space.n == 16
    assert open_environment(grid.mdp).action_space.n == 4
    assert open_environment(lake) is lake


def test_time_limits_are_found_wherever_they_stand() -> None:
    limited = gymnasium.wrappers.TimeLimit(Corridor(3), 9)
    assert horizon_of(gymnasium.wrappers.OrderEnforcing(limited), None) == 9
    assert horizon_of(gymnasium.make("CliffWalking-v1", max_episode_steps=11), None) == 11


def test_blackjack_ends_by_itself() -> None:
    """Always another card: the longest of many games stays below what is stated."""
    env = gymnasium.make("Blackjack-v1")
    longest = 0
    env.reset(seed=0)
    for _ in range(3000):
        steps, over = 0, False
        while not over:
            over = bool(env.step(1)[2])
            steps += 1
        longest = max(longest, steps)
        env.reset()
    assert longest <= horizon_of(env, None) == KNOWN_HORIZONS["Blackjack-v1"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nothing-v0", "environment 'Nothing-v0' cannot be opened"),
        ("FrozenLake-v1x", "built-in problems"),
        ("no.such.module:make", "cannot import 'no.such.module'"),
        ("tests.environments.test_opening:nothing", "has no 'nothing'"),
        ("tests.environments.test_opening:KNOWN_HORIZONS", "is a dict, no factory"),
        ("tests.environments.test_opening:failing", r"cannot be made \(RuntimeError: no licence\)"),
        ("tests.environments.test_opening:number", "made an int, which is no environment"),
        (failing, "environment 'failing' cannot be made"),
        (number, "'number' made an int, which is no environment"),
        (":x", "environment ':x' is not of the form 'module:name'"),
        ("not_python:make", r"cannot import 'not_python' \(SyntaxError: "),
        (3, "env is an int; it must be a Gymnasium environment"),
    ],
)
def test_what_cannot_be_opened_is_named(
    name: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "not_python.py").write_text("def make(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=message):
        open_environment(name)


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="cannot be opened"):
        open_environment("FrozenLake-v1", {"no_such_option": 1})
    with pytest.raises(InputError, match=r"cannot be opened \(KeyError: '9x9'\)"):
        open_environment("FrozenLake-v1", {"map_name": "9x9"})
    with pytest.raises(InputError, match=r"cannot be opened \(KeyError: '9x9'\)"):
        open_environments("FrozenLake-v1", {"map_name": "9x9"}, 2)
    with pytest.raises(InputError, match=r"cannot be opened .*no_such_option"):
        open_environments("FrozenLake-v1", {"no_such_option": 1}, 2)
    with pytest.raises(InputError, match=r"'make_corridor' cannot be made .*width"):
        open_environment(make_corridor, {"width": 1})
    with pytest.raises(InputError, match="'failing' cannot be made"):
        open_environments(failing, None, 2)
    with pytest.raises(InputError, match="options are for environments that are opened by name"):
        open_environment(Corridor(3), {"length": 4})


def test_no_time_limit_is_an_error() -> None:
    with pytest.raises(InputError, match="Corridor has no time limit"):
        horizon_of(Corridor(3), None)
