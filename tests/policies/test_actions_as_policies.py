"""Actions in place of probabilities, and models that Stable-Baselines3 has saved."""

import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

import revar
from revar.errors import InputError, MissingExtraError
from revar.policies.forms import load_policy
from tests.environments.custom import Corridor

RIGHT = np.eye(2)[[1, 1, 1]]  # in every state of the corridor


class FromTwo(Corridor):
    """The corridor with actions that are called 2 and 3."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = gymnasium.spaces.Discrete(2, start=2)

    def step(self, action: Any) -> Any:
        return super().step(action - 2)


def value(policy: Any, env: Any = None, **options: Any) -> float:
    settings: dict[str, Any] = {"episodes": 30, "horizon": 9, "seed": 1, "strategy": "on-policy"}
    return revar.evaluate(env or Corridor(3), policy, **settings, **options).value


@pytest.mark.parametrize("method", ["table", "mean"])
@pytest.mark.parametrize(
    "policy",
    [
        [1, 1, 1],
        np.array([1, 1, 1], dtype=np.uint8),
        np.array([True, True, True]),
        lambda _seen: 1,
        lambda _seen: np.int64(1),
        lambda _seen: np.array([1]),
        revar.epsilon_greedy([1, 1, 1], 0.0, 2),
    ],
)
def test_an_action_is_taken_for_certain(policy: Any, method: str) -> None:
    assert value(policy, method=method) == value(RIGHT, method=method)


@pytest.mark.parametrize("method", ["table", "mean"])
@pytest.mark.parametrize("policy", [[3, 3, 3], lambda _seen: 3])
def test_actions_are_called_as_the_environment_calls_them(policy: Any, method: str) -> None:
    assert value(policy, FromTwo(), method=method) == value(RIGHT, FromTwo(), method=method)
    with pytest.raises(InputError, match=r"the action 1.*; actions are 2 to 3"):
        value([1, 1, 1] if isinstance(policy, list) else lambda _seen: 1, FromTwo(), method=method)


@pytest.mark.parametrize("method", ["table", "mean"])
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0.0, 1.0, 1.0], r"shape \(3,\), .*no actions, which .*revar.epsilon_greedy makes them"),
        ([0, 1, 2], "policy has the action 2; actions are 0 to 1"),
        ([0, 1], r"policy has shape \(2,\); .* it is \(3, 2\), or \(3,\) of actions"),
        (lambda _seen: -1, "the policy gives the action -1 at observation 0; actions are 0 to 1"),
        (lambda _seen: None, "the policy gives None at observation 0, .* no action"),
        (lambda _seen: 1.0, "the policy gives 1.0 at observation 0, .* no action"),
    ],
)
def test_what_are_no_actions_is_refused(policy: Any, message: str, method: str) -> None:
    with pytest.raises(InputError, match=message):
        value(policy, method=method)


def test_probabilities_of_a_single_action_stay_probabilities() -> None:
    mdp = revar.TabularMDP(np.zeros((1, 1, 1)), 1.0, 0.5, [1.0], 1)
    assert revar.evaluate(mdp, lambda _seen: [1], episodes=9, strategy="on-policy").episodes == 9


def test_stored_episodes_take_actions_too() -> None:
    collected = revar.evaluate(
        Corridor(3), "uniform", episodes=60, horizon=9, seed=1, strategy="uniform"
    )
    expected = revar.evaluate_data(collected.dataset, RIGHT, horizon=9)
    for policy in ([1, 1, 1], lambda _state: 1):
        assert revar.evaluate_data(collected.dataset, policy, horizon=9).value == expected.value


def test_a_function_may_give_a_multi_discrete_action() -> None:
    from revar.environments.spaces import layout_of
    from revar.policies.sampled import sampled_policy

    actions = layout_of(gymnasium.spaces.MultiDiscrete([3, 4], start=[0, 1]), "action")
    seen = layout_of(gymnasium.spaces.Discrete(2))
    drawn = sampled_policy(lambda _seen: [2, 1], seen, actions).draw(
        [0], [np.random.default_rng(1)]
    )
    assert np.array_equal(drawn.actions[0], [2, 1])


def save_model(path: Path, **stored: Any) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        known = {"policy_class": {"__module__": "stable_baselines3.common.policies"}}
        archive.writestr("data", json.dumps(known | stored))
    return str(path)


class Saved:
    """A model as a stand-in for Stable-Baselines3 loads it."""

    loaded: tuple[str, str] | None = None

    @classmethod
    def load(cls, path: str, device: str) -> "Saved":
        made = cls()
        made.loaded = (path, device)
        return made

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[Any, None]:
        assert deterministic
        return np.int64(1), None


class Damaged(Saved):
    @classmethod
    def load(cls, path: str, device: str) -> "Saved":
        raise EOFError("Ran out of input\nin the middle")


@pytest.mark.parametrize(
    ("field", "algorithm"),
    [
        ("clip_range", "PPO"),
        ("gae_lambda", "A2C"),
        ("exploration_fraction", "DQN"),
        ("target_entropy", "SAC"),
        ("target_policy_noise", "TD3"),
    ],
)
def test_a_model_is_loaded_by_its_algorithm(
    field: str, algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ModuleType("stable_baselines3")
    vars(library)[algorithm] = Saved
    monkeypatch.setitem(sys.modules, "stable_baselines3", library)
    stored = {field: 1.0} | ({"gae_lambda": 0.95} if algorithm == "PPO" else {})  # as A2C does
    path = save_model(tmp_path / "model.zip", **stored)
    assert load_policy(path).loaded == (path, "cpu")
    assert value(path) == value(RIGHT)
    vars(library)[algorithm] = Damaged
    with pytest.raises(InputError, match=rf"as {algorithm} .* \(EOFError: Ran out of input\)$"):
        load_policy(path)


def test_models_need_stable_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    path = save_model(tmp_path / "model.zip", clip_range=0.2)
    with pytest.raises(MissingExtraError, match=r"not installed: pip install stable-baselines3$"):
        load_policy(path)


def test_no_file_of_another_kind_is_handed_to_its_loader(tmp_path: Path) -> None:
    for name, content in {"data": b"not JSON", "other": b"{}", "list": b"[]"}.items():
        with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
            archive.writestr("data" if name == "list" else name, content)
        with pytest.raises(InputError, match="is no model that Stable-Baselines3 has saved"):
            load_policy(str(tmp_path / "model.zip"))
