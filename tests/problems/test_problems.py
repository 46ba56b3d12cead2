from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar import estimation_variance, optimal_flow, policy_value, return_variance
from revar.errors import InputError
from revar.model.task import check_policy
from revar.problems import problems

# Rewards are normal, except where they follow from the successor, or from whether there is one.
LAWS = {
    "blackjack": "deterministic",
    "frozenlake": "deterministic",
    "rare-failure": "bernoulli",
}
# What each docstring says the problem is.
STRUCTURES = {
    "bandit": "bandit",
    "blackjack": "general",
    "example-1": "tree",
    "example-2": "tree",
    "frozenlake": "general",
    "garnet": "general",
    "gridworld": "general",
    "layered": "layered",
    "random-tree": "tree",
    "rare-failure": "general",
    "riverswim": "general",
    "tree": "tree",
}


@pytest.mark.parametrize("problem_id", problems.ids())
def test_every_problem_builds_with_its_defaults(problem_id: str) -> None:
    build = problems.find(problem_id)
    problem = build()
    assert problem.name == problem_id
    assert np.array_equal(check_policy(problem.mdp, problem.policy), problem.policy)
    np.testing.assert_allclose(problem.policy.sum(axis=1), 1.0, rtol=1e-12)
    assert problem.mdp.reward_law == LAWS.get(problem_id, "normal")
    assert build.__doc__
    again = build()
    assert np.array_equal(again.policy, problem.policy)
    assert np.array_equal(again.mdp.reward_mean, problem.mdp.reward_mean)
    assert np.array_equal(again.mdp.outcomes.probability, problem.mdp.outcomes.probability)


@pytest.mark.parametrize("problem_id", problems.ids())
@pytest.mark.parametrize("law", ["two-point", "uniform"])
def test_every_problem_takes_a_reward_law(problem_id: str, law: str) -> None:
    mdp = problems.find(problem_id)(reward_law=law).mdp
    assert mdp.reward_law == law
    assert mdp.reward_bound < np.inf


def test_problems_have_the_structure_they_are_known_for() -> None:
    found = {name: problems.find(name)().mdp.structure().kind for name in STRUCTURES}
    assert found == STRUCTURES


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_tree(depth: int) -> None:
    problem = problems.find("tree")(depth, low_variance=0.04, high_variance=9.0, common=0.75)
    mdp = problem.mdp
    assert (mdp.states, mdp.actions, mdp.horizon) == (2**depth - 1, 2, depth)
    dense = mdp.transitions.toarray()
    for state in range(mdp.states):
        for action in range(2):
            row = np.zeros(mdp.states)
            child = 2 * state + 1 + action
            if child < mdp.states:
                row[child] = 1.0
            assert dense[2 * state + action].tolist() == row.tolist()
    np.testing.assert_allclose(mdp.reward_std, np.tile([0.2, 3.0], (mdp.states, 1)), rtol=1e-15)
    assert np.array_equal(problem.policy, np.tile([0.75, 0.25], (mdp.states, 1)))
    expected = np.random.default_rng(0).normal(size=(mdp.states, 2))
    assert np.array_equal(mdp.reward_mean, expected)
    assert mdp.structure().levels.max() == depth - 1


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("slip", [0.0, 0.1, 1.0])
def test_the_gridworld_moves_as_described(size: int, slip: float) -> None:
    mdp = problems.find("gridworld")(size, slip=slip).mdp
    found = mdp.transitions.toarray().reshape(mdp.states, 4, mdp.states)
    goal = (size - 1, size - 1)

    def landing(cell: tuple[int, int], move: str) -> tuple[int, int]:
        row, column = cell
        row += {"down": 1, "up": -1}.get(move, 0)
        column += {"right": 1, "left": -1}.get(move, 0)
        return (row, column) if 0 <= row < size and 0 <= column < size else cell

    moves = ("left", "right", "down", "up")
    for row in range(size):
        for column in range(size):
            for action, meant in enumerate(moves):
                expected = np.zeros((size, size))
                if (row, column) != goal:
                    expected[landing((row, column), meant)] += 1 - slip
                    for move in moves:
                        expected[landing((row, column), move)] += slip / 4
                    expected[goal] = 0.0  # arriving there ends the episode
                np.testing.assert_allclose(
                    found[row * size + column, action], expected.ravel(), atol=1e-15
                )


def test_the_gridworld_s_numbers() -> None:
    problem = problems.find("gridworld")()
    mdp = problem.mdp
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.discount) == (16, 4, 12, 1.0)
    means = np.random.default_rng(0).normal(size=(16, 4))
    means[15] = 0.0
    assert np.array_equal(mdp.reward_mean, means)
    np.testing.assert_allclose(
        mdp.reward_std**2, np.tile([20.0, 0.01, 0.01, 20.0], (16, 1)), rtol=1e-14
    )
    np.testing.assert_allclose(problem.policy, np.tile([0.05, 0.45, 0.45, 0.05], (16, 1)))
    assert mdp.initial.tolist() == [1.0] + [0.0] * 15
    assert problems.find("gridworld")(horizon=5).mdp.horizon == 5


def test_the_gridworld_asks_for_a_value_or_a_difference() -> None:
    one, other = (problems.find("gridworld")(common=common) for common in (0.45, 0.35))
    assert np.array_equal(one.question.policies, one.policy[None])
    both = problems.find("gridworld")(against=0.35)
    assert np.array_equal(both.policy, one.policy)
    assert np.array_equal(both.question.policies, [one.policy, other.policy])
    assert both.question.combinations.coefficients.tolist() == [[1.0, -1.0]]


def test_the_bandit_takes_its_arms() -> None:
    problem = problems.find("bandit")([0.5, 0.5], [1.0, 2.0])
    assert problem.mdp.reward_std.tolist() == [[1.0, 2.0]]
    assert problem.policy.tolist() == [[0.5, 0.5]]


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_random_trees_are_trees(seed: int, depth: int, actions: int, branching: int) -> None:
    problem = problems.find("random-tree")(depth, actions, branching=branching, seed=seed)
    structure = problem.mdp.structure()
    assert structure.kind == ("bandit" if depth == 1 else "tree")
    assert structure.levels.max() == depth - 1
    assert structure.levels.min() == 0  # no state is out of reach
    lengths = np.diff(problem.mdp.outcomes.row_start)
    assert lengths.max() <= branching
    np.testing.assert_allclose(problem.policy.sum(axis=1), 1.0)


@given(st.integers(0, 1000), st.integers(2, 5), st.integers(1, 3), st.integers(2, 4))
def test_layered_graphs_are_layered(seed: int, depth: int, actions: int, width: int) -> None:
    problem = problems.find("layered")(depth, actions, width=width, seed=seed)
    structure = problem.mdp.structure()
    one_way_in = depth == 2 and actions == 1
    assert structure.kind == ("tree" if one_way_in else "layered")
    assert np.bincount(structure.levels).tolist() == [1] + [width] * (depth - 1)


@given(st.integers(0, 1000), st.integers(1, 8), st.integers(1, 4), st.floats(0.0, 0.9))
def test_garnet_graphs_branch_as_asked(
    seed: int, states: int, branching: int, ending: float
) -> None:
    mdp = problems.find("garnet")(states, 2, branching=branching, ending=ending, seed=seed).mdp
    dense = mdp.transitions.toarray()
    assert np.all((dense > 0).sum(axis=1) == min(branching, states))
    np.testing.assert_allclose(dense.sum(axis=1), 1.0 - ending, rtol=1e-12)


@pytest.mark.parametrize("problem_id", ["garnet", "layered", "random-tree"])
def test_seeds_make_different_problems(problem_id: str) -> None:
    one, other = (problems.find(problem_id)(seed=seed).mdp for seed in (1, 2))
    assert not np.array_equal(one.reward_mean[0], other.reward_mean[0])


def test_riverswim() -> None:
    problem = problems.find("riverswim")(4)
    dense = problem.mdp.transitions.toarray().reshape(4, 2, 4)
    assert dense[:, 0].tolist() == [
        [1.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
    ]
    np.testing.assert_allclose(
        dense[:, 1],
        [
            [0.4, 0.6, 0.0, 0.0],
            [0.05, 0.6, 0.35, 0.0],
            [0.0, 0.05, 0.6, 0.35],
            [0.0, 0.0, 0.4, 0.6],
        ],
    )
    assert problem.mdp.reward_mean[0, 0] == 0.005
    assert problem.mdp.reward_mean[3, 1] == 1.0
    assert np.count_nonzero(problem.mdp.reward_mean) == 2
    assert problem.mdp.initial.tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("actions", [1, 2, 3, 4])
def test_a_rare_failure_is_as_rare_as_counting_says(actions: int) -> None:
    """The chance that some run of rare actions works, step by step over the length of the run."""
    problem = problems.find("rare-failure")(actions, rare=0.2, works=0.7, horizon=9)
    step = 0.2 * 0.7
    alive, failed = [1.0] + [0.0] * (actions - 1), 0.0  # by how many actions in a row
    for _ in range(9):
        failed += alive[-1] * step
        # Without the failure, a rare action of the last state ends the episode.
        back = sum(alive[:-1]) * (1.0 - step) + alive[-1] * 0.8
        alive = [back, *(chance * step for chance in alive[:-1])]
    assert policy_value(problem.mdp, problem.policy) == pytest.approx(failed, rel=1e-12)


@pytest.mark.parametrize(
    ("actions", "value", "mean_return", "on_policy", "limit"),
    [
        (2, 0.132597, 0.115015, 0.0141002, 0.00210971),
        (3, 0.0119539, 0.0118110, 0.00130227, 2.08638e-5),
        (4, 0.00102057, 0.00101953, 0.000111501, 1.95759e-7),
    ],
)
def test_what_a_rare_failure_costs(
    actions: int, value: float, mean_return: float, on_policy: float, limit: float
) -> None:
    problem = problems.find("rare-failure")(actions)
    mdp, policy = problem.mdp, problem.policy
    assert policy_value(mdp, policy) == pytest.approx(value, rel=1e-5)
    assert return_variance(mdp, policy) == pytest.approx(mean_return, rel=1e-5)
    assert estimation_variance(mdp, policy, policy) == pytest.approx(on_policy, rel=1e-5)
    assert optimal_flow(mdp, policy, tolerance=1e-5).limit == pytest.approx(limit, rel=2e-5)


@pytest.mark.parametrize(
    ("problem_id", "changes"),
    [
        ("gridworld", {"slip": -0.5}),
        ("gridworld", {"slip": 1.5}),
        ("gridworld", {"against": 0.6}),
        ("tree", {"discount": 2.0}),
        ("example-2", {"likely": 1.5}),
        ("garnet", {"ending": -0.5}),
        ("riverswim", {"horizon": -1}),
        ("rare-failure", {"actions": 0}),
        ("rare-failure", {"rare": 1.5}),
        ("rare-failure", {"works": -0.1}),
    ],
)
def test_impossible_parameters_are_refused(problem_id: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        problems.find(problem_id)(**changes)
