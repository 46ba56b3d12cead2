"""The diagnostic for lumped observations: silent where they are fine, loud where they are not."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar import Bins
from revar.errors import InputError
from revar.evaluation.aggregation import AggregationCheck
from tests.environments.custom import HALF, Corridor, Faulty


class Drift(gymnasium.Env[Any, Any]):
    """Moves by a tenth each step from 0.05 to the end at 1; the reward is paid at the end."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 2.0, (1,))
        self.action_space = spaces.Discrete(2)
        self.place = 0.0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 0.05
        return np.array([self.place], dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        self.place += 0.1 + 0.001 * float(action)
        ended = self.place > 1.0
        reward = float(0.1 * self.np_random.normal() + ended)
        return np.array([self.place], dtype=np.float32), reward, ended, False, {}


def check(bins: Bins) -> Any:
    def policy(observation: Any) -> Any:
        return [0.5, 0.5]

    result = revar.evaluate(Drift(), policy, episodes=1500, horizon=12, bins=bins, seed=0)
    return revar.check_aggregation(result, Drift(), policy, episodes=1500)


def made_up(value: float, mean: float, error: float) -> AggregationCheck:
    return AggregationCheck(value, mean, error, 100)


def test_without_noise_every_difference_is_bias_and_without_episodes_none() -> None:
    assert "too coarse" in str(made_up(1.0, 5.0, 0.0))
    assert made_up(1.0, 5.0, 0.0).deviations == -np.inf
    assert "no sign of bias" in str(made_up(0.3, 0.1 + 0.2, 0.0))
    assert "too few episodes to tell" in str(made_up(1.0, 5.0, np.inf))
    result = revar.evaluate(Corridor(3), "uniform", episodes=20, horizon=9, seed=0)
    once = revar.check_aggregation(result, Corridor(3), "uniform", episodes=1)
    assert "too few episodes to tell" in str(once)


class Model:
    def predict(self, observation: Any, deterministic: bool = False) -> Any:
        return np.array(1), None


def test_policies_in_every_form() -> None:
    result = revar.evaluate(Corridor(3), "uniform", episodes=20, horizon=9, seed=0)

    def mean_of(policy: Any) -> float:
        return revar.check_aggregation(result, Corridor(3), policy, episodes=30).mean_return

    assert mean_of("uniform") == mean_of(np.full((3, 2), 0.5)) == mean_of(lambda seen: HALF)
    assert mean_of(Model()) == mean_of(lambda seen: [0.0, 1.0]) != mean_of("uniform")
    bins = Bins.uniform([0.0], [1.0], [10])
    binned = revar.evaluate(Drift(), "uniform", episodes=20, horizon=12, bins=bins, seed=0)
    table = np.full((10, 2), 0.5)
    revar.check_aggregation(binned, Drift(), table, episodes=5, bins=bins)


@pytest.mark.parametrize(
    ("env", "policy", "sentence"),
    [
        (Corridor(3), lambda seen: [0.5, 0.4], "the policy at observation 0 .* sum to 0.9"),
        (Corridor(3), lambda seen: [0.5, np.nan], "gives action 1 the probability nan"),
        (Corridor(3), lambda seen: [1.0], "gives 1 probabilities; there are 2 actions"),
        (Corridor(3), lambda seen: 1 / 0, "the policy raised ZeroDivisionError at observation 0"),
        (Faulty("raise"), "uniform", "the environment raised RuntimeError in step"),
        (Faulty("nan"), "uniform", "the environment gave the reward nan"),
    ],
)
def test_faults_are_one_sentence(env: Any, policy: Any, sentence: str) -> None:
    result = revar.evaluate(Corridor(3), "uniform", episodes=20, horizon=9, seed=0)
    with pytest.raises(InputError, match=sentence):
        revar.check_aggregation(result, env, policy)


class Coin(gymnasium.Env[Any, Any]):
    """Pays 1 if the action is the side that a coin shows, thrown after it."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, float((self.np_random.random() < 0.5) == (action == 0)), True, False, {}


def test_actions_are_not_drawn_from_the_environments_stream() -> None:
    result = revar.evaluate(Coin(), "uniform", episodes=50, horizon=1, seed=0)
    check = revar.check_aggregation(result, Coin(), "uniform", episodes=400, seed=0)
    assert check.mean_return == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(400))


def test_fine_bins_pass_and_coarse_ones_do_not() -> None:
    """In one bin an episode could end at any step, or never: the end's reward is misjudged."""
    fine = check(Bins.uniform([0.0], [1.0], [10]))
    assert abs(fine.deviations) < 3
    assert "no sign of bias" in str(fine)
    coarse = check(Bins([[]]))
    assert abs(coarse.deviations) > 3
    assert "too coarse" in str(coarse)


def run(env: Any = Drift, bins: Bins | None = None, **options: Any) -> revar.EvaluationResult:
    settings: dict[str, Any] = {"strategy": "on-policy", "horizon": 12, "seed": 0} | options
    if "budget" not in settings:
        settings.setdefault("episodes", 400)
    return revar.evaluate(env, "uniform", bins=bins or Bins([[]]), **settings)


def test_evaluate_checks_its_bins() -> None:
    """Some more episodes show the bias of one bin, and say what they could not show."""
    coarse, fine = run(), run(bins=Bins.uniform([0.0], [1.0], [10]))
    check = coarse.table_findings.aggregation
    assert check is not None and check.episodes == 200 and check.biased
    assert "biased, because bins are too coarse" in str(coarse)
    other = fine.table_findings.aggregation
    assert other is not None and not other.biased
    assert other.visible_bias == pytest.approx(3.84 * other.standard_error)
    power = f"one below {other.visible_bias:.2g} would hardly be seen"
    assert power in fine.table() and power in str(fine)


def test_environments_that_are_handed_in_are_checked_too() -> None:
    for env in (Drift(), gymnasium.vector.SyncVectorEnv([Drift] * 3)):
        check = run(env, episodes=100).table_findings.aggregation
        assert check is not None and check.episodes == 100 and check.biased
    few = run(Drift(), episodes=5).table_findings.aggregation
    assert few is not None and few.episodes == 20


class Worn(Drift):
    """Can be reset so many times."""

    def __init__(self, resets: int) -> None:
        super().__init__()
        self.left = resets

    def reset(self, **options: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("worn out")
        return super().reset(**options)


def test_what_was_not_checked_is_said() -> None:
    worn = run(Worn(30), episodes=30)
    assert worn.complete and worn.table_findings.aggregation is None
    sentence = "bins were not checked: the environment raised RuntimeError in reset: worn out"
    assert sentence in str(worn) and sentence in worn.table()
    costly = run(budget=40.0, cost=lambda seen, action: 1.0)
    assert "bins were not checked: more steps would have a cost" in str(costly)
