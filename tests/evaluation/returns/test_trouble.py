"""What goes wrong is said in a sentence, and complete episodes are kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.errors import InputError
from tests.evaluation.returns import worlds
from tests.evaluation.returns.worlds import evaluate


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "uniform"}, "strategy 'uniform' needs method='table'"),
        ({"limits": revar.Limits(max_ratio=2.0)}, "cannot keep limits="),
        ({"method": "critic", "bins": revar.Bins([[0.0]])}, "bins make a table"),
        ({"resets": -1}, "resets"),
        ({"prior": revar.Dataset.of([revar.Trajectory.of([0], [0], [1.0])])}, "prior is a Dataset"),
        ({"critics": [3]}, "critics has an int"),
        ({"critics": [{"linear": 1}]}, "critics has a dict; it must be"),
        ({"critics": {"linear": 1}}, "critics has a dict; it must be"),
        ({"critics": [dict]}, "critics has the class dict; it must be"),
        ({"critics": ["nowhere.npz"]}, "nowhere.npz: no such file"),
        ({"save": "data.txt"}, "saved as .npz or .parquet"),
    ],
)
def test_refused_before_the_first_episode(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as bad:
        evaluate(**options)
    assert not isinstance(bad.value, revar.EvaluationError)


def test_the_mean_return_has_no_use_for_critics() -> None:
    with pytest.raises(InputError, match="method 'mean' has no critics, so that critics="):
        revar.evaluate(worlds.make, worlds.steer, episodes=3, method="mean", critics=["linear"])


@pytest.mark.parametrize("how", [{}, {"environments": 2}, {"workers": 2, "engine": "inline"}])
def test_a_reward_that_is_no_number(how: Any, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    with pytest.raises(revar.EvaluationError, match=r"episode \d+: the environment gave") as caught:
        evaluate(env_options={"trouble": "reward", "when": 8}, save=path, **how)
    found = caught.value.result
    assert found.stopped == "error" and not found.complete and found.episodes >= 6
    assert len(revar.load_dataset(path)) == found.episodes


def test_resets_that_raise_leave_the_mean_return() -> None:
    with pytest.raises(revar.EvaluationError, match="RuntimeError in reset: no more") as caught:
        evaluate(env_options={"trouble": "reset", "when": 30})
    found = caught.value.result
    assert found.episodes == 24 and found.method == "mean"


class _Narrow(worlds.Drift):
    """Says that it stays within 1, and does not."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float64)


@pytest.mark.parametrize("how", [{}, {"environments": 2}, {"method": "mean"}])
def test_observations_outside_their_space_are_told(how: Any) -> None:
    found = evaluate(env=_Narrow, **how)
    reached = found.dataset.observations
    farthest = reached.max() if reached.max() > 1.0 else reached.min()
    assert f"number 0 of some is {farthest:g}, outside [-1, 1] of their space" in found.table()
    assert found.value == evaluate(env=worlds.make, **how).value
    assert "outside" not in evaluate(**how).table()


def test_features_of_changing_size() -> None:
    calls: list[int] = []

    def features(observation: Any) -> Any:
        calls.append(1)
        return [0.0] * (1 if len(calls) < 50 else 2)

    with pytest.raises(revar.EvaluationError, match="2 features of an observation") as caught:
        evaluate(features=features)
    assert caught.value.result.episodes > 2


class _Running:
    """Features less the mean of all that were asked for so far."""

    def __init__(self) -> None:
        self.count, self.sum = 0, 0.0

    def __call__(self, observation: Any) -> Any:
        number = float(observation[0]) if isinstance(observation, np.ndarray) else ord(observation)
        self.count, self.sum = self.count + 1, self.sum + number
        return [number - self.sum / self.count]


@pytest.mark.parametrize("how", [{}, {"resets": 0}, {"workers": 2, "engine": "inline"}])
def test_features_that_change_leave_the_mean_return(how: Any) -> None:
    with pytest.raises(revar.EvaluationError, match="not give the same numbers twice") as caught:
        evaluate(features=_Running(), **how)
    found = caught.value.result
    assert found.episodes == 24 and found.method == "mean"
    assert found.value == evaluate(method="mean").value


def test_features_that_change_where_observations_are_not_kept() -> None:
    from tests.evaluation.returns.test_resuming import Spelled

    with pytest.raises(revar.EvaluationError, match="episode 1: the features function") as caught:
        evaluate(env=Spelled(), policy=worlds.other, features=_Running())
    assert caught.value.result.episodes == 1


def test_a_critic_that_raises_leaves_the_episodes() -> None:
    def broken(inputs: Any) -> Any:
        raise KeyError("where")

    with pytest.raises(revar.EvaluationError, match="a critic raised KeyError") as caught:
        evaluate(critics=["linear", broken])
    assert caught.value.result.episodes == 24


def test_a_policy_that_does_not_sum_to_one() -> None:
    with pytest.raises(revar.EvaluationError, match="sum") as caught:
        evaluate(policy=lambda observation: [0.5, 0.6])
    assert caught.value.result is None


def test_free_episodes_do_not_go_on_for_ever() -> None:
    with pytest.raises(revar.EvaluationError, match="in a row have cost nothing"):
        evaluate(budget=1.0, cost=lambda observation, action: 0.0, method="mean", horizon=1)


def test_a_second_ctrl_c_while_critics_learn_leaves_the_mean_return() -> None:
    import signal

    def impatient(inputs: Any) -> Any:
        if len(inputs) > 2:  # not yet when it is tried out
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return inputs[:, 0]

    found = evaluate(critics=["linear", impatient])
    assert found.stopped == "interrupted" and found.method == "mean" and found.episodes == 24
