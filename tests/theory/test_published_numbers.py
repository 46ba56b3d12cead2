"""Numbers of the paper and of the derivations, to the digits in which they are printed."""

from functools import cache

import numpy as np
import pytest

from revar import (
    Best,
    Difference,
    Values,
    estimation_variance,
    occupancy,
    one_step_costs,
    optimal_flow,
    oracle_mse,
    policy_value,
    sampling_proportions,
)
from revar.problems import problems
from tests.plain_model import Floats


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


# Three policies of the gridworld that are compared: shares of left, right, down and up.
COMPARED = {"A": (0.05, 0.45, 0.45, 0.05), "B": (0.15, 0.35, 0.35, 0.15), "C": (0.25,) * 4}


def compared(name: str) -> Floats:
    return np.tile(COMPARED[name], (16, 1))


@cache
def on_policy_and_limit(name: str) -> tuple[float, float]:
    mdp, policy = problems.find("gridworld")().mdp, compared(name)
    flow = optimal_flow(mdp, policy, tolerance=1e-6)
    return estimation_variance(mdp, policy, policy), flow.limit


@pytest.mark.parametrize(
    ("name", "value", "on_policy", "limit"),
    [
        ("A", 1.42875, 20.156, 4.710),
        ("B", 1.52429, 68.046, 33.071),
        ("C", 1.63715, 119.197, 84.629),
    ],
)
def test_three_policies_of_the_gridworld(
    name: str, value: float, on_policy: float, limit: float
) -> None:
    mdp = problems.find("gridworld")().mdp
    assert policy_value(mdp, compared(name)) == pytest.approx(value, abs=5e-6)
    assert on_policy_and_limit(name) == pytest.approx((on_policy, limit), abs=5e-4)


@pytest.mark.parametrize(
    ("pair", "episodes_of_each", "pooled", "flows_apart", "flow", "own_limits", "shared_flow"),
    [
        ("AB", 162.27, 56.54, 62.74, 16.614, 37.78, 39.762),
        ("AC", 237.38, 159.07, 129.27, 64.017, 89.34, 97.464),
        ("BC", 367.36, 48.2, 223.51, 22.325, 117.70, 124.569),
    ],
)
def test_their_differences(
    pair: str,
    episodes_of_each: float,
    pooled: float,
    flows_apart: float,
    flow: float,
    own_limits: float,
    shared_flow: float,
) -> None:
    mdp = problems.find("gridworld")().mdp
    first, second = (compared(name) for name in pair)
    difference = Difference(first, second)
    on_policy, limits = np.transpose([on_policy_and_limit(name) for name in pair])
    # Two estimates from data of their own, v_1/k + v_2/(1-k), at the best split k.
    assert np.sqrt(on_policy).sum() ** 2 == pytest.approx(episodes_of_each, abs=5e-3)
    assert np.sqrt(limits).sum() ** 2 == pytest.approx(flows_apart, abs=5e-3)
    # Half of the episodes with each policy: a mixture of episodes, not of actions.
    visits = 0.5 * (occupancy(mdp, first) + occupancy(mdp, second)).sum(axis=0)
    costs = one_step_costs(mdp, difference)
    needed = costs > 0
    digits = 5e-2 if pair == "BC" else 5e-3
    assert (costs[needed] / visits[needed]).sum() == pytest.approx(pooled, abs=digits)
    assert limits.sum() == pytest.approx(own_limits, abs=5e-3)
    found = optimal_flow(mdp, difference, tolerance=1e-6).limit
    assert found == pytest.approx(flow, abs=5e-4)
    found = optimal_flow(mdp, Values([first, second]), tolerance=1e-6).limit
    assert found == pytest.approx(shared_flow, abs=5e-4)


def test_the_best_of_the_three() -> None:
    # C leads. B is so much harder to tell from it that the flow for their difference shows A too.
    mdp = problems.find("gridworld")().mdp
    policies = [compared(name) for name in COMPARED]
    best = optimal_flow(mdp, Best(policies), tolerance=1e-5)
    hardest = optimal_flow(mdp, Difference(policies[1], policies[2]), tolerance=1e-5)
    gap = policy_value(mdp, policies[2]) - policy_value(mdp, policies[1])
    assert best.limit == pytest.approx(hardest.limit / gap**2, rel=2e-5)
    assert best.limit == pytest.approx(1752.72, abs=2e-2)
    assert best.weights == pytest.approx([0.0, 1.0, 0.0], abs=1e-3)
    ratio = estimation_variance(mdp, Difference(policies[0], policies[2]), hardest.behavior)
    assert (
        ratio < best.limit * (policy_value(mdp, policies[2]) - policy_value(mdp, policies[0])) ** 2
    )
