"""Models of Stable-Baselines3 keep their own laws."""

import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.environments.spaces import layout_of
from revar.errors import InputError
from revar.policies.sampled import sampled_policy
from tests.policies.stand_in import Model, Networks, OnPolicy, Squashing

OBSERVATIONS = spaces.Box(-5.0, 5.0, (2,))
BOX = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 3.0], np.float32))
SEEN = [np.array([0.5, 0.3], np.float32), np.array([-1.0, 0.2], np.float32)]
SUMS = np.array([0.8, -0.8])
CHANCES = 1.0 / (1.0 + np.exp(-SUMS))


def bind(model: Any, actions: Any, **options: Any) -> Any:
    policy = pickle.loads(pickle.dumps(revar.policy_from_sb3(model, **options)))
    return sampled_policy(policy, layout_of(OBSERVATIONS), layout_of(actions, "action"))


def draw(policy: Any, seeds: tuple[int, int] = (1, 2)) -> Any:
    return policy.draw(SEEN, [np.random.default_rng(seed) for seed in seeds])


def frequency_of_ones(policy: Any, column: int = 0, count: int = 4000) -> float:
    rng = np.random.default_rng(5)
    rows = policy.draw([SEEN[0]] * count, [rng] * count).rows
    return float(np.mean(np.array(rows)[:, column] == 1))


def test_categorical_actions_come_from_the_probabilities() -> None:
    policy = bind(Model(OnPolicy("categorical", spaces.Discrete(2))), spaces.Discrete(2, start=3))
    drawn = draw(policy)
    assert str(policy.law) == "categorical 2"
    np.testing.assert_allclose(np.array(drawn.noise)[:, 1], CHANCES, atol=1e-7)
    np.testing.assert_allclose(np.sum(drawn.noise, axis=1), 1.0, atol=1e-15)
    assert drawn.actions == [row[0] + 3 for row in drawn.rows]
    found = frequency_of_ones(policy)
    assert abs(found - CHANCES[0]) < 4 * np.sqrt(CHANCES[0] * (1 - CHANCES[0]) / 4000)


def test_several_discrete_actions_have_a_law_each() -> None:
    space = spaces.MultiDiscrete([2, 3])
    policy = bind(Model(OnPolicy("multi", space)), space)
    assert str(policy.law) == "categorical 2+categorical 3"
    drawn = draw(policy)
    assert all(space.contains(action) for action in drawn.actions)
    np.testing.assert_allclose(np.array(drawn.noise)[:, 2:], 1.0 / 3.0)

    binary = spaces.MultiBinary(2)
    policy = bind(Model(OnPolicy("bernoulli", binary)), binary)
    assert str(policy.law) == "categorical 2+categorical 2"
    drawn = draw(policy)
    assert all(binary.contains(action) for action in drawn.actions)
    np.testing.assert_allclose(np.array(drawn.noise)[:, 3], 0.25)
    assert abs(frequency_of_ones(policy, 1) - 0.25) < 4 * np.sqrt(0.1875 / 4000)


def test_normal_actions_are_clipped_to_the_space() -> None:
    policy = bind(Model(OnPolicy("normal", BOX)), BOX)
    drawn = draw(policy)
    noise = np.array([np.random.default_rng(seed).standard_normal(2) for seed in (1, 2)])
    np.testing.assert_array_equal(drawn.noise, noise)
    raw = np.stack([SUMS, -SUMS], axis=1) + 0.5 * noise
    np.testing.assert_allclose(drawn.rows, np.clip(raw, BOX.low, BOX.high), atol=1e-6)
    assert all(BOX.contains(action) for action in drawn.actions)
    assert str(policy.law) == "normal 2"


def test_squashed_actions_fill_the_bounds() -> None:
    policy = bind(Model(Squashing("normal", BOX)), BOX)
    drawn = draw(policy)
    raw = np.tanh(np.stack([SUMS, -SUMS], axis=1) + 0.5 * np.array(drawn.noise))
    wanted = BOX.low + 0.5 * (raw + 1.0) * (BOX.high - BOX.low)
    np.testing.assert_allclose(drawn.rows, wanted, atol=1e-6)
    assert str(policy.law) == "normal 2"


def test_q_networks_explore_with_their_rate() -> None:
    model = Model(Networks("q", spaces.Discrete(2)), exploration_rate=0.2)
    policy = bind(model, spaces.Discrete(2))
    np.testing.assert_allclose(draw(policy).noise, [[0.1, 0.9], [0.9, 0.1]])
    best = bind(model, spaces.Discrete(2), deterministic=True)
    assert draw(best).actions == [1, 0]
    assert not best.law.parts


def test_deterministic_models_take_the_best_action() -> None:
    expected = np.clip(np.tanh(SUMS)[:, None], BOX.low, BOX.high)
    for policy in (
        bind(Model(Networks("td3", BOX)), BOX),
        bind(Model(OnPolicy("normal", BOX)), BOX, deterministic=True),
        sampled_policy(
            _ready(Model(Networks("td3", BOX))), layout_of(OBSERVATIONS), layout_of(BOX, "action")
        ),
    ):
        drawn = draw(policy)
        np.testing.assert_allclose(drawn.rows, expected, atol=1e-6)
        assert [list(row) for row in drawn.noise] == [[], []]
        assert not policy.law.parts


def _ready(model: Model) -> Model:
    model.policy.set_training_mode(False)
    return model


def test_a_model_is_asked_once_for_all_observations() -> None:
    networks = OnPolicy("categorical", spaces.Discrete(2))
    policy = revar.policy_from_sb3(Model(networks))
    bound = sampled_policy(policy, layout_of(OBSERVATIONS), layout_of(spaces.Discrete(2)))
    draw(bound)
    assert networks.asked == [2]


def test_observations_are_normalised_as_in_training() -> None:
    model = Model(OnPolicy("categorical", spaces.Discrete(2)), normalized=True)
    wanted = 1.0 / (1.0 + np.exp(-SUMS / 2.0))
    drawn = draw(bind(model, spaces.Discrete(2)))
    np.testing.assert_allclose(np.array(drawn.noise)[:, 1], wanted, atol=1e-7)
    plain = Model(OnPolicy("categorical", spaces.Discrete(2)))
    given = draw(bind(plain, spaces.Discrete(2), vec_normalize=model.get_vec_normalize_env()))
    np.testing.assert_array_equal(given.noise, drawn.noise)


def test_a_model_as_it_is_takes_the_action_that_it_holds_best() -> None:
    model = Model(OnPolicy("categorical", spaces.Discrete(2)), normalized=True)
    spaces_of = layout_of(OBSERVATIONS), layout_of(spaces.Discrete(2), "action")
    policy = sampled_policy(model, *spaces_of)
    assert not policy.law.parts
    np.testing.assert_array_equal(np.ravel(draw(policy).rows), SUMS > 0)
    assert model.policy.asked == [2]  # once for both observations
    model.policy.lstm_actor = object()
    with pytest.raises(InputError, match="Model is recurrent"):
        sampled_policy(model, *spaces_of)


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="object is no model of Stable-Baselines3"):
        revar.policy_from_sb3(object())
    keeping = Model(OnPolicy("normal", BOX), use_sde=True)
    with pytest.raises(InputError, match="noise that is kept over steps"):
        revar.policy_from_sb3(keeping)
    revar.policy_from_sb3(keeping, deterministic=True)
    recurrent = Model(OnPolicy("normal", BOX))
    recurrent.policy.lstm_actor = object()
    with pytest.raises(InputError, match="Model is recurrent"):
        revar.policy_from_sb3(recurrent)
    with pytest.raises(InputError, match=r"actions are Discrete\(2\); the model's are a Box"):
        bind(Model(Squashing("normal", BOX)), spaces.Discrete(2))


def test_what_a_model_raises_is_said_in_a_sentence() -> None:
    policy = bind(Model(OnPolicy("multi", spaces.Discrete(2))), spaces.Discrete(2))
    policy._model.policy.obs_to_tensor = None
    with pytest.raises(InputError, match=r"the policy raised TypeError at observation array\("):
        draw(policy)


def test_a_model_of_other_actions() -> None:
    drawing = bind(Model(OnPolicy("categorical", spaces.Discrete(2))), spaces.Discrete(3))
    with pytest.raises(InputError, match=r"probabilities of \[2\] values; .* have \[3\]"):
        draw(drawing)
    best = bind(Model(Networks("", spaces.Discrete(2))), spaces.Discrete(1), deterministic=True)
    with pytest.raises(InputError, match=r"action 1 does not belong to Discrete\(1\)"):
        draw(best)
