"""Evaluating a policy where observations are not discrete."""

from math import isfinite
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats

import revar
from revar.errors import InputError
from revar.evaluation.settings import CollectionSettings, find_method
from tests.evaluation.returns import worlds
from tests.evaluation.returns.worlds import evaluate


@pytest.fixture(scope="module")
def plain() -> revar.EvaluationResult:
    return evaluate()


def same(one: Any, other: Any) -> bool:
    names = ("start", "observations", "actions", "rewards", "noise", "numbers")
    return all(
        np.array_equal(getattr(one.dataset, name), getattr(other.dataset, name)) for name in names
    )


def test_the_method_follows_from_the_spaces(plain: revar.EvaluationResult) -> None:
    assert plain.method == "critic"
    assert evaluate(method="mean").method == "mean"
    for env, settings in (
        (worlds.make, CollectionSettings(bins=revar.Bins([[0.0]]))),
        ("gridworld", CollectionSettings()),
        ("FrozenLake-v1", CollectionSettings()),
    ):
        assert find_method(env, "uniform", settings) == "table"
    lake = revar.evaluate("FrozenLake-v1", "uniform", episodes=10, seed=0, method="mean")
    assert lake.method == "mean" and lake.episodes == 10
    pushed = evaluate(env_options={"pushes": True}, policy=worlds.gaussian())
    assert pushed.method == "critic" and pushed.dataset.noise.shape[1] == 1


def test_the_mean_return_has_the_interval_of_student() -> None:
    found = evaluate(method="mean", discount=0.9)
    returns = found.dataset.returns(0.9)
    assert found.value == pytest.approx(returns.mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(returns.std(ddof=1) / np.sqrt(24), rel=1e-12)
    reach = stats.t.ppf(0.975, 23) * found.standard_error
    assert found.half_width == pytest.approx(reach, rel=1e-9)
    assert found.gain == 1.0 and "mean return" in found.table()


def test_critics_narrow_the_interval_around_the_mean_of_the_same_episodes(
    plain: revar.EvaluationResult,
) -> None:
    mean = evaluate(method="mean")
    assert same(plain, mean)
    assert plain.return_findings.corrected.mean_return == pytest.approx(mean.value)
    assert plain.gain == pytest.approx((mean.standard_error / plain.standard_error) ** 2)
    assert plain.gain > 1.2 and plain.gain_per_step == plain.gain
    assert abs(plain.value - mean.value) < 4 * mean.standard_error
    shown = plain.table()
    for word in ("mean return", "gain", "explained by actions", "by the start state", "fitting"):
        assert word in shown
    assert "240" in shown  # resets


@pytest.mark.parametrize(
    "how",
    [
        {"environments": 3},
        {"workers": 2, "engine": "inline"},
        {"workers": 2, "engine": "inline", "batch": 5},
    ],
)
@pytest.mark.parametrize("budget", [{}, {"steps": 100}, {"budget": 30.0, "cost": "fuel"}])
def test_the_same_episodes_whoever_plays(how: Any, budget: Any) -> None:
    alone = evaluate(method="mean", **budget)
    together = evaluate(method="mean", **budget, **how)
    assert same(alone, together)
    assert together.value == alone.value and together.spent == alone.spent


def test_processes_play_the_same(plain: revar.EvaluationResult) -> None:
    played = evaluate(workers=2, env="tests.evaluation.returns.worlds:make", resets=240)
    assert same(plain, played) and played.value == plain.value


def test_budgets() -> None:
    steps = evaluate(method="mean", steps=100)
    assert steps.spent == steps.steps >= 100
    assert steps.dataset.start[-2] < 100  # the last episode was begun while anything was left
    paid = evaluate(method="mean", budget=30.0, cost=worlds.fuel)
    costs = np.add.reduceat(paid.dataset.amounts["cost"], paid.dataset.start[:-1])
    assert paid.spent == pytest.approx(costs.sum()) and costs.sum() >= 30.0 > costs[:-1].sum()


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"steps": 700}, "times as many steps"),
        ({"budget": 200.0, "cost": "fuel"}, "times the cost"),
        ({"episodes": 100}, "times as many episodes"),
    ],
)
def test_the_gain_is_in_the_unit(budget: Any, words: str) -> None:
    found = evaluate(critics=["linear"], **budget)
    assert f"the mean return would need {found.gain:.2f} {words}" in found.table()


def test_it_stops_at_a_half_width_that_allows_for_looks() -> None:
    found = evaluate(method="mean", episodes=1000, half_width=0.5)
    assert found.stopped == "half-width" and found.episodes in (100, 200, 400, 800)
    assert found.half_width <= 0.5
    z = stats.norm.ppf(stats.t.cdf(found.quantile, found.episodes - 1))
    assert 2.4 < z < 2.6  # Pocock's, of 5 looks
    assert [point.episodes for point in found.checkpoints][-1] == found.episodes
    assert "enough for a half-width of 0.5" in found.table()


def test_resets_by_default_and_by_number(plain: revar.EvaluationResult) -> None:
    assert plain.return_findings.resets == 240
    assert evaluate(resets=7).return_findings.resets == 7
    for env in (worlds.make(), worlds.make, "tests.evaluation.returns.worlds:make"):
        handed = evaluate(env=env)
        assert handed.return_findings.resets == 0
        assert "handed in" in handed.table()


def test_expensive_resets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from revar.evaluation.returns import resets

    monkeypatch.setattr(resets, "CHEAP_SECONDS", 0.0)
    monkeypatch.setattr(resets, "CHEAP_SHARE", 0.0)
    found = evaluate()
    assert found.return_findings.resets == 0 and "because one takes" in found.table()


def test_features_are_what_critics_see() -> None:
    found = evaluate(features=worlds.squares)
    assert found.dataset.features.shape == (found.steps, 2)
    assert found.return_findings.experience.inputs.shape[1] == 2


def test_what_only_a_table_knows(plain: revar.EvaluationResult) -> None:
    with pytest.raises(AttributeError, match="method 'critic' has no table of states"):
        _ = plain.statistics
    assert plain.kept == ()


def test_a_figure(plain: revar.EvaluationResult, tmp_path: Path) -> None:
    plain.plot(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000
    evaluate(method="mean").plot(tmp_path / "mean.png")
    assert (tmp_path / "mean.png").stat().st_size > 1000


def test_progress_says_what_is_going_on() -> None:
    said: list[Any] = []
    evaluate(progress=lambda done, total, what: said.append((done, total, what)))
    assert {"collecting", "fitting critics"} == {what for _, _, what in said}
    numbers: list[Any] = []
    evaluate(method="mean", progress=lambda done, total: numbers.append((done, total)))
    assert all(0 <= done <= total == 24 for done, total in numbers) and numbers


def test_one_episode_has_no_interval() -> None:
    found = evaluate(episodes=1)
    assert not isfinite(found.half_width) and "from 1 episode" in str(found)


def test_names_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="method is 'tree'; it must be one of"):
        evaluate(method="tree")
    with pytest.raises(InputError, match="there are no critics 'forest'"):
        evaluate(critics=["forest"])
    with pytest.raises(InputError, match="critics is for method 'critic'"):
        revar.evaluate("gridworld", None, episodes=3, critics=["linear"])


class Pusher:
    """Says what noise its action was made of, and nothing in advance."""

    def sample(self, observation: Any, rng: np.random.Generator) -> Any:
        noise = rng.standard_normal(1)
        return np.clip(-0.5 * observation + 0.3 * noise, -1.0, 1.0), noise


def test_a_policy_that_is_an_object_with_sample() -> None:
    found = evaluate(env_options={"pushes": True}, policy=Pusher())
    assert found.method == "critic" and found.dataset.noise.shape[1] == 1
    assert found.return_findings.corrected.weights


class Wages(worlds.Drift):
    """Every step is paid the same, but for next to nothing."""

    def __init__(self, noise: float) -> None:
        super().__init__()
        self.noise = noise

    def step(self, action: Any) -> Any:
        observation, _, _, _, notes = super().step(action)
        reward = 0.1 + self.noise * float(self.np_random.normal())
        return observation, reward, False, False, notes


@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-5])
def test_returns_that_hardly_differ_stay_as_they_are(noise: float) -> None:
    found = evaluate(env=lambda: Wages(noise), horizon=worlds.HORIZON)
    corrected = found.return_findings.corrected
    np.testing.assert_array_equal(corrected.corrected, corrected.returns)
    assert found.value == pytest.approx(0.8, abs=1e-3)
    assert found.standard_error == pytest.approx(found.return_findings.corrected.mean_return_error)


class _Played:
    """Acts, and tells no probabilities."""

    def sample(self, observation: Any, rng: Any) -> Any:
        return int(rng.random() < 0.5), None


@pytest.mark.parametrize("policy", [_Played(), revar.DeterministicPolicy(lambda seen: 1)])
def test_policies_without_probabilities_are_played_where_a_table_would_do(policy: Any) -> None:
    lake: dict[str, Any] = {"episodes": 12, "seed": 0, "critics": ["linear"]}
    assert revar.evaluate("FrozenLake-v1", policy, **lake).method == "critic"
    with pytest.raises(InputError, match="tells no probabilities; a table needs them"):
        revar.evaluate("FrozenLake-v1", policy, episodes=12, method="table")
    advice = revar.advise("FrozenLake-v1", policy, half_width=0.1, pilot=8, seed=0)
    assert advice.mean_return.unit == "episodes"


class Normalised(worlds.Drift):
    """Divides observations by what it has seen so far."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.squares = 1.0, 1.0

    def _divide(self, seen: Any) -> Any:
        self.count, self.squares = self.count + 1.0, self.squares + float(seen[0]) ** 2
        return seen / np.sqrt(self.squares / self.count)

    def reset(self, **options: Any) -> Any:
        seen, notes = super().reset(**options)
        return self._divide(seen), notes

    def step(self, action: Any) -> Any:
        seen, *rest = super().step(action)
        return self._divide(seen), *rest


def normalise(**options: Any) -> Normalised:
    return Normalised(**options)


gymnasium.register("Normalised-v0", entry_point=normalise, disable_env_checker=True)


@pytest.mark.parametrize(
    "how", [{}, {"resets": 100}, {"workers": 2, "engine": "inline"}, {"environments": 2}]
)
def test_no_resets_where_observations_drift(how: Any) -> None:
    found = evaluate(env="Normalised-v0", horizon=8, **how)
    assert found.return_findings.resets == 0
    assert "none, as the reset of an episode gives another observation" in found.table()
    assert evaluate(**how).return_findings.resets == how.get("resets", 240)


def test_no_resets_in_a_resumed_run_where_observations_drift(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    evaluate(env="Normalised-v0", horizon=8, episodes=10, save=path)
    again = evaluate(env="Normalised-v0", horizon=8, resume=path)
    assert again.return_findings.resets == 0 and "as the reset of an episode" in again.table()
    given: dict[str, Any] = {"critics": ["linear"], "env": "Normalised-v0", "resets": 50}
    stored = revar.evaluate_data(path, None, horizon=8, **given)
    assert stored.return_findings.resets == 0


class Lamps(worlds.Drift):
    """Four numbers of up to 100 values, each drawn anew; the reward is the first of them."""

    observation_space: Any = spaces.MultiDiscrete([100] * 4)

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        return self.np_random.integers(100, size=4), {}

    def step(self, action: Any) -> Any:
        seen = self.np_random.integers(100, size=4)
        return seen, seen[0] / 100.0, False, False, {}


def test_spaces_too_large_for_a_table_have_critics() -> None:
    lamps: dict[str, Any] = {"episodes": 20, "seed": 1, "horizon": 4}
    found = revar.evaluate(Lamps, worlds.other, critics=["linear"], **lamps)
    assert found.method == "critic" and found.half_width < 0.5
    by_strategy = revar.evaluate(Lamps, worlds.other, strategy="on-policy", **lamps)
    assert by_strategy.method.startswith("corrected mean return: ")
    low, high = by_strategy.interval
    assert low < found.value < high
    tracked = revar.evaluate(Lamps, worlds.other, strategy="cb-var", **lamps)
    assert tracked.method == "table"
    assert 'method="critic" plays the policy itself' in str(tracked)
    small = CollectionSettings(limits=revar.Limits(max_ratio=2.0))
    assert find_method(Lamps, worlds.other, small) == "table"
