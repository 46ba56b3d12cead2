"""Bad input, faults, interrupts: one sentence, and nothing that is complete is lost."""

import os
import signal
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar import EvaluationError
from revar.errors import InputError, MissingExtraError
from tests.cli.running import take_away
from tests.collection.test_collection import same_data
from tests.environments.custom import HALF, Corridor, Faulty


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("nan", r"^episode \d+: the environment gave the reward nan; it must be finite$"),
        ("raise", r"^episode \d+: the environment raised RuntimeError in step: the simulator"),
        ("actions", r"changed its actions from Discrete\(2\) to Discrete\(3\)"),
        ("observation", r"observation 'nowhere' does not belong to Discrete\(3\)"),
        ("between", r"observation 1.5 does not belong to Discrete\(3\)"),
        ("beyond", r"observation 99 does not belong to Discrete\(3\)"),
        ("huge", r"^episode \d+: the environment gave the reward 1e\+80; its size must be"),
    ],
)
def test_faults_in_the_middle_keep_what_is_complete(
    fault: str, sentence: str, tmp_path: Path
) -> None:
    whole = revar.evaluate(Faulty("none"), "uniform", episodes=50, horizon=9, seed=1)
    path = tmp_path / "data.npz"
    with pytest.raises(EvaluationError, match=sentence) as caught:
        revar.evaluate(Faulty(fault), "uniform", episodes=50, horizon=9, seed=1, save=path)
    result = caught.value.result
    assert result is not None
    kept = len(result.dataset)
    assert 3 < kept < 20
    assert same_data(result.dataset, whole.dataset.head(kept))
    assert result.stopped == "error"
    assert not result.complete
    assert result.statistics.episodes == kept
    assert same_data(revar.load_dataset(path), result.dataset)
    direct = revar.evaluate_data(result.dataset, "uniform", horizon=9)
    assert result.value == pytest.approx(direct.value)


def test_a_fault_in_one_of_several_environments_keeps_complete_episodes() -> None:
    def made(fault: str) -> Any:
        return lambda: Faulty(fault)

    vector = gymnasium.vector.SyncVectorEnv([made("none"), made("nan"), made("none")])
    with pytest.raises(EvaluationError, match="reward nan") as caught:
        revar.evaluate(vector, "uniform", episodes=50, horizon=9, seed=1)
    assert caught.value.result is not None
    assert len(caught.value.result.dataset) > 3


def late(row: Any) -> Any:
    """A policy that is right until the last state of the corridor is seen."""
    return lambda seen: row if seen == 2 else HALF


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ([0.5, 0.4], r"policy in state 2 gives probabilities that sum to 0.9; they must sum to 1"),
        ([0.5, np.nan], r"policy in state 2 gives action 1 the probability nan"),
        ([1.5, -0.5], r"policy in state 2 gives action 1 the probability -0.5"),
        ([1.0], r"policy in state 2 gives probabilities of shape \(1,\); there are 2 actions"),
        ("left", "the policy gives 'left' at observation 2, which is no row .* and no action"),
        (["l", "r"], "policy in state 2 gives is not an array of numbers"),
        ([0.5, [0.5]], r"policy in state 2 gives \[0.5, \[0.5\]\], which is no row"),
    ],
)
def test_a_policy_that_is_wrong_somewhere(row: Any, sentence: str) -> None:
    def start_late(seen: Any) -> Any:
        return late(row)(seen)

    with pytest.raises(EvaluationError, match=sentence):
        revar.evaluate(Corridor(3), start_late, episodes=50, horizon=9, seed=1)


def test_episodes_before_a_ragged_answer_are_kept() -> None:
    class Widening(Corridor):
        """Meets its last state in episode 5 for the first time."""

        episode = -1

        def reset(self, **options: Any) -> Any:
            self.episode += 1
            return super().reset(**options)

        def step(self, action: Any) -> Any:
            seen, reward, _, _, info = super().step(action)
            return (2 if self.episode == 5 else seen), reward, self.episode < 5, False, info

    with pytest.raises(EvaluationError, match="which is no row of probabilities") as caught:
        revar.evaluate(Widening(), late([0.5, [0.5]]), episodes=50, horizon=9, seed=1)
    assert caught.value.result is not None
    assert caught.value.result.episodes == 5


def test_a_policy_that_raises() -> None:
    def policy(seen: Any) -> Any:
        if seen == 2:
            raise KeyError("weights")
        return HALF

    with pytest.raises(EvaluationError, match="the policy raised KeyError at observation 2"):
        revar.evaluate(Corridor(3), policy, episodes=50, horizon=9, seed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": np.full((4, 2), 0.5)}, r"policy has shape \(4, 2\); .* \(3, 2\)"),
        ({"policy": "nobody"}, "policy 'nobody' is not known"),
        ({"policy": {}}, "policy is a dict"),
        ({"strategy": "flwo"}, "did you mean 'flow'"),
        ({"strategy": "oracle"}, "needs the true model"),
        ({"episodes": 0}, "episodes is 0"),
        ({"horizon": 0}, "horizon is 0"),
        ({"discount": 1.5}, "discount is 1.5"),
        ({"half_width": 0.0}, "half_width is 0.0; it must be positive"),
        ({"half_width": "x"}, "half_width is 'x'; it must be positive"),
        ({"confidence": 95}, "confidence is 95"),
        ({"seed": -1}, "seed is -1"),
        ({"environments": 0}, "environments is 0"),
        ({"save": "nowhere/at/all.npz"}, "there is no folder"),
        ({"save": "data.csv"}, "saved as .npz or .parquet"),
        ({"resume": "missing.npz"}, "no such file"),
        ({"prior": [1, 2]}, "prior is a list; it must be a Dataset or its file"),
    ],
)
def test_bad_options_are_refused_before_anything_is_played(
    options: dict[str, Any], message: str
) -> None:
    env = Faulty("none")
    arguments: dict[str, Any] = {"policy": "uniform", "episodes": 5, "horizon": 9, **options}
    with pytest.raises(InputError, match=message):
        revar.evaluate(env, **arguments)
    assert env.steps == 0


def test_where_nothing_could_be_saved_nothing_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = Faulty("none")
    folder = tmp_path / "data.npz"
    folder.mkdir()
    with pytest.raises(InputError, match=r"data\.npz is a folder"):
        revar.evaluate(env, "uniform", episodes=5, horizon=9, save=folder)
    take_away(monkeypatch, "pyarrow")
    with pytest.raises(MissingExtraError, match="this needs pyarrow"):
        revar.evaluate(env, "uniform", episodes=5, horizon=9, save=tmp_path / "data.parquet")
    assert env.steps == 0


def test_only_discrete_actions() -> None:
    env = Corridor(3)
    env.action_space = spaces.Box(0, 1, (1,))
    with pytest.raises(InputError, match="they must be Discrete"):
        revar.evaluate(env, "uniform", episodes=5, horizon=9, method="table")


class Signalling(Corridor):
    """Sends this process Ctrl-C in its step number `when`."""

    def __init__(self, when: int) -> None:
        super().__init__()
        self.when = when
        self.steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps == self.when:
            os.kill(os.getpid(), signal.SIGINT)
        return super().step(action)


@pytest.mark.parametrize("environments", [1, 3])
@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_an_interrupted_run_is_resumed_to_the_same_numbers(
    environments: int, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"data{suffix}"

    def run(when: int, **options: Any) -> revar.EvaluationResult:
        env: Any = Signalling(when)
        if environments > 1:
            env = gymnasium.vector.SyncVectorEnv(
                [lambda: Signalling(when), *[lambda: Signalling(-1)] * (environments - 1)]
            )
        return revar.evaluate(env, "uniform", episodes=250, horizon=9, **options)

    before = signal.getsignal(signal.SIGINT)
    whole = run(-1, seed=6)
    stopped = run(150, seed=6, save=path)
    assert signal.getsignal(signal.SIGINT) is before
    assert stopped.stopped == "interrupted"
    assert not stopped.complete
    assert 10 < stopped.episodes < 200
    assert "(interrupted)" in str(stopped)
    again = run(80, resume=path)  # and once more
    assert stopped.episodes <= again.episodes < 250
    resumed = run(-1, resume=path)
    assert resumed.complete
    assert same_data(resumed.dataset, whole.dataset)
    assert (resumed.value, resumed.standard_error) == (whole.value, whole.standard_error)
    assert resumed.checkpoints == whole.checkpoints
    assert same_data(revar.load_dataset(path), whole.dataset)


def test_resuming_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    revar.evaluate(Corridor(3), "uniform", episodes=20, horizon=9, seed=1, save=path)
    with pytest.raises(InputError, match="collected with horizon = 9; now it is 8"):
        revar.evaluate(Corridor(3), "uniform", episodes=20, horizon=8, resume=path)
    with pytest.raises(InputError, match="collected with seed = 1; now it is 2"):
        revar.evaluate(Corridor(3), "uniform", episodes=20, horizon=9, seed=2, resume=path)
    plain = tmp_path / "plain.npz"
    revar.save_dataset(revar.load_dataset(path), plain)
    with pytest.raises(InputError, match="was not collected by an evaluation; give it as prior"):
        revar.evaluate(Corridor(3), "uniform", episodes=20, horizon=9, resume=plain)
    more = revar.evaluate(Corridor(3), "uniform", episodes=30, horizon=9, resume=path)
    assert more.episodes == 30


def test_an_interrupt_before_the_first_episode_says_so() -> None:
    with pytest.raises(EvaluationError, match="before the first episode was complete"):
        revar.evaluate(Signalling(1), "uniform", episodes=20, horizon=9, seed=0)
