"""Networks on a linear system whose values are known, and what they may see."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revar.critics import network
from revar.critics.estimate import estimate_returns
from revar.critics.interface import FOLDS, Experience
from revar.critics.network import NetworkFamily
from revar.errors import MissingExtraError
from revar.model.arrays import FloatArray
from revar.model.law import Law, Normal

QUICK = NetworkFamily(rounds=4, steps=100, read=(2, 4))
HORIZON, DISCOUNT = 10, 0.95
FEEDBACK, PUSH = 0.8, 0.4  # the next x is FEEDBACK * x + PUSH * noise, the reward -x^2


def play(episodes: int, *, noise: bool = True, seed: int = 0) -> Experience:
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((episodes, HORIZON)) * noise
    x = np.zeros((episodes, HORIZON))
    x[:, 0] = rng.standard_normal(episodes)
    for t in range(1, HORIZON):
        x[:, t] = FEEDBACK * x[:, t - 1] + PUSH * drawn[:, t - 1]
    law = Law((Normal(1),)) if noise else Law()
    kept = drawn.reshape(-1, 1) if noise else np.zeros((drawn.size, 0))
    return Experience(
        start=np.arange(episodes + 1) * HORIZON,
        inputs=x.reshape(-1, 1),
        elapsed=np.tile(np.arange(HORIZON) / HORIZON, episodes),
        rewards=-(x.ravel() ** 2),
        scores=law.scores(kept, kept),
        actions=kept,
        noise=kept,
        law=law,
        discount=DISCOUNT,
        resets=rng.standard_normal((10 * episodes, 1)),
    )


def curvatures() -> tuple[FloatArray, float]:
    """Of the true values -p_t x^2 - c_t: p of every step and after the last, and c of the first."""
    p, c = np.zeros(HORIZON + 1), 0.0
    for t in range(HORIZON - 1, -1, -1):
        c = DISCOUNT * (c + p[t + 1] * PUSH**2)
        p[t] = 1.0 + DISCOUNT * p[t + 1] * FEEDBACK**2
    return p, c


def test_most_of_the_variance_goes_and_the_mean_stays() -> None:
    p, c = curvatures()
    corrected = estimate_returns(play(100), [QUICK])
    assert (corrected.standard_error / corrected.mean_return_error) ** 2 < 0.5
    # The truth is the mean over x ~ N(0, 1); beyond 4 standard errors one seed in 16,000 falls.
    assert abs(corrected.value + p[0] + c) < 4 * corrected.standard_error


def test_a_fitted_network_knows_values_and_coefficients() -> None:
    experience = play(100)
    critic = QUICK.fit(experience, seed=1)
    x, step = experience.inputs[:, 0], np.tile(np.arange(HORIZON), 100)
    p, _ = curvatures()
    values = critic.values(experience.inputs, experience.elapsed)
    slopes = critic.coefficients(experience.inputs, experience.elapsed)[:, 0]
    true_slopes = -2 * DISCOUNT * p[step + 1] * FEEDBACK * PUSH * x
    assert np.corrcoef(values, -p[step] * x**2)[0, 1] > 0.9
    assert np.corrcoef(slopes, true_slopes)[0, 1] > 0.9


@pytest.mark.parametrize("fold", [0, 3])
def test_a_world_never_touches_its_fold(fold: int) -> None:
    experience = play(100)
    own = experience.folds == fold
    rows = own[experience.episode_of_step]
    changed = replace(
        experience,
        inputs=np.where(rows[:, None], 7.0 - 3.0 * experience.inputs, experience.inputs),
        rewards=np.where(rows, 50.0, experience.rewards),
        scores=np.where(rows[:, None], -experience.scores, experience.scores),
    )
    before, after = (QUICK.cross_fit(each, seed=2) for each in (experience, changed))
    np.testing.assert_array_equal(before.reset_values[fold], after.reset_values[fold])
    np.testing.assert_array_equal(before.advantages[fold, ~rows], after.advantages[fold, ~rows])
    np.testing.assert_array_equal(before.first_values[fold, ~own], after.first_values[fold, ~own])
    other = (fold + 1) % FOLDS
    assert np.abs(before.reset_values[other] - after.reset_values[other]).min() > 0


def test_the_seed_decides_all() -> None:
    experience = play(100)
    first, again, other = (QUICK.cross_fit(experience, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.advantages, again.advantages)
    np.testing.assert_array_equal(first.reset_values, again.reset_values)
    assert np.abs(first.advantages - other.advantages).max() > 0


def test_numpy_says_what_jax_says() -> None:
    experience = play(100)
    experience = replace(experience, resets=experience.inputs[experience.start[:-1]])
    columns = QUICK.cross_fit(experience, seed=0)
    assert columns.values is not None
    by_jax = columns.values[:, experience.start[:-1]]
    np.testing.assert_allclose(columns.first_values, by_jax, rtol=1e-4, atol=1e-4)
    for world in range(FOLDS):  # the same observations, in the one case as resets
        own = experience.folds == world
        np.testing.assert_allclose(
            columns.reset_values[world, own],
            columns.first_values[world, own],
            rtol=1e-6,
            atol=1e-6,
        )


def test_episodes_beyond_the_most_that_are_learned_from_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "MOST_STEPS", 70 * HORIZON)
    experience = play(100)
    columns = QUICK.cross_fit(experience, seed=0)
    for part in (slice(0, 70), slice(70, 100)):
        steps = slice(part.start * HORIZON, part.stop * HORIZON)
        true = experience.inputs[steps, 0] * experience.scores[steps, 0]
        assert np.corrcoef(columns.advantages[0, steps, -1], -true)[0, 1] > 0.8


def test_without_known_draws_the_start_state_alone_is_explained() -> None:
    experience = play(100, noise=False)
    columns = QUICK.cross_fit(experience, seed=0)
    assert not columns.advantages.any()
    corrected = estimate_returns(experience, [QUICK])
    assert (corrected.standard_error / corrected.mean_return_error) ** 2 < 0.3


def test_another_number_of_episodes_compiles_nothing() -> None:
    QUICK.cross_fit(play(100), seed=0)
    training = sys.modules["revar.critics.network_training"]
    compiled = [training.learn._cache_size(), training.evaluate._cache_size()]
    QUICK.cross_fit(play(93), seed=0)
    assert [training.learn._cache_size(), training.evaluate._cache_size()] == compiled


def test_progress_is_told_and_may_stop_it() -> None:
    told: list[tuple[int, int]] = []

    def stop(number: int, rounds: int) -> None:
        told.append((number, rounds))
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(QUICK, progress=stop).cross_fit(play(100), seed=0)
    assert told == [(1, 4), (2, 4)]


def test_a_saved_network_needs_no_jax(tmp_path: Path) -> None:
    experience = play(100)
    critic = QUICK.fit(experience, seed=0)
    np.savez(tmp_path / "critic.npz", **critic.to_arrays())
    np.save(tmp_path / "inputs.npy", experience.inputs)
    script = """if True:
        import sys
        import numpy as np
        sys.modules["jax"] = sys.modules["optax"] = None
        from revar.critics.network_critic import NetworkCritic
        folder = sys.argv[1]
        inputs = np.load(folder + "/inputs.npy")
        critic = NetworkCritic.from_arrays(dict(np.load(folder + "/critic.npz")))
        np.save(folder + "/outputs.npy", critic.outputs(inputs, np.zeros(len(inputs))))
    """
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    found = critic.outputs(experience.inputs, np.zeros(len(experience.inputs)))
    np.testing.assert_array_equal(np.load(tmp_path / "outputs.npy"), found)


def test_without_jax_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r"revar-rl\[critic\]"):
        QUICK.fit(play(8), seed=0)
