"""Numbers of the paper and of the derivations, to the digits in which they are printed."""

import numpy as np
import pytest

from revar import estimation_variance, oracle_mse, policy_value, sampling_proportions
from revar.problems import problems


def test_example_1() -> None:
    problem = problems.find("example-1")()
    oracle = sampling_proportions(problem.mdp, problem.policy)
    assert oracle.normalizers[1] == pytest.approx(20.0, rel=1e-14)
    assert oracle.normalizers[2] == pytest.approx(2.0, rel=1e-14)
    unnormalised = oracle.behavior[0] * oracle.normalizers[0]
    assert unnormalised == pytest.approx([np.sqrt(200.0), np.sqrt(151.0)], rel=1e-14)
    assert np.round(unnormalised, 3).tolist() == [14.142, 12.288]
    assert oracle.behavior[1:].tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_example_2_by_hand() -> None:
    # Both actions are equally noisy themselves; 0.9 of action 0 leads to B = 10, the rest to 1,
    # and 0.9 of action 1 leads to B = 1.
    problem = problems.find("example-2")()
    oracle = sampling_proportions(problem.mdp, problem.policy)
    assert oracle.normalizers[1:] == pytest.approx([10.0, 1.0, 1.0, 10.0], rel=1e-14)
    scores = 0.5 * np.sqrt([1.0 + 0.9 * 100.0 + 0.1, 1.0 + 0.9 + 0.1 * 100.0])
    assert oracle.normalizers[0] == pytest.approx(scores.sum(), rel=1e-14)
    assert oracle.behavior[0] == pytest.approx(scores / scores.sum(), rel=1e-14)


@pytest.mark.parametrize("known", [False, True])
def test_the_tree_of_experiment_1(known: bool) -> None:
    problem = problems.find("tree")()
    mdp, policy = problem.mdp, problem.policy
    on_policy = estimation_variance(mdp, policy, policy, known_transitions=known)
    assert on_policy == pytest.approx(4.038, rel=1e-12)
    oracle = sampling_proportions(mdp, policy).behavior
    best = estimation_variance(mdp, policy, oracle, known_transitions=known)
    assert best == pytest.approx(0.890945, abs=5e-7)
    assert oracle_mse(mdp, policy, 1) == pytest.approx(0.890945, abs=5e-7)


@pytest.mark.parametrize(
    ("slip", "known", "on_policy", "algorithm_2"),
    [
        (0.0, False, 18.193, 5.531),
        (0.1, False, 20.156, 8.185),
        (0.3, False, 23.830, 13.145),
        (0.1, True, 19.152, 7.178),
    ],
)
def test_the_gridworld_of_experiment_2(
    slip: float, known: bool, on_policy: float, algorithm_2: float
) -> None:
    problem = problems.find("gridworld")(slip=slip)
    mdp, policy = problem.mdp, problem.policy
    found = estimation_variance(mdp, policy, policy, known_transitions=known)
    assert found == pytest.approx(on_policy, abs=5e-4)
    oracle = sampling_proportions(mdp, policy).behavior
    found = estimation_variance(mdp, policy, oracle, known_transitions=known)
    assert found == pytest.approx(algorithm_2, abs=5e-4)


def test_the_value_of_the_gridworld() -> None:
    problem = problems.find("gridworld")()
    assert policy_value(problem.mdp, problem.policy) == pytest.approx(1.4287, abs=5e-5)
