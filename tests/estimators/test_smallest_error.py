"""What is reported: the table, and the mean return as far as the table is thin."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from revar import (
    Dataset,
    Task,
    Trajectory,
    Values,
    VisitStatistics,
    find_problem,
    simulate,
)
from revar.estimators import CertaintyEquivalence
from revar.estimators.corrected_return import CorrectedReturn
from revar.estimators.estimator import JointEstimate
from revar.estimators.smallest_error import SmallestError, mixed_estimate


def on_policy_data(name: str, episodes: int, seed: int = 0) -> tuple[Task, Dataset]:
    problem = find_problem(name)
    result = simulate(
        *(problem.mdp, problem.policy, "on-policy"),
        episodes=episodes,
        runs=1,
        seed=seed,
        keep_episodes=True,
        checkpoints=[episodes],
    )
    return Task.of(problem.mdp, problem.policy), result.datasets[0]


def same(estimate: JointEstimate, other: JointEstimate) -> bool:
    return bool(
        np.array_equal(estimate.values, other.values)
        and np.array_equal(estimate.covariance, other.covariance)
        and estimate.method == other.method
    )


def test_the_share_of_the_mean_return_by_hand() -> None:
    """Of four states that are met alike often, one is met once: a quarter of the steps is thin."""
    episodes = [
        Trajectory.of([s], [0], [reward], propensities=[1.0])
        for s, rewards in enumerate([(1.0, 3.0), (0.0, 2.0), (5.0,), (4.0, 8.0)])
        for reward in rewards
    ]
    task = Task(np.ones((4, 1)), 1, initial=np.full(4, 0.25))
    data = Dataset.of(episodes)
    table = CertaintyEquivalence().estimate(task, data)
    mean = CorrectedReturn().estimate(task, data)
    assert table.value == pytest.approx(3.5)
    assert mean.value == pytest.approx(23 / 7)
    share = 0.25**2
    found = SmallestError().estimate(task, data)
    assert found.value == pytest.approx(share * mean.value + (1 - share) * table.value, rel=1e-12)
    assert found.standard_error == pytest.approx(
        share * mean.standard_error + (1 - share) * table.standard_error, rel=1e-12
    )
    assert mixed_estimate(task, data, data).method == (
        "94% table, 6% corrected mean return: 25% of the policy's steps were seen at most once"
    )


@pytest.mark.parametrize("seed", range(3))
def test_blackjack_of_few_episodes_is_mostly_the_mean_return(seed: int) -> None:
    task, data = on_policy_data("blackjack", 10, seed)
    table, found = CertaintyEquivalence().plug_in(task, data)
    mean = CorrectedReturn().estimate(task, data)
    joint = mixed_estimate(task, data, data)
    share = (joint.values[0] - table.values[0]) / (mean.value - table.values[0])
    assert share == pytest.approx(found.thin_share[0] ** 2)
    assert share > 0.5
    estimate = joint.value_of(0)
    between = sorted([mean.standard_error, table.value_of(0).standard_error])
    assert between[0] <= estimate.standard_error <= between[1]
    assert estimate.unvisited_probability == pytest.approx(
        (1.0 - share) * table.unvisited_probability[0], rel=1e-6
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_gridworld_of_many_episodes_is_the_table(seed: int) -> None:
    task, data = on_policy_data("gridworld", 200, seed)
    joint = mixed_estimate(task, data, data)
    assert joint.method == "table"
    assert same(joint, CertaintyEquivalence().joint_estimate(task, data))


def test_statistics_give_certainty_equivalence() -> None:
    task, data = on_policy_data("blackjack", 50)
    statistics = VisitStatistics(task.states, task.actions)
    statistics.record_many(data)
    table = CertaintyEquivalence().joint_estimate(task, statistics)
    assert same(mixed_estimate(task, statistics, None), table)
    assert SmallestError().estimate(task, statistics) == table.value_of(0)


def test_several_policies_give_certainty_equivalence() -> None:
    task, data = on_policy_data("blackjack", 50)
    asked = Values([task.policy, np.full(task.policy.shape, 1.0 / task.actions)])
    several = replace(task, policy=asked.policy, question=asked)
    joint = mixed_estimate(several, data, data)
    assert same(joint, CertaintyEquivalence().joint_estimate(several, data))


def test_off_policy_data_gives_certainty_equivalence() -> None:
    task, data = on_policy_data("blackjack", 50)
    tracked = replace(data, propensities=np.full(data.propensities.shape, np.nan))
    joint = mixed_estimate(task, tracked, tracked)
    assert same(joint, CertaintyEquivalence().joint_estimate(task, tracked))


def test_its_share_falls_with_that_of_the_on_policy_episodes() -> None:
    """A table of all then rests on more than the mean return does, which errs more besides."""
    task, data = on_policy_data("blackjack", 50)
    table, found = CertaintyEquivalence().plug_in(task, data)
    shares = []
    for on_policy in (1, 10, 30, 50):
        propensities = data.propensities.copy()
        propensities[data.start[on_policy] :] = np.nan
        mixed = replace(data, propensities=propensities)
        joint = mixed_estimate(task, mixed, mixed)
        share = 0.0
        if on_policy > 1:
            mean = CorrectedReturn().estimate(task, data.head(on_policy))
            share = (joint.values[0] - table.values[0]) / (mean.value - table.values[0])
            assert share == pytest.approx(found.thin_share[0] ** 2 * on_policy / 50)
        shares.append(share)
    assert shares == sorted(shares)
    assert shares[0] == 0.0


def test_the_values_have_no_say_in_the_choice() -> None:
    """Returns that are turned over or scaled leave the choice as it is."""
    for name, episodes in (("blackjack", 50), ("gridworld", 200)):
        task, data = on_policy_data(name, episodes)
        methods = {
            mixed_estimate(task, moved, moved).method
            for moved in (data, *(replace(data, rewards=k * data.rewards) for k in (-1.0, 1e3)))
        }
        assert len(methods) == 1


def test_simulations_of_flow_report_it() -> None:
    problem = find_problem("blackjack")
    options: dict[str, Any] = {"episodes": 50, "runs": 3, "checkpoints": [50]}
    by_default = simulate(problem.mdp, problem.policy, "flow", **options, keep_episodes=True)
    assert by_default.estimator == "smallest-error"
    task = Task.of(problem.mdp, problem.policy)
    for run, data in enumerate(by_default.datasets):
        joint = mixed_estimate(task, data, data)
        assert "corrected mean return" in joint.method
        assert by_default.estimates[run, -1] == joint.values[0]
    # Whether episodes are kept makes no difference.
    without = simulate(problem.mdp, problem.policy, "flow", **options)
    np.testing.assert_array_equal(without.estimates, by_default.estimates)
    np.testing.assert_array_equal(without.standard_errors, by_default.standard_errors)
