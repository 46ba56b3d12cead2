"""Advice from pilots, against exact numbers of known models."""

from pathlib import Path

import numpy as np
import pytest

import revar
from revar.errors import InputError

Z = 1.959964


@pytest.mark.parametrize("problem_id", ["gridworld", "tree"])
def test_the_numbers_of_large_pilots_are_the_exact_ones(problem_id: str) -> None:
    problem = revar.find_problem(problem_id)
    mdp, policy = problem.mdp, problem.policy
    exact = [
        (Z / 0.1) ** 2 * variance
        for variance in (
            revar.estimation_variance(mdp, policy, policy),
            revar.optimal_flow(mdp, policy).limit,
        )
    ]
    covered = np.zeros(2)
    runs = 8
    pilots = revar.simulate(
        mdp, policy, "on-policy", episodes=1000, runs=runs, seed=2, keep_episodes=True
    ).datasets
    for data in pilots:
        advice = revar.advise(
            data, policy, half_width=0.1, horizon=mdp.horizon, discount=mdp.discount
        )
        for i, need in enumerate((advice.on_policy, advice.flow)):
            assert need.high is not None
            assert need.low <= need.episodes <= need.high
            assert need.episodes == pytest.approx(exact[i], rel=0.6)
            covered[i] += need.low <= exact[i] <= need.high
    assert np.all(covered >= runs - 3)


def test_advice_needs_as_many_episodes_as_a_run_then_takes() -> None:
    """The advised number of flow's episodes gives about the wanted half-width."""
    lake = revar.from_gymnasium("FrozenLake-v1", discount=0.99)
    advice = revar.advise(
        "FrozenLake-v1", "uniform", half_width=0.004, pilot=2000, discount=0.99, seed=1
    )
    result = revar.simulate(
        lake,
        np.full((16, 4), 0.25),
        "flow",
        episodes=advice.flow.episodes,
        runs=50,
        checkpoints=[advice.flow.episodes],
    )
    # Over seeds the half-width reached has a standard deviation of about 0.1 of the wanted one.
    assert Z * np.median(result.standard_errors) == pytest.approx(0.004, rel=0.35)
    assert advice.gain > 1.5
    assert "of the episodes that on-policy needs here" in advice.sentence
    assert str(advice).count("\n") >= 3


def test_on_policy_that_cannot_be_improved_is_called_so() -> None:
    """One action: nothing to choose."""
    mdp = revar.TabularMDP(np.zeros((1, 1, 1)), [[0.0]], [[1.0]], [1.0], horizon=1)
    advice = revar.advise(mdp, [[1.0]], half_width=0.1, pilot=300, seed=0)
    assert advice.sentence == "on-policy is already within 0% of optimal here"
    assert advice.on_policy.episodes == pytest.approx((Z / 0.1) ** 2, rel=0.3)


def test_too_little_data_is_called_so() -> None:
    advice = revar.advise("Taxi-v4", "uniform", half_width=1.0, pilot=20, discount=0.9, seed=0)
    assert advice.unvisited_probability > 0.1
    assert advice.sentence.startswith("the data has seen too little")


def test_where_little_varied_there_is_no_upper_end() -> None:
    """The uniform policy reaches the goal in 1.5% of episodes: the pilots see it never and once."""
    for pilot, seed, rewards in ((50, 0, 0), (200, 3, 1)):
        advice = revar.advise(
            "FrozenLake-v1", "uniform", half_width=0.005, discount=0.99, pilot=pilot, seed=seed
        )
        played = revar.evaluate(
            "FrozenLake-v1", "uniform", strategy="on-policy", episodes=pilot, seed=seed
        )
        assert played.dataset.rewards.sum() == rewards
        assert advice.on_policy.high is None and advice.flow.high is None
        assert "or more)" in str(advice)
        assert advice.sentence.startswith("too little varied")


def test_files_of_evaluations_know_horizon_and_discount(tmp_path: Path) -> None:
    path = tmp_path / "lake.npz"
    result = revar.evaluate(
        "FrozenLake-v1", "uniform", episodes=300, discount=0.9, seed=0, save=path
    )
    told = revar.advise(result.dataset, "uniform", half_width=0.01, horizon=100, discount=0.9)
    assert revar.advise(path, "uniform", half_width=0.01) == told
    assert revar.advise(path, "uniform", half_width=0.01, discount=0.5) != told


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="half_width is 0"):
        revar.advise("FrozenLake-v1", "uniform", half_width=0)
    data = revar.evaluate("FrozenLake-v1", "uniform", episodes=3, seed=0).dataset
    with pytest.raises(InputError, match="needs a horizon"):
        revar.advise(data, "uniform", half_width=0.1)
    with pytest.raises(InputError, match="no state"):
        revar.advise(data, [[0.25] * 4], half_width=0.1, horizon=100)
