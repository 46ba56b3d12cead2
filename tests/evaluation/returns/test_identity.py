"""What a file knows of a policy and an environment that were handed in."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import revar
from revar.errors import InputError
from revar.evaluation.identity import describe_environment, find_changes, plain_parts
from revar.evaluation.returns.fingerprint import Identity
from revar.evaluation.returns.play import make_player
from tests.evaluation.returns import worlds
from tests.evaluation.returns.test_evaluate import same
from tests.evaluation.returns.worlds import evaluate


def run(path: Path, env: Any, episodes: int = 16, **options: Any) -> revar.EvaluationResult:
    return evaluate(env=env, resume=path, episodes=episodes, method="mean", **options)


def test_an_environment_is_known_by_how_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    evaluate(env=worlds.make(when=50), episodes=10, method="mean", save=path)
    with pytest.raises(InputError, match=r"environment details = .*when=50\); now it is .*when=60"):
        run(path, worlds.make(when=60))
    with pytest.raises(InputError, match="now it is TimeLimit"):
        run(path, gymnasium.wrappers.TimeLimit(worlds.make(when=50), 8))
    used = worlds.make(when=50)
    evaluate(env=used, episodes=3, method="mean")
    again = run(path, used)
    assert same(again, evaluate(env=worlds.make(), episodes=16, method="mean"))
    assert "may be another" not in again.table()


def test_ids_arguments_and_wrappers() -> None:
    pendulum = describe_environment(gymnasium.make("Pendulum-v1", g=9.0))
    assert "TimeLimit(max_episode_steps=200) of Pendulum-v1: " in pendulum and "g=9.0" in pendulum
    assert pendulum != describe_environment(gymnasium.make("Pendulum-v1"))
    shown = gymnasium.make("Pendulum-v1", g=9.0, render_mode="rgb_array")
    assert pendulum == describe_environment(shown)
    several = gymnasium.make_vec("Pendulum-v1", 2, vectorization_mode="sync", g=9.0)
    assert pendulum == describe_environment(several)


def test_what_was_set_later_is_a_caution(tmp_path: Path) -> None:
    def poles(gravity: float = 9.8) -> Any:
        env = gymnasium.make("CartPole-v1")
        env.unwrapped.gravity = gravity  # type: ignore[attr-defined]
        return env

    path = tmp_path / "data.npz"
    options: dict[str, Any] = {"policy": "uniform", "horizon": 20}
    evaluate(env=poles(), episodes=10, method="mean", save=path, **options)
    assert "caution" not in run(path, poles(), 12, **options).table()
    heavy = run(path, poles(20.0), **options)
    assert "may be another than that of the file: gravity was 9.8 and is 20.0" in str(heavy)
    assert "caution" in heavy.table()
    policies: dict[str, Any] = {"a": "uniform", "b": worlds_other}
    both = tmp_path / "both.npz"
    paired: dict[str, Any] = {"horizon": 20, "seed": 1, "method": "mean"}
    revar.compare(poles(), policies, episodes=10, save=both, **paired)
    found = revar.compare(poles(20.0), policies, episodes=12, resume=both, **paired)
    assert "gravity was 9.8 and is 20.0" in found.table()


def worlds_other(observation: Any) -> list[float]:
    return [0.3, 0.7]


class _Restless:
    """Predicts as it likes."""

    def __init__(self, bias: float) -> None:
        self.weights = np.array([bias, 1.0])
        self.rng = np.random.default_rng(0)
        self.asked = 0

    def predict(self, observation: Any, deterministic: bool = True) -> Any:
        self.asked += 1
        return int(self.rng.random() < self.weights[0]), None


def test_a_policy_that_draws_on_its_own_is_known_by_what_it_is_made_of(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    evaluate(policy=_Restless(0.5), episodes=10, method="mean", save=path)
    assert run(path, worlds.BY_ID, policy=_Restless(0.5)).episodes == 16
    with pytest.raises(InputError, match="another policy: its weights was array"):
        run(path, worlds.BY_ID, policy=_Restless(0.6))
    with pytest.raises(InputError, match="another policy: its class was"):
        run(path, worlds.BY_ID, policy=worlds.steer)
    revar.evaluate_data(path, _Restless(0.5), horizon=8, method="mean")
    with pytest.raises(InputError, match="another policy: its weights was array"):
        revar.evaluate_data(path, _Restless(0.6), horizon=8, method="mean")


def test_functions_are_known_by_their_code_and_what_they_hold() -> None:
    def made(scale: float, add: bool = False) -> Any:
        return (lambda seen: scale * seen + 1) if add else (lambda seen: scale * seen)

    known = plain_parts(made(2.0))
    assert not find_changes(known, plain_parts(made(2.0)))
    assert find_changes(known, plain_parts(made(3.0))) == "scale was 2.0 and is 3.0"
    assert "code was" in find_changes(known, plain_parts(made(2.0, add=True)))


class _Drawn:
    def sample(self, observation: Any, rng: Any) -> Any:
        noise = rng.standard_normal(3)
        return int(noise.sum() > 0), noise


def test_fingerprints_do_not_count_as_draws(tmp_path: Path) -> None:
    """They repeat the same draws each time, whose mean is not quite zero."""
    player: Any = make_player(worlds.make(), _Drawn(), seed=0)
    identity = Identity(player, {"": _Drawn()}, None)
    episodes = player.play(0, 40)
    first = identity.answers(episodes)
    assert first is not None
    for _ in range(20):  # so many repeated draws would be refused
        assert identity.answers(episodes) == first
    assert len(player.play(40, 100)) == 100


def test_a_policy_that_had_to_be_mended_may_go_on(tmp_path: Path) -> None:
    broken = [True]

    def policy(observation: Any) -> list[float]:
        if broken[0] and abs(observation[0]) > 2:
            raise ValueError("too far")
        return worlds.steer(observation)

    path = tmp_path / "data.npz"
    with pytest.raises(revar.EvaluationError, match="too far") as caught:
        evaluate(policy=policy, method="mean", episodes=200, save=path)
    assert caught.value.result is not None
    whole = evaluate(method="mean", episodes=200)
    assert same(run(path, worlds.BY_ID, 200, policy=worlds.steer), whole)


class _Odd:
    """Looked at in any way, it raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("do not look")


def test_odd_objects_are_left_alone() -> None:
    loop: list[Any] = []
    loop.append(loop)

    def holds() -> Any:
        return missing

    known = plain_parts({"loop": loop, "odd": _Odd(), "number": 1, "function": holds})
    assert known["number"] == "1"
    if not known:  # the cell of `missing` stays empty
        missing = None
    env = worlds.make()
    env.odd, env.loop = _Odd(), loop  # type: ignore[attr-defined]
    assert evaluate(env=env, episodes=3, method="mean").episodes == 3


class Pusher:
    """Makes its pushes of one normal number."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def sample(self, observation: Any, rng: np.random.Generator) -> Any:
        noise = rng.standard_normal(1)
        return np.clip(self.factor * observation + 0.3 * noise, -1.0, 1.0), noise


class Careless(Pusher):
    """Draws numbers that it does not tell: of it, nothing can be compared."""

    def sample(self, observation: Any, rng: np.random.Generator) -> Any:
        return np.clip(self.factor * observation + rng.normal(size=1), -1.0, 1.0), None


def still(factor: float) -> revar.DeterministicPolicy:
    return revar.DeterministicPolicy(lambda seen: factor * seen)


def noisy(factor: float) -> revar.GaussianPolicy:
    return revar.GaussianPolicy(lambda seen: factor * seen, 0.3)


@pytest.mark.parametrize("make", [still, noisy, Pusher])
def test_episodes_without_their_file_tell_another_policy_by_its_actions(make: Any) -> None:
    pushes = {"env_options": {"pushes": True}, "method": "mean", "episodes": 10}
    played = evaluate(policy=make(-0.5), **pushes)
    options: dict[str, Any] = {"horizon": 8, "method": "mean"}
    found = revar.evaluate_data(played.dataset, make(-0.5), **options)
    assert found.value == pytest.approx(played.value)
    revar.advise(played.dataset, make(-0.5), half_width=0.2, **options)
    for other in (make(0.5), make(-0.501), revar.GaussianPolicy(lambda seen: -0.5 * seen, 0.4)):
        with pytest.raises(InputError, match="played by another policy"):
            revar.evaluate_data(played.dataset, other, **options)
        with pytest.raises(InputError, match="played by another policy"):
            revar.advise(played.dataset, other, half_width=0.2, **options)


def test_actions_that_cannot_be_repeated_are_believed() -> None:
    pushes = {"env_options": {"pushes": True}, "method": "mean", "episodes": 10}
    played = evaluate(policy=Careless(-0.5), **pushes)
    found = revar.evaluate_data(played.dataset, Careless(-0.5), horizon=8, method="mean")
    assert found.value == pytest.approx(played.value)
