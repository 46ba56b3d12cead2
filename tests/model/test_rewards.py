from typing import Any

import numpy as np
import pytest

from revar import TabularMDP
from revar.errors import InputError
from revar.model.rewards import RewardLaw

MEANS = np.array([[0.25, -2.0], [1.0, 0.0]])


def build(law: str, mean: Any = MEANS, std: Any = 0.5) -> TabularMDP:
    return TabularMDP(np.full((2, 2, 2), 0.25), mean, std, [1.0, 0.0], 2, reward_law=law)


def test_laws_are_named_as_users_write_them() -> None:
    labels = ["normal", "two-point", "bernoulli", "uniform", "deterministic"]
    assert [law.label for law in RewardLaw] == labels
    assert [RewardLaw.find(label) for label in labels] == list(RewardLaw)


def test_the_default_law_is_normal_and_unbounded() -> None:
    mdp = TabularMDP(np.zeros((1, 1, 1)), 0.0, 1.0, [1.0], 1)
    assert mdp.reward_law == "normal"
    assert mdp.reward_bound == np.inf


def test_normal_rewards_without_noise_are_bounded() -> None:
    assert build("normal", std=0.0).reward_bound == 2.0


def test_bounds_reach_from_the_mean_as_far_as_the_law_does() -> None:
    assert build("two-point").reward_bound == 2.5
    assert build("uniform").reward_bound == 2.0 + np.sqrt(3.0) * 0.5
    assert build("deterministic", std=0.0).reward_bound == 2.0


def test_the_bound_is_of_the_largest_reward_not_of_the_largest_mean() -> None:
    std = np.array([[0.0, 0.0], [0.0, 9.0]])
    assert build("two-point", std=std).reward_bound == 9.0


def test_bernoulli_rewards_are_bounded_by_one() -> None:
    mean = np.array([[0.2, 0.0], [1.0, 0.5]])
    mdp = build("bernoulli", mean, np.sqrt(mean * (1 - mean)))
    assert mdp.reward_bound == 1.0
    assert build("bernoulli", np.zeros((2, 2)), 0.0).reward_bound == 0.0


def test_bernoulli_means_lie_in_the_unit_interval() -> None:
    with pytest.raises(InputError) as caught:
        build("bernoulli", np.array([[0.5, 0.5], [1.5, 0.5]]), 0.5)
    assert str(caught.value) == (
        "state 1, action 0: reward_mean is 1.5; a bernoulli mean lies in [0, 1]"
    )


def test_bernoulli_deviations_follow_from_the_mean() -> None:
    with pytest.raises(InputError) as caught:
        build("bernoulli", np.array([[0.5, 0.2], [0.5, 0.5]]), 0.5)
    assert str(caught.value) == (
        "state 0, action 1: reward_std is 0.5; a bernoulli reward of mean 0.2 has std 0.4"
    )


def test_deterministic_rewards_have_no_deviation() -> None:
    with pytest.raises(InputError) as caught:
        build("deterministic", std=np.array([[0.0, 0.0], [0.0, 0.1]]))
    assert str(caught.value) == (
        "state 1, action 1: reward_std is 0.1; a deterministic reward has std 0"
    )


def test_laws_hold_outcome_by_outcome() -> None:
    # Each outcome is deterministic, though the pair's reward is not.
    mean = np.zeros((2, 2, 3))
    mean[0, 0] = [1.0, 2.0, -5.0]
    mdp = build("deterministic", mean, 0.0)
    assert mdp.reward_bound == 5.0
    assert mdp.reward_std[0, 0] > 0
    with pytest.raises(InputError) as caught:
        build("deterministic", mean, np.eye(3)[None, [2, 2]] * [[[1.0], [0.0]], [[1.0], [0.0]]])
    assert str(caught.value) == (
        "state 0, action 0, outcome 'episode ends': reward_std is 1; a deterministic reward has "
        "std 0"
    )


def test_bounds_look_at_outcomes() -> None:
    mean = np.zeros((2, 2, 3))
    mean[1, 0] = [1.0, -7.0, 3.0]
    std = np.zeros((2, 2, 3))
    std[1, 0] = [0.0, 0.25, 4.5]
    assert build("two-point", mean, std).reward_bound == 7.5
