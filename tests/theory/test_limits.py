"""What Limits accept, what they mean, and the one sentence that refuses each mistake."""

from typing import Any

import numpy as np
import pytest

from revar import Limits, TabularMDP, Values, optimal_flow, policy_value
from revar.errors import InputError
from revar.problems import problems


def test_the_ways_to_forbid_say_the_same() -> None:
    table = np.zeros((3, 2), dtype=bool)
    table[:, 1] = True
    pairs = [(0, 1), (1, 1), (2, 1)]
    for forbidden in (table, table.tolist(), pairs, np.array(pairs), [1], np.array([1]), (1,)):
        np.testing.assert_array_equal(Limits(forbidden=forbidden).forbidden_pairs(3, 2), table)
    empty: list[Any] = [None, [], (), np.zeros((3, 2), dtype=bool)]
    for nothing in empty:
        assert not Limits(forbidden=nothing).forbidden_pairs(3, 2).any()


def test_caps() -> None:
    policy = np.array([[0.1, 0.9], [0.5, 0.5]])
    np.testing.assert_allclose(Limits(max_ratio=3).caps(policy), [[0.3, 1.0], [1.0, 1.0]])
    both = Limits(max_ratio=3, forbidden=[(0, 1)])
    np.testing.assert_allclose(both.caps(policy), [[0.3, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(Limits().caps(policy), np.ones((2, 2)))


@pytest.mark.parametrize(
    ("floor", "value", "least"),
    [
        ("95%", 2.0, 1.9),
        ("95%", -2.0, -2.1),
        (" 100 %", -2.0, -2.0),
        ("110%", -2.0, -1.8),
        ("0%", 3.0, 0.0),
        (1.5, 2.0, 1.5),
        (None, 2.0, None),
    ],
)
def test_floors_below_negative_values_are_lower(floor: Any, value: float, least: Any) -> None:
    assert Limits(min_return=floor).least_return(value) == pytest.approx(least)


def test_nothing_limited_is_no_limit() -> None:
    grid = problems.find("gridworld")()
    plain = optimal_flow(grid.mdp, grid.policy, tolerance=1e-2)
    for limits in (None, Limits(), Limits(forbidden=[])):
        flow = optimal_flow(grid.mdp, grid.policy, tolerance=1e-2, limits=limits)
        np.testing.assert_array_equal(flow.behavior, plain.behavior)
        assert (flow.limit, flow.gap, flow.cost) == (plain.limit, plain.gap, 1.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"forbidden": [-1]}, r"forbidden is \[-1\]; it must be a bool array"),
        ({"forbidden": "left"}, "forbidden is 'left'; it must be"),
        ({"forbidden": [(0, 1, 2)]}, "forbidden is .*; it must be"),
        ({"forbidden": [0.5]}, "forbidden is .*; it must be"),
        ({"max_ratio": 0.9}, "max_ratio is 0.9; it must be a finite number of at least 1"),
        ({"max_ratio": float("inf")}, "max_ratio is inf; it must be"),
        ({"max_ratio": "3"}, "max_ratio is '3'; it must be"),
        ({"min_return": "95"}, "min_return is '95'; it must be a number, or a share"),
        ({"min_return": "much%"}, "min_return is 'much%'; it must be"),
        ({"min_return": float("nan")}, "min_return is nan; it must be"),
        ({"min_return": True}, "min_return is True; it must be"),
        ({"max_sums": 3}, "max_sums must be a sequence of pairs"),
        ({"max_sums": [np.ones((2, 2))]}, "max_sums"),
        ({"max_sums": [(np.ones(2), 1.0)]}, r"amounts of max_sums 0 have shape \(2,\)"),
        ({"max_sums": [(np.full((2, 2), np.nan), 1.0)]}, "amounts of max_sums 0 .* finite"),
        ({"max_sums": [(np.ones((2, 2)), "few")]}, "max_sums 0 is at most 'few'; it must be"),
    ],
)
def test_what_cannot_be_a_limit(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Limits(**fields)


RIGHT, DOWN = 1, 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"limits": {"max_ratio": 3}}, "limits is .*; it must be a revar.Limits"),
        ({"limits": Limits(forbidden=[9])}, "forbidden names action 9; there are 16 states and 4"),
        ({"limits": Limits(forbidden=[(16, 0)])}, r"forbidden names the pair \(16, 0\); there"),
        ({"limits": Limits(forbidden=np.ones((2, 2), bool))}, r"forbidden has shape \(2, 2\)"),
        (
            {"limits": Limits(forbidden=[(0, 0)])},
            "keep collection from ever visiting state 0, action 0, and the estimate cannot",
        ),
        (
            {"limits": Limits(forbidden=[RIGHT, DOWN])},
            "keep collection from ever visiting state 0, action 1",
        ),
        (
            {"limits": Limits(forbidden=[(1, a) for a in range(4)])},
            "limits leave no action in state 1, which can be entered",
        ),
        (
            {"limits": Limits(forbidden=[(1, 1)], max_ratio=1.5)},
            "limits leave actions for at most 0.825 of its visits in state 1",
        ),
        ({"limits": Limits(min_return=100.0)}, r"min_return is 100.0; no .* returns more than"),
        (
            {"limits": Limits(min_return="2000%")},
            'min_return is "2000%", which is 28.5749; no allowed behavior returns more than',
        ),
        (
            {"limits": Limits(max_sums=[(np.ones((16, 4)), 1.0)])},
            "max_sums 0 is at most 1; no allowed behavior has less than",
        ),
        ({"limits": Limits(max_sums=[(np.ones((3, 4)), 1.0)])}, "amounts of max_sums 0 have"),
        ({"cost": "money"}, "cost is 'money'; it must be \"steps\" or an array"),
        ({"cost": np.ones((4, 4))}, r"cost has shape \(4, 4\); it must be \[states, actions\]"),
        ({"cost": -np.ones((16, 4))}, "cost of state 0, action 0 is -1; it must not be negative"),
        ({"cost": np.full((16, 4), np.inf)}, "cost of state 0, action 0 is inf; it must be finite"),
        ({"cost": np.zeros((16, 4))}, "with this cost no visit costs anything"),
        ({"cost": np.eye(16)[:, :4]}, "with this cost an episode may cost nothing"),
    ],
)
def test_what_cannot_be_asked_of_a_model(asked: dict[str, Any], message: str) -> None:
    grid = problems.find("gridworld")()
    with pytest.raises(InputError, match=message):
        optimal_flow(grid.mdp, grid.policy, **asked)


def test_limits_that_cannot_be_kept_together() -> None:
    # Action 0 pays, action 1 is safe: each limit can be kept alone.
    bandit = TabularMDP(np.zeros((1, 2, 1)), [[1.0, 0.0]], [[1.0, 1.0]], [1.0], 1)
    unsafe = (np.array([[1.0, 0.0]]), 0.3)
    limits = Limits(min_return=0.5, max_sums=[unsafe])
    with pytest.raises(InputError, match="no behavior keeps all of max_sums 0 and min_return"):
        optimal_flow(bandit, [[0.5, 0.5]], limits=limits)
    flow = optimal_flow(bandit, [[0.5, 0.5]], limits=Limits(min_return=0.2, max_sums=[unsafe]))
    # b = 0.5 would be best: (0.25 + 0.25 b / (1 - b)) / b is smallest at the limit.
    assert flow.behavior[0, 0, 0] == pytest.approx(0.3, abs=1e-6)
    assert flow.limit == pytest.approx(0.25 / 0.3 + 0.25 / 0.7, rel=1e-6)


def test_a_floor_that_leaves_no_room() -> None:
    bandit = TabularMDP(np.zeros((1, 2, 1)), [[1.0, 0.0]], [[1.0, 1.0]], [1.0], 1)
    with pytest.raises(InputError, match="leave no room for visits of state 0, action 1"):
        optimal_flow(bandit, [[0.5, 0.5]], limits=Limits(min_return=1.0))
    # If the estimate does not need the other action, there is no need for room.
    flow = optimal_flow(bandit, [[1.0, 0.0]], limits=Limits(min_return=1.0))
    assert flow.limit == pytest.approx(1.0, rel=1e-6)


def test_shares_of_several_policies_are_of_the_mean_of_their_values() -> None:
    grid = problems.find("gridworld")()
    equal = np.full(grid.policy.shape, 0.25)
    question = Values([grid.policy, equal])
    mean = 0.5 * (policy_value(grid.mdp, grid.policy) + policy_value(grid.mdp, equal))
    share = optimal_flow(
        grid.mdp, question, limits=Limits(min_return="130%", max_ratio=2), tolerance=1e-3
    )
    number = optimal_flow(
        grid.mdp, question, limits=Limits(min_return=1.3 * mean, max_ratio=2), tolerance=1e-3
    )
    assert share.limit == pytest.approx(number.limit, rel=1e-3)
    assert (share.behavior <= grid.policy + equal + 1e-9).all()


def test_nothing_to_learn_within_limits() -> None:
    tree = problems.find("tree")(low_variance=0.0, high_variance=0.0)
    flow = optimal_flow(tree.mdp, tree.policy, limits=Limits(max_ratio=1, min_return="100%"))
    assert (flow.limit, flow.gap) == (0.0, 0.0)
    np.testing.assert_allclose(flow.behavior, np.broadcast_to(tree.policy, flow.behavior.shape))
