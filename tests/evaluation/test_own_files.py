"""What evaluations write and read again: nothing is lost, and nothing is mixed up."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar import EvaluationError
from revar.datasets import files
from revar.errors import InputError
from tests.collection.test_collection import same_data
from tests.environments.custom import Corridor, Faulty


def test_same_seed_same_result_where_episodes_begin_anywhere() -> None:
    first, *others = [
        revar.evaluate("Blackjack-v1", "uniform", episodes=150, seed=3) for _ in range(3)
    ]
    assert all(same_data(first.dataset, other.dataset) for other in others)


def test_resuming_with_another_policy_or_other_options_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    lake: dict[str, Any] = {"horizon": 20, "seed": 1, "env_options": {"is_slippery": False}}
    revar.evaluate("FrozenLake-v1", "uniform", episodes=20, save=path, **lake)
    leaning = np.tile([0.4, 0.2, 0.2, 0.2], (16, 1))
    before = path.read_bytes()
    with pytest.raises(InputError, match="collected for another policy"):
        revar.evaluate("FrozenLake-v1", leaning, episodes=30, resume=path, **lake)
    with pytest.raises(InputError, match=r"collected with options = \[\('is_slippery', False\)\]"):
        revar.evaluate("FrozenLake-v1", "uniform", episodes=30, resume=path, horizon=20)
    with pytest.raises(InputError, match="has 20 episodes, more than the 10 that are wanted"):
        revar.evaluate("FrozenLake-v1", "uniform", episodes=10, resume=path, **lake)
    with pytest.raises(InputError, match="exists; resume from it, or name another file"):
        revar.evaluate("FrozenLake-v1", "uniform", episodes=30, save=path, **lake)
    assert path.read_bytes() == before


def test_a_run_that_is_killed_left_its_episodes_at_the_last_look(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    whole = revar.evaluate(Corridor(3), "uniform", episodes=450, horizon=9, seed=1)

    script = f"""
import os, revar
from tests.environments.custom import Corridor
revar.evaluate(Corridor(3), "uniform", episodes=450, horizon=9, seed=1, save={str(path)!r},
               progress=lambda done, total: os._exit(9) if done == 430 else None)
"""
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", script], cwd=root, check=False).returncode == 9
    assert len(revar.load_dataset(path)) == 400
    resumed = revar.evaluate(Corridor(3), "uniform", episodes=450, horizon=9, resume=path)
    assert same_data(resumed.dataset, whole.dataset)


def test_an_exit_from_within_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"

    def leave(done: int, total: int) -> None:
        if done == 30:
            raise SystemExit

    with pytest.raises(SystemExit):
        revar.evaluate(
            Corridor(3), "uniform", episodes=50, horizon=9, seed=1, save=path, progress=leave
        )
    assert len(revar.load_dataset(path)) == 30


def test_a_second_interrupt_does_not_disturb_the_saving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.npz"
    handler = signal.getsignal(signal.SIGINT)
    save = files.save_dataset

    def press_again(*args: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        save(*args, **options)

    def press(done: int, total: int) -> None:
        if done == 30:
            monkeypatch.setattr("revar.evaluation.episode_file.save_dataset", press_again)
            os.kill(os.getpid(), signal.SIGINT)

    result = revar.evaluate(
        Corridor(3), "uniform", episodes=90, horizon=9, seed=1, save=path, progress=press
    )
    assert result.stopped == "interrupted"
    assert same_data(revar.load_dataset(path), result.dataset)
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_built_in_problem_comes_with_its_options_and_its_discount() -> None:
    soft = revar.find_problem("frozenlake", epsilon=0.5)
    result = revar.evaluate("frozenlake", None, episodes=400, seed=1, env_options={"epsilon": 0.5})
    assert result.task.discount == soft.mdp.discount == 0.99
    truth = revar.policy_value(soft.mdp, soft.policy)
    assert abs(result.value - truth) < 4 * result.standard_error
    larger = revar.evaluate("frozenlake", None, episodes=5, seed=1, env_options={"size": 8})
    assert larger.task.horizon == 200
    model = revar.evaluate(soft.mdp, soft.policy, episodes=5, seed=1, discount=0.5)
    assert model.task.discount == 0.5


class Lottery(gymnasium.Env[Any, Any]):
    """One step that pays 100 in one of 200 episodes."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> Any:
        return 0, 100.0 * (self.np_random.random() < 0.005), True, False, {}


def test_an_interval_of_width_zero_does_not_stop_early() -> None:
    held = 0
    for seed in range(20):
        result = revar.evaluate(
            Lottery(), "uniform", episodes=2000, horizon=1, half_width=0.2, seed=seed
        )
        assert result.episodes > 400
        held += result.interval[0] <= 0.5 <= result.interval[1]
    assert held >= 17
    never = revar.evaluate(Lottery(), "uniform", episodes=5, horizon=1, seed=1)
    assert never.standard_error == 0.0
    assert "nothing varied so far" in str(never)
    # Of five episodes: a chance of more would have shown a first reward, of 1, with 95% confidence.
    assert never.interval == pytest.approx((0.0, 1.0 - 0.05 ** (1 / 5)))


def test_intervals_hold_where_a_reward_is_rare() -> None:
    lake = revar.from_gymnasium("FrozenLake-v1")
    truth = revar.policy_value(lake, np.full((16, 4), 0.25))
    found = [
        revar.evaluate("FrozenLake-v1", "uniform", episodes=100, seed=seed) for seed in range(100)
    ]
    ends = np.array([result.interval for result in found])
    assert (ends[:, 0] >= 0.0).all()
    assert (ends[:, 1] > ends[:, 0]).all()
    assert ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum() >= 93


def test_actions_that_change_are_noticed_in_vectors_too() -> None:
    vector = gymnasium.vector.SyncVectorEnv([lambda: Faulty("actions")] * 2)
    with pytest.raises(EvaluationError, match="changed its actions"):
        revar.evaluate(vector, "uniform", episodes=50, horizon=9, seed=1)
