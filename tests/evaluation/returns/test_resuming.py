"""Saved, interrupted and resumed evaluations; earlier episodes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.datasets import load_collected
from revar.errors import InputError
from tests.evaluation.returns import worlds
from tests.evaluation.returns.test_evaluate import same
from tests.evaluation.returns.worlds import evaluate


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_resumed_as_if_it_had_not_stopped(suffix: str, tmp_path: Path) -> None:
    whole = evaluate()
    path = tmp_path / f"data{suffix}"
    evaluate(episodes=10, save=path)
    again = evaluate(resume=path, seed=None)
    assert same(whole, again) and again.value == whole.value
    assert again.standard_error == whole.standard_error
    assert again.return_findings.resets == 240
    stored, conditions = load_collected(path)
    assert len(stored) == 24
    assert conditions is not None
    assert conditions.method == "critic" and conditions.resets == 10


def test_other_workers_and_another_method_may_go_on(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    evaluate(episodes=10, save=path, method="mean")
    again = evaluate(resume=path, method="mean", workers=2, engine="inline")
    assert same(again, evaluate(method="mean"))
    assert evaluate(resume=path, critics=None).method == "mean"  # that of the file
    with pytest.raises(InputError, match="was collected with method 'mean', which has no critics"):
        evaluate(resume=path)
    assert evaluate(resume=path, method="critic").method == "critic"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 4}, "collected with seed = 3; now it is 4"),
        ({"horizon": 5}, "collected with horizon = 8"),
        ({"discount": 0.5}, "collected with discount = 1.0"),
        ({"policy": worlds.other}, "collected for another policy"),
        ({"env_options": {"pushes": True}, "policy": worlds.gaussian()}, "collected with options"),
        ({"episodes": 5}, "the file has 10 episodes, more than the 5"),
        ({"steps": 1000}, "collected with budget unit = episodes"),
        ({"features": worlds.squares}, "collected without features="),
        ({"method": "table"}, "not 'table'"),
    ],
)
def test_other_conditions_are_refused(options: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    evaluate(episodes=10, save=path)
    with pytest.raises(InputError, match=message):
        evaluate(resume=path, **{"critics": None, **options})
    assert len(revar.load_dataset(path)) == 10


def test_ctrl_c_returns_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import signal

    count = [0]

    def policy(observation: Any) -> Any:
        count[0] += 1
        if count[0] == 60:
            signal.raise_signal(signal.SIGINT)
        return worlds.steer(observation)

    path = tmp_path / "data.npz"
    found = evaluate(policy=policy, save=path, method="mean")
    assert found.stopped == "interrupted" and not found.complete
    assert 0 < found.episodes < 24
    again = evaluate(resume=path, method="mean")
    assert same(again, evaluate(method="mean")) and again.complete


def test_own_earlier_episodes_enter_the_estimate(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    by_id: dict[str, Any] = {"env": worlds.BY_ID, "horizon": 8}
    first = evaluate(**by_id, save=path, seed=8)
    both = evaluate(**by_id, prior=path)
    assert both.prior_episodes == 24 and both.episodes == 24
    assert both.return_findings.corrected.returns.size == 48
    assert both.standard_error < 0.9 * first.standard_error
    assert "the estimate and critics" in both.table()
    otherwise = evaluate(**by_id, env_options={"when": 7}, prior=path)
    assert "training critics alone" in otherwise.table()


def test_a_policy_is_told_by_more_than_its_first_actions(tmp_path: Path) -> None:
    def later(observation: Any) -> list[float]:
        return worlds.steer(observation) if observation[0] == 0.5 else worlds.other(observation)

    path = tmp_path / "data.npz"
    evaluate(env=Settled, save=path, seed=8, horizon=8)
    with pytest.raises(InputError, match="collected for another policy"):
        evaluate(env=Settled, policy=later, resume=path, seed=8, horizon=8)
    with pytest.raises(InputError, match="played by another policy"):
        revar.evaluate_data(path, later, horizon=8)
    found = evaluate(env=Settled, policy=later, prior=path, horizon=8)
    assert "training critics alone" in found.table()


class Settled(worlds.Drift):
    """Begins at the same place each time."""

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.x = 0.5
        return np.array([self.x]), {}


def test_how_an_environment_that_is_handed_in_was_made_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    evaluate(env=worlds.make(), save=path, seed=8)
    for env in (worlds.make(), worlds.make):
        assert "training critics alone" in evaluate(env=env, prior=path).table()


def test_other_earlier_episodes_train_critics_alone(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    evaluate(save=path, seed=8, policy=worlds.other)
    for prior in (path, revar.load_dataset(path)):
        found = evaluate(prior=prior)
        assert found.return_findings.corrected.returns.size == 24
        assert "training critics alone" in found.table()
        assert len(found.return_findings.given) == 1
    with pytest.raises(InputError, match="method 'mean' has no critics to learn from it"):
        evaluate(prior=path, method="mean")
    with pytest.raises(InputError, match="prior was collected with seed 8"):
        evaluate(prior=path, seed=8)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_earlier_episodes_that_are_too_few_to_learn_from_are_left_out(count: int) -> None:
    earlier = evaluate(seed=8, episodes=3, method="mean", policy=worlds.other).dataset
    found = evaluate(prior=earlier.part(0, count))
    if count == 3:
        assert "training critics alone" in found.table()
        return
    assert f"nothing: critics learn from 3 or more, not {count}" in found.table()
    assert found.value == evaluate().value


def test_critics_of_too_few_episodes_are_not_saved(tmp_path: Path) -> None:
    for count in (1, 2):
        with pytest.raises(InputError, match=f"learn from 3 or more episodes, not {count}"):
            evaluate(episodes=count).save_critic(tmp_path / "critic.npz")
    evaluate(episodes=3).save_critic(tmp_path / "critic.npz")


def test_critics_are_saved_and_given_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "critic.npz"
    first = evaluate(seed=8, episodes=40)
    first.save_critic(path)
    inputs, elapsed = np.array([[0.0], [2.0]]), np.zeros(2)
    values = first.critic.critics["linear"].values(inputs, elapsed)
    assert values[0] > values[1]  # far from 0 is worse
    found = evaluate(critics=["linear", path])
    assert "linear, 1 given" in found.table()
    assert found.value == evaluate(critics=["linear", first.critic]).value
    with pytest.raises(InputError, match="learned from episodes of seed 8"):
        evaluate(critics=[path], seed=8)
    np.savez(tmp_path / "other.npz", x=1)
    with pytest.raises(InputError, match="no critics saved by revar"):
        evaluate(critics=[tmp_path / "other.npz"])


@pytest.mark.parametrize(
    ("learned", "used", "message"),
    [
        ({"features": worlds.squares}, {}, "looks at 2 numbers of an observation; here there are"),
        (
            {"env_options": {"pushes": True}, "policy": worlds.gaussian()},
            {},
            "actions have 2 scores; those of the law 'categorical 2' have 1",
        ),
    ],
)
def test_critics_of_another_width_are_refused_before_the_first_episode(
    learned: Any, used: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "critic.npz"
    evaluate(seed=8, **learned).save_critic(path)
    with pytest.raises(InputError, match=message) as refused:
        evaluate(critics=[path], **used)
    assert not isinstance(refused.value, revar.EvaluationError)


def test_critics_of_another_width_than_features_are_refused_before(tmp_path: Path) -> None:
    path = tmp_path / "critic.npz"
    evaluate(seed=8).save_critic(path)
    with pytest.raises(InputError, match=r"looks at 1 numbers .*; here there are 2") as bad:
        evaluate(critics=[path], features=worlds.squares)
    assert not isinstance(bad.value, revar.EvaluationError)


def test_critics_see_earlier_episodes_as_those_of_the_run(tmp_path: Path) -> None:
    """Features are made of the observations that were stored, whatever they had before."""
    plain = evaluate(seed=8, method="mean").dataset
    seen = evaluate(seed=8, features=worlds.squares).dataset
    found = [evaluate(prior=prior, features=worlds.squares) for prior in (plain, seen)]
    assert found[0].value == found[1].value
    assert len(found[0].return_findings.given) == 1
    assert evaluate(prior=seen).value == evaluate(prior=plain).value

    def letters(features: Any, **options: Any) -> revar.EvaluationResult:
        spelled = {"env": Spelled(), "policy": worlds.other, "features": features}
        return evaluate(**spelled, **options)

    spelled = letters(ord, seed=8).dataset  # observations are not kept
    assert len(letters(ord, prior=spelled).return_findings.given) == 1
    with pytest.raises(InputError, match=r"see 1 numbers .*, and 2 now") as bad:
        letters(lambda seen: [ord(seen), 0.0], prior=spelled)
    assert not isinstance(bad.value, revar.EvaluationError)


def test_a_function_that_gives_no_value_for_each_input_is_refused_before() -> None:
    for options in ({}, {"features": worlds.squares}):
        with pytest.raises(InputError, match=r"shape \(2, \d\) for 2 inputs") as bad:
            evaluate(critics=["linear", lambda inputs: inputs[:, :, None][..., 0]], **options)
        assert not isinstance(bad.value, revar.EvaluationError)


class _Tensor:
    """What a tensor of PyTorch has on its way to an array."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def detach(self) -> Any:
        return self

    def cpu(self) -> Any:
        return self

    def numpy(self) -> Any:
        return self.values


class _Normalizing:
    """A stand-in for VecNormalize: observations are halved, rewards divided by 4."""

    def normalize_obs(self, seen: Any) -> Any:
        return seen / 2.0

    def unnormalize_reward(self, rewards: Any) -> Any:
        return 4.0 * rewards


class _Trained:
    """A stand-in for a model of Stable-Baselines3."""

    def __init__(self, vec_normalize: Any = None) -> None:
        self.policy = self
        self._vec_normalize = vec_normalize

    def get_vec_normalize_env(self) -> Any:
        return self._vec_normalize

    def predict(self, seen: Any, deterministic: bool) -> Any:
        raise NotImplementedError

    def obs_to_tensor(self, seen: Any) -> Any:
        return _Tensor(seen), True

    def predict_values(self, tensor: _Tensor) -> Any:
        return _Tensor(-4.0 * tensor.values**2)


def test_the_value_function_of_a_trained_model() -> None:
    found = evaluate(critics=["linear", _Trained()])
    assert len(found.return_findings.given) == 1
    # Half of an observation has a quarter of its square, and rewards are a quarter, too.
    assert evaluate(critics=["linear", _Trained(_Normalizing())]).value == found.value
    with pytest.raises(InputError, match="needs observations as they are"):
        evaluate(critics=[_Trained()], features=worlds.squares)


def test_stored_episodes_by_themselves(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    found = evaluate(save=path, resets=0)
    again = revar.evaluate_data(path, worlds.steer, horizon=8, critics=["linear"])
    assert again.value == found.value and again.half_width == found.half_width
    mean = revar.evaluate_data(found.dataset, None, horizon=8, method="mean")
    assert mean.value == pytest.approx(found.dataset.returns(1.0).mean())
    reset = revar.evaluate_data(
        path, worlds.steer, horizon=8, critics=["linear"], env=worlds.make, resets=100
    )
    assert reset.return_findings.resets == 100
    nobody = revar.evaluate_data(
        path, None, horizon=8, critics=["linear"], env=worlds.make, resets=100
    )
    assert nobody.value == reset.value
    for data in (path, found.dataset):
        with pytest.raises(InputError, match="played by another policy"):
            revar.evaluate_data(data, worlds.other, horizon=8)
    with pytest.raises(InputError, match="an episode has 8 steps; the horizon is 5"):
        revar.evaluate_data(path, worlds.steer, horizon=5)
    with pytest.raises(InputError, match="each policy on its own episodes"):
        revar.evaluate_data(path, {"a": worlds.steer, "b": worlds.other}, horizon=8)


def test_advice() -> None:
    advice = revar.advise(
        worlds.make, worlds.steer, half_width=0.2, pilot=100, seed=1, critics=["linear"]
    )
    found = evaluate(episodes=100, seed=1)
    variance = found.dataset.returns(1.0).var(ddof=1)
    assert advice.mean_return.amount == pytest.approx((1.96 / 0.2) ** 2 * variance, abs=2)
    assert advice.critic.amount == pytest.approx(advice.mean_return.amount / advice.gain, abs=2)
    assert advice.gain > 1.2 and "critics need" in str(advice)
    steps = revar.advise(
        found.dataset, worlds.steer, half_width=0.2, horizon=8, method="mean", cost="steps"
    )
    assert steps.mean_return.unit == "steps" and steps.critic is None
    assert steps.mean_return.amount > 4 * advice.mean_return.amount
    cost = revar.advise(
        worlds.make, worlds.steer, half_width=0.2, pilot=20, seed=1, method="mean", cost="fuel"
    )
    assert cost.mean_return.unit == "cost"


def test_advice_never_says_fewer_episodes_than_make_an_interval() -> None:
    played = evaluate(episodes=20).dataset
    for cost in (None, "steps"):
        wide = revar.advise(played, worlds.steer, half_width=1e6, horizon=8, cost=cost)
        for need in (wide.mean_return, wide.critic):
            assert need.episodes == 2 and need.low <= need.amount <= need.high
            assert need.amount == (2 if cost is None else np.ceil(2 * played.lengths.mean()))


@pytest.mark.parametrize("policy", [worlds.steer, worlds.other])
def test_earlier_episodes_of_the_same_seed_are_refused(policy: Any) -> None:
    earlier = evaluate(policy=policy, method="mean").dataset  # that it has seed 3 is not known
    with pytest.raises(revar.EvaluationError, match="drawn with the seed of this run") as caught:
        evaluate(prior=earlier)
    # It is seen early, and the episodes so far are kept.
    assert 8 <= caught.value.result.episodes < 24 and caught.value.result.method == "mean"


def test_earlier_episodes_of_another_law_train_critics() -> None:
    pushes: dict[str, Any] = {"env_options": {"pushes": True}, "policy": worlds.gaussian()}
    pushes["episodes"] = 10
    still = revar.DeterministicPolicy(lambda seen: -0.5 * seen)
    other = evaluate(**pushes | {"policy": still}, seed=8, method="mean").dataset
    assert other.law.score_width == 0
    found = evaluate(**pushes, prior=other)
    assert len(found.return_findings.given) == 1 and "training critics alone" in found.table()
    turned = evaluate(**pushes | {"policy": still}, prior=evaluate(**pushes, seed=8).dataset)
    assert len(turned.return_findings.given) == 1


def test_observations_that_are_no_numbers_can_be_resumed(tmp_path: Path) -> None:
    def run(episodes: int, **options: Any) -> revar.EvaluationResult:
        return evaluate(
            env=Spelled(), policy=worlds.other, episodes=episodes, features=ord, **options
        )

    path = tmp_path / "data.npz"
    run(10, save=path)
    assert same(run(16, resume=path), run(16))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (lambda seen: [seen[0], -seen[0]], "with other features"),  # alike at the first
        (lambda seen: [seen[0]], "with 2 features of an observation; now there are 1"),
    ],
)
def test_other_features_are_refused(features: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    first = evaluate(
        episodes=10, save=path, features=lambda seen: [seen[0], abs(seen[0])], resets=0
    )
    assert first.dataset.observations[0, 0] < 0.0 < first.dataset.observations.max()
    with pytest.raises(InputError, match=message) as bad:
        evaluate(resume=path, features=features)
    assert not isinstance(bad.value, revar.EvaluationError)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (lambda seen: [ord(seen) + 1.0], "with other features"),
        (lambda seen: [ord(seen), 0.0], "with 1 features of an observation; now there are 2"),
    ],
)
def test_other_features_of_what_is_not_kept(features: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    spelled: dict[str, Any] = {"env": Spelled(), "policy": worlds.other}
    evaluate(**spelled, episodes=10, save=path, features=ord)
    with pytest.raises(InputError, match=message):
        evaluate(**spelled, resume=path, features=features)


class Spelled(worlds.Drift):
    """Says its number as a letter."""

    observation_space: Any = spaces.Text(1)

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        return self._letter(), {}

    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        return self._letter(), *rest

    def _letter(self) -> str:
        return "abcdefg"[round(self.x) + 3]


def test_critics_that_know_earlier_episodes_are_refused(tmp_path: Path) -> None:
    earlier, critic = tmp_path / "earlier.npz", tmp_path / "critic.npz"
    by_id: dict[str, Any] = {"env": worlds.BY_ID, "horizon": 8}
    evaluate(**by_id, seed=8, method="mean", save=earlier)
    found = evaluate(**by_id, seed=9, prior=earlier)
    found.save_critic(critic)
    with pytest.raises(InputError, match="not known whether from these episodes"):
        revar.evaluate_data(found.dataset, worlds.steer, horizon=8, critics=[found.critic])
    evaluate(seed=3, critics=["linear", critic])
    with pytest.raises(InputError, match="episodes of seed 8, which are those of this prior"):
        evaluate(**by_id, seed=3, critics=["linear", critic], prior=earlier)
    with pytest.raises(InputError, match="episodes of seed 8, which are those of this run"):
        revar.evaluate_data(earlier, worlds.steer, horizon=8, critics=["linear", critic])
