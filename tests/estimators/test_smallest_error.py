"""Which estimate is reported: the table's, or the mean return where a table is thin or wrong."""

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
from revar.estimators.smallest_error import SmallestError, choose_estimate


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


@pytest.mark.parametrize("seed", range(3))
def test_blackjack_of_few_episodes_is_the_mean_return(seed: int) -> None:
    task, data = on_policy_data("blackjack", 50, seed)
    joint = choose_estimate(task, data, data)
    assert joint.method == (
        "mean return, corrected by the table: most steps of the policy were seen at most once"
    )
    found, expected = joint.value_of(0), CorrectedReturn().estimate(task, data)
    assert found.value == expected.value
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-12)
    assert found.unvisited_probability == 0.0
    assert SmallestError().estimate(task, data).value == expected.value


@pytest.mark.parametrize("seed", range(3))
def test_a_gridworld_of_many_episodes_is_the_table(seed: int) -> None:
    task, data = on_policy_data("gridworld", 200, seed)
    joint = choose_estimate(task, data, data)
    assert joint.method == "table"
    assert same(joint, CertaintyEquivalence().joint_estimate(task, data))


def test_statistics_give_certainty_equivalence() -> None:
    task, data = on_policy_data("blackjack", 50)
    statistics = VisitStatistics(task.states, task.actions)
    statistics.record_many(data)
    table = CertaintyEquivalence().joint_estimate(task, statistics)
    assert same(choose_estimate(task, statistics, None), table)
    assert SmallestError().estimate(task, statistics) == table.value_of(0)


def test_several_policies_give_certainty_equivalence() -> None:
    task, data = on_policy_data("blackjack", 50)
    asked = Values([task.policy, np.full(task.policy.shape, 1.0 / task.actions)])
    several = replace(task, policy=asked.policy, question=asked)
    joint = choose_estimate(several, data, data)
    assert same(joint, CertaintyEquivalence().joint_estimate(several, data))


def test_off_policy_data_gives_certainty_equivalence() -> None:
    task, data = on_policy_data("blackjack", 50)
    tracked = replace(data, propensities=np.full(data.propensities.shape, np.nan))
    joint = choose_estimate(task, tracked, tracked)
    assert same(joint, CertaintyEquivalence().joint_estimate(task, tracked))


def test_few_on_policy_episodes_among_many_others_are_not_enough() -> None:
    """Half of 50 must be on-policy: a table of all then rests on more than twice as many."""
    task, data = on_policy_data("blackjack", 50)
    for on_policy, method in ((25, "table"), (26, "mean return")):
        propensities = data.propensities.copy()
        propensities[data.start[on_policy] :] = np.nan
        mixed = replace(data, propensities=propensities)
        joint = choose_estimate(task, mixed, mixed)
        assert joint.method.startswith(method)
        if method != "table":
            expected = CorrectedReturn().estimate(task, data.head(on_policy))
            assert joint.values[0] == expected.value


def states_with_gaps(loss: float) -> tuple[Task, Dataset]:
    """Ten states with two actions each; the second pays `loss` less, and in five it is untried."""
    rng = np.random.default_rng(1)
    episodes = []
    for s in range(10):
        for a in (0, 1) if s < 5 else (0,):
            for _ in range(10):
                reward = 10.0 - loss * a + rng.normal(0.0, 0.1)
                episodes.append(Trajectory.of([s], [a], [reward], propensities=[0.5]))
    task = Task(np.full((10, 2), 0.5), 1, initial=np.full(10, 0.1))
    return task, Dataset.of([episodes[i] for i in rng.permutation(len(episodes))])


def test_filling_that_is_seen_to_be_wrong_gives_the_mean_return() -> None:
    task, data = states_with_gaps(10.0)
    joint = choose_estimate(task, data, data)
    assert joint.method == (
        "mean return, corrected by the table: "
        "actions without data are unlike those that stand in for them"
    )
    # A quarter of the policy rests on what pays 10 less than what stands in for it.
    table, found = CertaintyEquivalence().plug_in(task, data)
    assert found.evident[0] == pytest.approx(2.5**2, rel=0.05)
    assert found.covariance[0, 0] > found.evident[0] > joint.covariance[0, 0]
    assert table.values[0] == pytest.approx(7.5, abs=0.1)
    # Where they are alike nothing is wrong with filling.
    task, data = states_with_gaps(0.0)
    assert choose_estimate(task, data, data).method == "table"


def test_the_values_have_no_say_in_the_choice() -> None:
    """Returns that are turned over or scaled leave the choice as it is."""
    for name, episodes in (("blackjack", 50), ("gridworld", 200)):
        task, data = on_policy_data(name, episodes)
        methods = {
            choose_estimate(task, moved, moved).method
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
        joint = choose_estimate(task, data, data)
        assert joint.method.startswith("mean return")
        assert by_default.estimates[run, -1] == joint.values[0]
    # Whether episodes are kept makes no difference.
    without = simulate(problem.mdp, problem.policy, "flow", **options)
    np.testing.assert_array_equal(without.estimates, by_default.estimates)
    np.testing.assert_array_equal(without.standard_errors, by_default.standard_errors)
