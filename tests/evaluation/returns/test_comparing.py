"""Policies compared by whole episodes that start alike."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revar
from revar.errors import InputError
from revar.evaluation.returns.paired import LawsInTurn
from revar.model.law import Categorical, Law, Normal
from tests.evaluation.returns import worlds

RUNS = 30
LEAST_HELD = 25  # fewer have a chance of 0.3% if 95% hold
POLICIES = {"steer": worlds.steer, "other": worlds.other}
PUSHES = {
    "drawn": worlds.gaussian(),
    "sure": revar.DeterministicPolicy(lambda observation: -0.5 * observation),
}


def compare(policies: Any = None, **options: Any) -> revar.ComparisonResult:
    settings: dict[str, Any] = {"episodes": 40, "seed": 3, "method": "critic"} | options
    if settings["method"] == "critic":
        settings.setdefault("critics", ["linear"])
    return revar.compare(settings.pop("env", worlds.make), policies or POLICIES, **settings)


def same(one: Any, other: Any) -> bool:
    return bool(
        np.array_equal(one.observations, other.observations)
        and np.array_equal(one.noise, other.noise)
        and np.array_equal(one.rewards, other.rewards)
        and np.array_equal(one.numbers, other.numbers)
    )


def true_difference() -> tuple[float, float]:
    """The difference of the two policies, and its error, from many episodes at once."""
    rng = np.random.default_rng(5)
    episodes = 400_000
    means = []
    for rightness in (3.0, 0.0):
        x, returns = rng.normal(size=episodes), np.zeros(episodes)
        going = np.ones(episodes, dtype=bool)
        for _ in range(worlds.HORIZON):
            right = rng.random(episodes) < 1.0 / (1.0 + np.exp(rightness * x))
            x = np.where(going, 0.9 * x + right - 0.5 + 0.1 * rng.normal(size=episodes), x)
            returns -= np.where(going, x * x, 0.0)
            going &= np.abs(x) <= 3
        means.append((returns.mean(), returns.var() / episodes))
    return means[0][0] - means[1][0], float(np.sqrt(means[0][1] + means[1][1]))


def test_policies_play_in_turn_from_the_same_first_observations() -> None:
    data = compare().dataset
    assert data.numbers.tolist() == list(range(40))
    first = data.observations[data.start[:-1], 0]
    np.testing.assert_array_equal(first[0::2], first[1::2])
    assert np.unique(first).size == 20


def test_each_policy_is_valued_as_by_an_evaluation_of_its_own() -> None:
    found = compare(method="mean")
    for name, policy in POLICIES.items():
        alone = revar.evaluate(worlds.make, policy, episodes=20, seed=3, method="mean")
        assert found.values[name].value == pytest.approx(alone.value)
        assert found.values[name].standard_error == pytest.approx(alone.standard_error)
        assert found.values[name].interval == pytest.approx(alone.interval)


def test_the_error_of_a_difference_is_that_of_the_pairs() -> None:
    found = compare(method="mean")
    data = found.dataset
    returns = data.returns(1.0)
    pairs = returns[0::2] - returns[1::2]
    difference = found.difference("steer", "other")
    assert difference.value == pytest.approx(pairs.mean())
    assert difference.standard_error == pytest.approx(pairs.std(ddof=1) / np.sqrt(20))


def test_an_incomplete_pair_counts_for_its_policy() -> None:
    found = compare(method="mean", episodes=21)
    returns = found.dataset.returns(1.0)
    assert found.values["steer"].value == pytest.approx(returns[0::2].mean())
    assert found.values["steer"].standard_error == pytest.approx(
        returns[0::2].std(ddof=1) / np.sqrt(11)
    )


@pytest.mark.parametrize("method", ["mean", "critic"])
def test_differences_are_unbiased_and_their_intervals_hold(method: str) -> None:
    exact, error = true_difference()
    runs = [compare(method=method, seed=seed, episodes=48) for seed in range(RUNS)]
    found = [run.difference("steer", "other") for run in runs]
    z = np.array([(each.value - exact) / np.hypot(each.standard_error, error) for each in found])
    assert abs(z.mean()) < 3.0 / np.sqrt(RUNS)
    held = sum(each.interval[0] <= exact <= each.interval[1] for each in found)
    assert held >= LEAST_HELD


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 2, "engine": "inline"},
        {"workers": 2, "batch": 3},
        {"environments": 4},
    ],
)
def test_who_plays_does_not_matter(options: Any) -> None:
    assert same(compare(**options).dataset, compare().dataset)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_resumed_as_if_it_had_not_stopped(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"pairs{suffix}"
    compare(PUSHES, env_options={"pushes": True}, episodes=13, save=path)
    again = compare(PUSHES, env_options={"pushes": True}, resume=path)
    whole = compare(PUSHES, env_options={"pushes": True})
    assert same(again.dataset, whole.dataset)
    assert again.difference("drawn", "sure").value == whole.difference("drawn", "sure").value


def test_a_file_of_other_policies_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.npz"
    compare(episodes=10, save=path)
    with pytest.raises(InputError, match="collected for another policy"):
        compare({"steer": worlds.steer, "other": worlds.steer}, resume=path)
    with pytest.raises(InputError, match="names"):
        compare({"steer": worlds.steer, "third": worlds.other}, resume=path)


def test_laws_that_differ_have_columns_of_their_own() -> None:
    laws = LawsInTurn((Law((Normal(1),)), Law(), Law((Categorical(3),))))
    assert laws.joint.noise_width == 4
    data = compare(PUSHES, env_options={"pushes": True}).dataset
    assert data.noise.shape[1] == 1
    sure = LawsInTurn((Law((Normal(1),)), Law())).own(data, 1)
    assert sure.noise.shape[1] == 0 and len(sure) == 20
    assert not data.noise[np.repeat(data.numbers % 2 == 1, data.lengths)].any()


def test_it_stops_when_the_best_is_known() -> None:
    found = compare(episodes=2000, decide=0.95, method="mean")
    assert found.stopped == "decided" and found.episodes < 2000
    assert found.best == "steer" and found.decided


def test_what_goes_wrong_names_the_policy_and_keeps_episodes() -> None:
    count = [0]

    def fails(observation: Any) -> Any:
        count[0] += 1
        return worlds.steer(observation) if count[0] < 50 else [0.5, 0.6]

    with pytest.raises(revar.EvaluationError, match="policy 'bad': the policy gives") as caught:
        compare({"good": worlds.steer, "bad": fails}, method="mean")
    kept = caught.value.result.dataset
    assert len(kept) > 4
    assert kept.numbers.tolist() == list(range(len(kept)))


def test_the_table_says_how_it_was_judged() -> None:
    text = compare(method="mean").table()
    assert "method mean, in pairs that start alike" in text
    assert "mean return episodes" in text


def test_budgets_in_steps_and_cost() -> None:
    found = compare(episodes=None, steps=200, method="mean")
    assert 200 <= found.spent < 200 + worlds.HORIZON
    found = compare(episodes=None, budget=50.0, cost="fuel", method="mean")
    assert found.spent >= 50.0 and np.isfinite(list(found.on_policy_spending.values())).all()


def test_earlier_episodes_are_refused() -> None:
    with pytest.raises(InputError, match="are for `evaluate`"):
        compare(prior=compare().dataset)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", [{}, {"decide": 0.9}])
def test_a_policy_without_an_episode_has_no_value(options: Any, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    with pytest.raises(revar.EvaluationError, match="before one of every policy was complete"):
        compare(episodes=1, save=path, **options)
    again = compare(episodes=2, resume=path)
    assert all(np.isfinite(each.value) for each in again.values.values())


def test_episodes_of_several_policies_have_no_value_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    compare(PUSHES, episodes=10, env_options={"pushes": True}, save=path)
    with pytest.raises(InputError, match="those of 2 policies that were compared"):
        revar.evaluate_data(path, None, horizon=8)


class _Drawn:
    """Tells its noise, but not before it acts how much there is."""

    def __init__(self, numbers: int) -> None:
        self.numbers = numbers

    def sample(self, observation: Any, rng: Any) -> Any:
        noise = rng.standard_normal(self.numbers)
        return np.clip(0.3 * noise.sum(keepdims=True) - 0.5 * observation, -1, 1), noise


@pytest.mark.parametrize("how", [{}, {"workers": 2, "engine": "inline", "batch": 1}])
def test_policies_that_tell_their_noise_as_they_act(how: Any, tmp_path: Path) -> None:
    policies = {"one": _Drawn(1), "two": _Drawn(2), "sure": PUSHES["sure"]}
    options: dict[str, Any] = {"env_options": {"pushes": True}, "episodes": 36}
    found = compare(policies, **options, **how)
    assert str(found.dataset.law) == "normal 1+normal 2"
    path = tmp_path / "data.npz"
    compare(policies, **(options | {"episodes": 5}), save=path)
    assert same(found.dataset, compare(policies, **options, resume=path).dataset)
    advice = revar.advise(
        worlds.make, _Drawn(1), half_width=0.5, pilot=20, env_options={"pushes": True}, seed=1
    )
    assert advice.critic is not None
