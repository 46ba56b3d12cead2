"""The simulated environment: rewards, outcomes and first states have the model's distribution."""

import numpy as np
import pytest

from revar import TabularMDP, simulate
from revar.model.rewards import RewardLaw

MEAN, STD = np.array([[0.3, 0.6]]), np.array([[2.0, 0.5]])
BERNOULLI = np.sqrt(MEAN * (1 - MEAN))
STEPS = 400_000


@pytest.mark.parametrize("law", [law.label for law in RewardLaw])
def test_rewards_have_the_moments_and_support_of_their_law(law: str) -> None:
    std = {"bernoulli": BERNOULLI, "deterministic": 0 * STD}.get(law, STD)
    mdp = TabularMDP(np.zeros((1, 2, 1)), MEAN, std, [1.0], 1, reward_law=law)
    policy = np.array([[0.5, 0.5]])
    result = simulate(mdp, policy, "on-policy", episodes=STEPS, runs=1, keep_episodes=True)
    data = result.datasets[0]
    for action in (0, 1):
        rewards = data.rewards[data.actions == action]
        mean, deviation = MEAN[0, action], std[0, action]
        centred = rewards - mean
        error = rewards.std() / np.sqrt(rewards.size)
        assert abs(centred.mean()) <= 4 * error
        error = (centred**2).std() / np.sqrt(rewards.size)
        assert abs((centred**2).mean() - deviation**2) <= 4 * error + 1e-12
        reach = np.abs(centred).max()
        if law == "two-point":
            np.testing.assert_allclose(np.abs(centred), deviation, rtol=1e-12)
        elif law == "bernoulli":
            assert set(rewards.tolist()) == {0.0, 1.0}
        elif law == "uniform":
            assert 0.99 * np.sqrt(3) * deviation < reach <= np.sqrt(3) * deviation * (1 + 1e-12)
        elif law == "deterministic":
            assert set(rewards.tolist()) == {mean}
        else:
            # The kurtosis of a normal variable, 3; its standard error is sqrt(24/n).
            kurtosis = np.mean(centred**4) / np.mean(centred**2) ** 2
            assert abs(kurtosis - 3) < 4 * np.sqrt(24 / rewards.size)


def test_first_states_outcomes_and_rewards_by_outcome() -> None:
    transitions = np.zeros((3, 1, 3))
    transitions[0, 0] = 0.5, 0.2, 0.1  # and ends with probability 0.2
    transitions[1, 0, 2] = 1.0
    # The reward tells the outcome: its column, the end being the last.
    rewards = np.broadcast_to(np.arange(4.0), (3, 1, 4))
    mdp = TabularMDP(transitions, rewards, 0.0, [0.6, 0.1, 0.3], 2, reward_law="deterministic")
    result = simulate(mdp, np.ones((3, 1)), "on-policy", episodes=STEPS, runs=1, keep_episodes=True)
    data = result.datasets[0]

    def assert_shares(values: object, shares: list[float]) -> None:
        counts = np.bincount(np.asarray(values), minlength=len(shares))
        total, share = counts.sum(), np.array(shares)
        assert counts[share == 0].sum() == 0
        allowed = 4 * np.sqrt(total * share * (1 - share))
        assert np.all(np.abs(counts - total * share) <= allowed)

    outcome = np.where(data.successors < 0, 3, data.successors)
    assert_shares(data.states[data.start[:-1]], [0.6, 0.1, 0.3])
    assert_shares(outcome[data.states == 0], [0.5, 0.2, 0.1, 0.2])
    assert_shares(outcome[data.states == 1], [0.0, 0.0, 1.0, 0.0])
    assert_shares(outcome[data.states == 2], [0.0, 0.0, 0.0, 1.0])
    assert np.array_equal(data.rewards, outcome.astype(np.float64))
    # Two steps at most: an episode that goes on is cut there.
    lengths = np.diff(data.start)
    assert set(lengths.tolist()) == {1, 2}
    assert np.all((data.successors[data.start[1:] - 1] == -1) | (lengths == 2))
