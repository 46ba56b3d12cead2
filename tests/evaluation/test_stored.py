"""Stored episodes judged by policies in every form, and refused where they belong elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.datasets import merge_datasets
from revar.environments.observations import make_encoding
from revar.errors import InputError
from revar.model.trajectory import Dataset, Trajectory
from tests.environments.custom import HALF, Corridor


class Odd(gymnasium.Env[Any, Any]):
    """States drawn at random from any space; those drawn are worth what they are."""

    def __init__(self, space: Any) -> None:
        self.observation_space = space
        self.action_space = spaces.Discrete(2)
        self.step_number = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.step_number = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.step_number += 1
        reward = float(action) + float(self.np_random.normal())
        return self.observation_space.sample(), reward, self.step_number == 3, False, {}


@pytest.fixture(scope="module")
def lake() -> revar.EvaluationResult:
    return revar.evaluate(
        "FrozenLake-v1", np.eye(4)[[1] * 16], strategy="on-policy", episodes=60, seed=0
    )


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_uniform_counts_actions_that_were_never_taken(
    lake: revar.EvaluationResult, suffix: str, tmp_path: Path
) -> None:
    """Only action 1 was taken: three quarters of the policy's first steps rest on no data."""
    lake.save(tmp_path / f"lake{suffix}")
    for data in (
        lake.dataset,
        tmp_path / f"lake{suffix}",
        merge_datasets(lake.dataset, lake.dataset),
    ):
        result = revar.evaluate_data(data, "uniform", horizon=100)
        assert result.task.policy.shape[1] == 4
        assert result.unvisited_probability >= 0.75


def test_uniform_is_refused_where_the_number_of_actions_is_not_known() -> None:
    data = Dataset.of([Trajectory.of([0, 1], [0, 0], [1.0, 2.0])])
    with pytest.raises(InputError, match=r"'uniform' needs env=\.\.\. or an array"):
        revar.evaluate_data(data, "uniform", horizon=2)
    with pytest.raises(InputError, match="has action 0 of 0 actions"):
        replace(data, action_count=0)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, start=-1),
        spaces.Discrete(3, start=2),
        spaces.MultiDiscrete([2, 3], start=[1, -1]),
        spaces.Tuple([spaces.Discrete(2), spaces.MultiDiscrete([2, 2])]),
        spaces.Dict({"b": spaces.Dict({"x": spaces.Discrete(2)}), "a": spaces.Discrete(2)}),
    ],
    ids=str,
)
def test_an_array_means_the_same_with_and_without_the_environment(space: Any) -> None:
    shape = make_encoding(space).shape
    policy = np.random.default_rng(0).dirichlet(np.ones(2), shape)
    played = revar.evaluate(Odd(space), policy, episodes=100, horizon=3, seed=0)
    alone = revar.evaluate_data(played.dataset, policy, horizon=3)
    beside = revar.evaluate_data(played.dataset, policy, horizon=3, env=Odd(space))
    assert alone.value == pytest.approx(beside.value)
    assert alone.value == pytest.approx(played.value)


def test_labels_without_a_place_in_an_array_are_refused() -> None:
    for label in (-1, "here", (0, -1)):
        data = Dataset.of([Trajectory.of([0], [0], [1.0])], (label,))
        with pytest.raises(InputError, match="has no place in an array; give env="):
            revar.evaluate_data(data, np.full((2, 2), 0.5), horizon=1)


def test_environments_by_name(lake: revar.EvaluationResult) -> None:
    alone = revar.evaluate_data(lake.dataset, "uniform", horizon=100)
    named = revar.evaluate_data(lake.dataset, "uniform", horizon=100, env="FrozenLake-v1")
    assert named.value == alone.value
    policy = np.full((16, 4), 0.25)
    data = revar.evaluate("FrozenLake-v1", policy, episodes=300, seed=0).dataset
    advice = revar.advise(data, policy, half_width=0.1, horizon=100, env="FrozenLake-v1")
    assert advice.pilot_episodes == 300
    large = {"map_name": "8x8"}
    with pytest.raises(InputError, match=r"policy has shape \(16, 4\)"):
        revar.evaluate_data(data, policy, horizon=9, env="FrozenLake-v1", env_options=large)


def test_episodes_of_another_environment_are_refused(lake: revar.EvaluationResult) -> None:
    with pytest.raises(InputError, match="have action 1; there are 1 actions"):
        one = Corridor(16)
        one.action_space = spaces.Discrete(1)
        revar.evaluate(one, "uniform", episodes=5, horizon=9, prior=lake.dataset)
    for policy in ("uniform", lambda seen: HALF):
        with pytest.raises(InputError, match=r"state 0 is none of Tuple\(Discrete\(32\)"):
            revar.evaluate("Blackjack-v1", policy, episodes=5, prior=lake.dataset)
    with pytest.raises(InputError, match=r"state \d+ is none of Discrete\(3\)"):
        revar.evaluate(Corridor(3), np.full((3, 2), 0.5), episodes=5, horizon=9, prior=lake.dataset)
    # States are asked for in the order they were met in: 4 comes first mostly, and sometimes 6.
    labels = lake.dataset.labels or ()
    met = [labels[i] for i in np.unique(lake.dataset.states)]
    beyond = next(label for label in met if label not in range(4))
    with pytest.raises(InputError, match=rf"has no state {beyond}$"):
        revar.evaluate_data(lake.dataset, np.full((4, 4), 0.25), horizon=9)


def test_confidence_and_rewards_out_of_range(lake: revar.EvaluationResult) -> None:
    with pytest.raises(InputError, match="confidence is 2; it must lie between 0 and 1"):
        revar.advise(lake.dataset, "uniform", half_width=0.1, horizon=9, confidence=2)
    with pytest.raises(InputError, match="confidence is 2; it must lie between 0 and 1"):
        revar.evaluate_data(lake.dataset, "uniform", horizon=9, confidence=2)
    with pytest.raises(InputError, match=r"rewards at step 1 is -1e\+200; its size must be"):
        Trajectory.of([0, 1], [0, 0], [1.0, -1e200])
    largest = Dataset.of([Trajectory.of([0], [0], [size]) for size in (1e75, -1e75, 0.0)])
    result = revar.evaluate_data(largest, [[1.0]], horizon=1)
    assert np.isfinite(result.interval).all()
