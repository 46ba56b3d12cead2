"""Advice from pilots, against exact numbers of known models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revar
from revar.errors import InputError
from tests.environments.custom import Priced, energy

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


LAKE = revar.find_problem("frozenlake", epsilon=0.2)


def test_the_numbers_in_steps_are_the_exact_ones() -> None:
    """Per episode flow needs two thirds of on-policy; per step no more than a seventh is saved."""
    mdp, policy = LAKE.mdp, LAKE.policy
    exact = [
        (Z / 0.02) ** 2 * need
        for need in (
            revar.estimation_variance(mdp, policy, policy) * revar.occupancy(mdp, policy).sum(),
            revar.optimal_flow(mdp, policy, cost="steps").limit,
        )
    ]
    (pilot,) = revar.simulate(
        mdp, policy, "on-policy", episodes=4000, runs=1, seed=3, keep_episodes=True
    ).datasets
    stored: Any = {"half_width": 0.02, "horizon": mdp.horizon, "discount": mdp.discount}
    steps = revar.advise(pilot, policy, cost="steps", **stored)
    for need, number in zip((steps.on_policy, steps.flow), exact, strict=True):
        assert need.unit == "steps"
        assert need.amount == pytest.approx(number, rel=0.2)
        assert need.high is not None
        assert need.low < need.amount < need.high
    assert steps.gain == pytest.approx(1.14, abs=0.05)
    assert f"{steps.flow.amount:,} steps (95%: " in str(steps)
    assert "of the steps that on-policy needs here" in steps.sentence
    plain = revar.advise(pilot, policy, **stored)
    assert plain.gain > 1.3
    assert plain.on_policy.episodes == plain.on_policy.amount == steps.on_policy.episodes
    doubled = revar.advise(pilot, policy, cost=np.full((16, 4), 2.0), **stored)
    assert doubled.flow.unit == "cost"
    assert doubled.flow.amount == pytest.approx(2 * steps.flow.amount, rel=1e-3)
    assert "a cost of " in str(doubled)


def test_a_cost_in_any_form_gives_the_same_advice(tmp_path: Path) -> None:
    options: Any = {"half_width": 0.05, "horizon": 9}
    table = np.array([[energy(place, action) for action in range(2)] for place in range(3)])
    told = [
        revar.advise(Priced(), "uniform", cost=cost, seed=1, **options)
        for cost in ("energy", energy, table)
    ]
    path = tmp_path / "pilot.npz"
    # Stored episodes of the same pilot: they have what they cost under the name of a limited sum.
    limits = revar.Limits(max_sums=[("energy", 1000.0)])
    pilot = revar.evaluate(
        Priced(),
        "uniform",
        strategy="on-policy",
        episodes=200,
        horizon=9,
        seed=1,
        save=path,
        limits=limits,
    )
    told += [
        revar.advise(path, "uniform", cost=cost, half_width=0.05) for cost in ("energy", table)
    ]
    told.append(revar.advise(pilot.dataset, "uniform", cost=energy, env=Priced(), **options))
    for advice in told[1:]:
        assert advice.flow.amount == pytest.approx(told[0].flow.amount)
        assert advice.on_policy.low == pytest.approx(told[0].on_policy.low)
    with pytest.raises(InputError, match="does not have the 'money' of its steps; it has energy"):
        revar.advise(pilot.dataset, "uniform", cost="money", **options)
    with pytest.raises(InputError, match="cost of state 0, action 0 is -1; it must not be negat"):
        revar.advise(Priced(), "uniform", cost=-table, **options)


def test_advice_within_limits() -> None:
    grid: Any = {"half_width": 0.1, "pilot": 800, "seed": 0}
    free = revar.advise("gridworld", None, **grid)
    bound = revar.advise("gridworld", None, limits=revar.Limits(max_ratio=1.0), **grid)
    assert bound.on_policy == free.on_policy
    assert bound.gain == pytest.approx(1.0, abs=1e-6)
    between = revar.advise("gridworld", None, limits=revar.Limits(max_ratio=3.0), **grid)
    assert bound.gain < between.gain < free.gain
    floor = revar.advise("gridworld", None, limits=revar.Limits(min_return="100%"), **grid)
    assert floor.gain == pytest.approx(free.gain, rel=0.02)
    with pytest.raises(InputError, match=r"min_return is 99.0; no allowed behavior returns more"):
        revar.advise(
            Priced(), "uniform", half_width=0.1, horizon=9, limits=revar.Limits(min_return=99)
        )
    with pytest.raises(InputError, match="limits forbid action 1 in state"):
        revar.advise(
            Priced(), "uniform", half_width=0.1, horizon=9, limits=revar.Limits(forbidden=[1])
        )
