"""Differences of policies, collected together or apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revar import estimation_variance, policy_value, simulate
from revar.errors import InputError
from revar.experiments import shards
from revar.experiments.exact import compute_exact_values
from revar.experiments.experiment import Choice, build_problem, check_experiment
from revar.experiments.runner import run_experiment
from revar.experiments.shards import Cell, Shard, cells_of, shards_of
from tests.experiments.small import assert_equal_results, small

GRID = Choice(id="gridworld", label="A - B", options={"against": 0.35})
DIFFERENCE: dict[str, Any] = {
    "problems": [{"id": "gridworld", "label": "A - B", "options": {"against": 0.35}}],
    "strategies": [
        {"id": "on-policy", "label": "each by itself", "apart": True},
        {"id": "flow", "label": "flows", "apart": True},
        "flow",
    ],
}


def cell(**changes: Any) -> Cell:
    fields: dict[str, Any] = {
        "problem": GRID,
        "strategy": Choice(id="on-policy"),
        "estimator": Choice(id="certainty-equivalence"),
        "budget": 41,
        "at_checkpoints": False,
        "known_transitions": False,
        "seed": 3,
        "apart": True,
    }
    return Cell(**fields | changes)


def test_what_theory_says_of_a_difference() -> None:
    exact = compute_exact_values(GRID, known_transitions=False)
    assert exact.value == pytest.approx(1.42875 - 1.52429, abs=1e-5)
    assert [each.value for each in exact.alone] == pytest.approx([1.42875, 1.52429], abs=5e-6)
    # The printed numbers; limits are certified to a thousandth.
    assert exact.on_policy == exact.expected("on-policy") == pytest.approx(56.54, abs=5e-3)
    assert exact.limit == exact.expected("flow") == pytest.approx(16.614, rel=1e-3)
    assert exact.best_split("on-policy") == pytest.approx(162.27, abs=5e-3)
    assert exact.best_split("flow") == pytest.approx(62.74, rel=1e-3)
    # Half of the episodes each: twice the sum.
    assert exact.expected("on-policy", apart=True) == pytest.approx(2 * (20.156 + 68.046), abs=2e-3)
    assert exact.expected("flow", apart=True) == pytest.approx(2 * (4.710 + 33.071), rel=1e-3)
    assert exact.expected("revar", apart=True) is None
    assert exact.monte_carlo > 2 * (20.156 + 68.046)


def test_a_single_policy_has_nothing_apart() -> None:
    exact = compute_exact_values(Choice(id="gridworld"), known_transitions=False)
    assert exact.alone == ()
    assert exact.expected("flow", apart=True) == exact.expected("flow") == exact.limit


def test_together_is_what_simulate_gives() -> None:
    problem = build_problem(GRID)
    (shard,) = shards_of(cell(apart=False, budget=40), 4)
    found = shard.play(threads=1)
    expected = simulate(
        problem.mdp, problem.question, "on-policy", episodes=40, runs=4, seed=3, checkpoints=[40]
    )
    np.testing.assert_array_equal(found.estimates, expected.estimates)
    np.testing.assert_array_equal(found.standard_errors, expected.standard_errors)


def test_apart_each_policy_has_its_share_and_its_stream() -> None:
    problem = build_problem(GRID)
    (shard,) = shards_of(cell(), 4)
    done: list[tuple[int, int]] = []
    found = shard.play(threads=1, progress=lambda *each: done.append(each))
    first, second = (
        simulate(
            problem.mdp, policy, "on-policy", episodes=20, runs=4, seed=int(seed), checkpoints=[20]
        )
        for policy, seed in zip(
            problem.question.policies, np.random.SeedSequence(3).generate_state(2), strict=True
        )
    )
    assert found.checkpoints.tolist() == [41]
    np.testing.assert_array_equal(found.estimates, first.estimates - second.estimates)
    np.testing.assert_allclose(
        found.standard_errors, np.hypot(first.standard_errors, second.standard_errors)
    )
    np.testing.assert_array_equal(found.visits, (first.visits + second.visits).sum(axis=0))
    assert done[-1] == (4 * 40, 4 * 40)


def test_along_the_way_there_is_an_estimate_once_each_has_an_episode() -> None:
    (shard,) = shards_of(cell(at_checkpoints=True), 3)
    found = shard.play(threads=1)
    assert found.checkpoints[:3].tolist() == [1, 2, 3]
    assert np.isnan(found.estimates[:, 0]).all()
    assert np.isfinite(found.estimates[:, 1:]).all()
    # After three episodes each policy has one, as after two.
    np.testing.assert_array_equal(found.estimates[:, 1], found.estimates[:, 2])
    (end,) = shards_of(cell(), 3)
    np.testing.assert_array_equal(found.estimates[:, -1:], end.play(threads=1).estimates)


def test_apart_has_the_variance_of_two_independent_estimates() -> None:
    problem = build_problem(GRID)
    episodes, runs = 2000, 1000
    found = Shard(cell=cell(budget=episodes), first_run=0, runs=runs).play()
    one, other = problem.question.policies
    truth = policy_value(problem.mdp, one) - policy_value(problem.mdp, other)
    expected = 2 * sum(estimation_variance(problem.mdp, p, p) for p in (one, other))
    squares = episodes * (found.estimates[:, 0] - truth) ** 2
    # Theory holds for many episodes: a thousand each leave less than the noise of the runs.
    assert abs(squares.mean() - expected) < 4 * squares.std() / np.sqrt(runs)
    assert episodes * found.variances.mean() == pytest.approx(expected, rel=0.05)


def test_it_is_run_in_parts_stored_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = small(episodes=[10, 40], **DIFFERENCE)
    whole = run_experiment(experiment, tmp_path / "whole", seed=5)
    monkeypatch.setattr(shards, "EPISODES_OF_A_SHARD", 80)
    cut = run_experiment(experiment, tmp_path / "cut", seed=5)
    assert_equal_results(cut, whole)
    assert_equal_results(run_experiment(experiment, tmp_path / "whole", seed=5), whole)
    assert whole.strategies() == ["each by itself", "flows", "flow"]
    assert {series.true_value for series in whole.series} == {whole.exact("A - B").value}
    together = [each.apart for each in cells_of(experiment, 0)]
    assert together == [True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"strategies": [{"id": "on-policy", "estimators": ["monte-carlo"]}]},
            "problem 'A - B' asks about 2 policies, and estimator 'monte-carlo' about one; use "
            "'certainty-equivalence', or collect for each apart",
        ),
        (
            {"episodes": [1, 10]},
            "strategy 'each by itself' collects apart for each of 2 policies, and the budget is 1",
        ),
        (
            {"quick": {"runs": 2, "episodes": 1}},
            "strategy 'each by itself' collects apart for each of 2 policies, and the budget is 1",
        ),
    ],
)
def test_what_does_not_fit_is_known_before_the_run(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_experiment(small(**DIFFERENCE | changes))
    assert str(caught.value) == message


def test_apart_other_estimators_fit() -> None:
    way = {"id": "on-policy", "estimators": ["monte-carlo"], "apart": True}
    experiment = check_experiment(small(**DIFFERENCE | {"strategies": [way]}))
    (monte_carlo,) = cells_of(experiment, 0)
    (shard,) = shards_of(monte_carlo, 3)
    assert np.isfinite(shard.play().estimates[:, -1]).all()
