"""Filling where what the policy avoids is worse, or better, in all states."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar import TabularMDP, policy_value, return_variance, simulate
from revar.estimators import CertaintyEquivalence
from revar.model.task import Task
from tests.plain_filling import Observed, error_of, filled, filled_where_known
from tests.plain_model import PlainModel
from tests.plain_simulation import dataset

BOTH = pytest.mark.parametrize("known", [False, True])


def preferring(seed: int, slope: float, noise: float = 0.0, apart: float = 0.0) -> PlainModel:
    """Rewards rise with preference; an action does nothing else, but for `apart`, its own.

    Each state prefers another action.
    """
    rng = np.random.default_rng(seed)
    states, actions = 30, 4
    policy = rng.dirichlet(np.full(actions, 0.3), size=states) * 0.9 + 0.1 / actions
    means = rng.normal(size=(states, 1)) + slope * policy
    means = means + apart * rng.normal(size=policy.shape)
    shape = (states, actions, states + 1)
    chance = np.zeros(shape)
    for s in range(states):
        chance[s, :, rng.integers(states, size=3)] += 0.3
        chance[s, :, -1] = 1.0 - chance[s, :, :-1].sum(axis=1)
    return PlainModel(
        chance / chance.sum(axis=2, keepdims=True),
        np.broadcast_to(means[:, :, None], shape),
        np.full(shape, noise),
        np.full(states, 1.0 / states),
        10,
        0.95,
        policy,
    )


def estimated(model: PlainModel, known: bool, episodes: int, seed: int) -> tuple[Any, Any]:
    data = dataset(model, model.policy, episodes, np.random.default_rng(seed))
    task = Task.of(model.mdp(), model.policy)
    _, found = CertaintyEquivalence(known_transitions=known).plug_in(task, data)
    return found, data


@BOTH
@given(st.integers(0, 10_000), st.sampled_from([-8.0, 8.0]), st.floats(0.0, 1.0))
def test_it_agrees_with_plain_numpy(known: bool, seed: int, slope: float, noise: float) -> None:
    model = preferring(seed, slope, noise, apart=noise)
    found, data = estimated(model, known, 30, seed)
    oracle = (filled_where_known if known else filled)(model, data)
    assert found.values[0] == pytest.approx(oracle.value, rel=1e-9, abs=1e-10)
    error = error_of(Observed.of(model, data), oracle)
    assert found.covariance[0, 0] == pytest.approx(error.variance, rel=1e-6, abs=1e-12)
    if known and noise < 0.1:
        assert oracle.slope == pytest.approx(slope, abs=1.0)


@BOTH
def test_it_is_evident_in_most_data_of_that_kind(known: bool) -> None:
    slopes = [
        (filled_where_known if known else filled)(model, estimated(model, known, 60, seed)[1]).slope
        for seed in range(20)
        for model in [preferring(seed, 8.0)]
    ]
    assert np.count_nonzero(slopes) > 10
    assert min(slopes) >= 0.0


def test_what_preference_explains_is_known_where_transitions_are() -> None:
    checked = 0
    for seed in range(20):
        model = preferring(seed, 8.0)
        found, data = estimated(model, True, 90, seed)
        visits = np.zeros(model.policy.shape)
        np.add.at(visits, (data.states, data.actions), 1)
        assert (visits == 0).any()
        if not visits.any(axis=1).all():
            continue
        checked += 1
        truth = policy_value(model.mdp(), model.policy)
        assert found.values[0] == pytest.approx(truth, rel=1e-9, abs=1e-9)
    assert checked > 5


def test_where_transitions_are_known_rewards_alone_are_filled() -> None:
    """Preferred actions lead to better states, but all pay the same."""
    states, actions = 30, 4
    transitions = np.zeros((states, actions, states))
    transitions[:, 0, : states // 2] = 2.0 / states
    transitions[:, 1:, states // 2 :] = 2.0 / states
    rewards = np.repeat(np.where(np.arange(states) < states // 2, 10.0, 0.0), actions)
    mdp = TabularMDP(
        *(transitions, rewards.reshape(states, actions), 0.0, np.full(states, 1 / states), 5)
    )
    policy = np.tile([0.7, 0.1, 0.1, 0.1], (states, 1))
    options: dict[str, Any] = {"episodes": 60, "runs": 50, "checkpoints": [60]}
    estimator = CertaintyEquivalence(known_transitions=True)
    played = simulate(mdp, policy, "on-policy", **options, estimator=estimator)
    np.testing.assert_allclose(played.estimates, policy_value(mdp, policy), rtol=1e-9)


def errands(states: int = 40) -> tuple[TabularMDP, Any]:
    """In each state another action leads on. The others lose 10, and the policy avoids them.

    So what it avoids is bad everywhere, though no action is by itself; and nothing is random.
    """
    good = np.random.default_rng(1).integers(4, size=states)
    transitions, rewards = np.zeros((states, 4, states)), np.full((states, 4), -10.0)
    for s in range(states):
        for a in range(4):
            transitions[s, a, (s + 7) % states if a == good[s] else s] = 1.0
        rewards[s, good[s]] = -1.0
    policy = np.full((states, 4), 0.03)
    policy[np.arange(states), good] = 0.91
    return TabularMDP(transitions, rewards, 0.0, np.full(states, 1 / states), 12), policy


@pytest.mark.parametrize("episodes", [10, 40])
def test_what_the_policy_avoids_may_be_worse_everywhere(episodes: int) -> None:
    """Where the mean return errs by 2.8 and 1.4, nothing is left to be learned."""
    mdp, policy = errands()
    played = simulate(
        *(mdp, policy, "on-policy"),
        episodes=episodes, runs=200, seed=2, checkpoints=[episodes],
    )  # fmt: skip
    np.testing.assert_allclose(played.estimates, policy_value(mdp, policy), rtol=1e-9)


def losses(policy: Any, *rewards: float) -> TabularMDP:
    """An action pays the same in every state, and all lead to the same next one."""
    states, actions = policy.shape
    transitions = np.zeros((states, actions, states))
    transitions[:] = np.roll(np.eye(states), 7, axis=1)[:, None, :]
    return TabularMDP(
        *(transitions, np.tile(rewards, (states, 1)), 1.0, np.full(states, 1 / states), 20)
    )


@pytest.mark.parametrize(
    "rewards", [(0, -20, -20, -20), (0, -60, 0, 0), (0, -20, 20, 0), (0, -10, -20, -30)]
)
@pytest.mark.parametrize("strategy", ["on-policy", "flow"])
def test_rare_losses_are_neither_missed_nor_made_up(strategy: str, rewards: Any) -> None:
    """Whether preference explains them, in part, or not at all."""
    policy = np.tile([0.94, 0.02, 0.02, 0.02], (100, 1))
    mdp = losses(policy, *rewards)
    played = simulate(
        *(mdp, policy, strategy),
        episodes=60, runs=200, seed=2, checkpoints=[60], estimator="smallest-error",
    )  # fmt: skip
    # 90% of 200 intervals, less three standard errors.
    assert played.coverage()[0] > 0.836
    mean_return = return_variance(mdp, policy) / 60
    assert played.mse[0] < 1.1 * mean_return + 2.0 * played.mse_standard_error[0]
