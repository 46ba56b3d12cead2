"""Exact figures: the numbers of theory for trees and grids, transitions known or not."""

import msgspec
import pytest

from revar.experiments.exact import ExactValues, compute_exact_values
from revar.experiments.experiment import Choice


def grid(slip: float, *, known_transitions: bool = False) -> ExactValues:
    choice = Choice(id="gridworld", options={"slip": slip}, label="a grid")
    return compute_exact_values(choice, known_transitions=known_transitions)


@pytest.mark.parametrize(
    ("slip", "known", "on_policy", "oracle", "limit"),
    [
        (0.0, False, 18.193, 5.531, 2.86),
        (0.1, False, 20.156, 8.185, 4.71),
        (0.3, False, 23.830, 13.145, 7.94),
        (0.1, True, 19.152, 7.178, 3.21),
    ],
)
def test_grids(slip: float, known: bool, on_policy: float, oracle: float, limit: float) -> None:
    exact = grid(slip, known_transitions=known)
    # The numbers are known to the digits that are written here.
    assert exact.on_policy == pytest.approx(on_policy, abs=6e-4)
    assert exact.oracle == pytest.approx(oracle, abs=6e-4)
    assert exact.limit == pytest.approx(limit, abs=6e-3)
    assert 0 <= exact.limit_gap <= 1e-3 * exact.limit
    assert exact.scaled_errors() == {
        "on-policy": exact.on_policy,
        "oracle": exact.oracle,
        "limit": exact.limit,
    }


def test_what_is_said_of_a_grid() -> None:
    exact = grid(0.1)
    assert (exact.problem, exact.id, exact.structure) == ("a grid", "gridworld", "general")
    assert (exact.states, exact.actions, exact.horizon) == (16, 4, 12)
    assert exact.value == pytest.approx(1.4287, abs=5e-5)
    assert exact.policy[0] == pytest.approx([0.05, 0.45, 0.45, 0.05])
    # An episode begins in the first cell, and has at most as many steps as the horizon.
    for visits in (exact.oracle_visits, exact.optimal_visits):
        assert sum(visits[0]) >= 1.0 - 1e-9
        assert sum(map(sum, visits)) <= 12.0
        assert sum(visits[15]) == 0.0


def test_the_tree() -> None:
    for known in (False, True):  # transitions are deterministic
        exact = compute_exact_values(Choice(id="tree"), known_transitions=known)
        assert exact.structure == "tree"
        assert exact.on_policy == pytest.approx(4.038, abs=5e-4)
        assert exact.oracle == pytest.approx(0.890945, abs=5e-7)
        assert exact.limit == pytest.approx(exact.oracle, rel=1e-3)
        root = exact.oracle_visits[0]
        assert root == pytest.approx(exact.oracle_behavior[0])
        assert exact.optimal_visits[0] == pytest.approx(root, abs=0.01)


def test_example_1() -> None:
    exact = compute_exact_values(Choice(id="example-1"), known_transitions=False)
    # Unnormalised proportions of the root: the square roots of 200 and 151.
    left, right = 200**0.5, 151**0.5
    assert exact.oracle_behavior[0] == pytest.approx(
        [left / (left + right), right / (left + right)]
    )
    assert exact.oracle == pytest.approx((left + right) ** 2)


def test_an_infinite_error_is_none_and_survives_json() -> None:
    # The oracle of a problem with a noiseless arm never pulls it.
    choice = Choice(id="bandit", options={"policy": [0.5, 0.5], "deviations": [1.0, 0.0]})
    exact = compute_exact_values(choice, known_transitions=False)
    assert exact.oracle == pytest.approx(0.25)
    grown = msgspec.structs.replace(exact, on_policy=None)
    again = msgspec.json.decode(msgspec.json.encode(grown), type=ExactValues)
    assert again == grown
    assert list(again.scaled_errors()) == ["oracle", "limit"]
