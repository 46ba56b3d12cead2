from collections.abc import Callable
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar import TabularMDP, oracle_mse, oracle_mse_bound, regret_bound, sampling_proportions
from revar.errors import InputError
from revar.problems import problems
from tests import enumeration
from tests.plain_model import tree_model


@given(st.integers(0, 10_000), st.booleans(), st.integers(1, 10**6))
def test_proposition_2_is_an_upper_bound(seed: int, by_outcome: bool, episodes: int) -> None:
    model = tree_model(seed, by_outcome=by_outcome)
    mdp = model.mdp()
    bound = oracle_mse_bound(mdp, model.policy, episodes)
    assert bound >= oracle_mse(mdp, model.policy, episodes) * (1 - 1e-12)


@given(st.integers(0, 10_000))
def test_proposition_2_read_aloud(seed: int) -> None:
    model = tree_model(seed)
    mdp = model.mdp()
    oracle = sampling_proportions(mdp, model.policy)
    episodes = 50
    visits = episodes * enumeration.occupancy(model, oracle.behavior).sum(axis=(0, 2))
    total = 0.0
    for state in range(model.states):
        if visits[state] == 0:
            continue
        total += oracle.normalizers[state] ** 2 / visits[state]
        for action in range(model.actions):
            for child in range(model.states):
                chance = model.chance[state, action, child]
                if chance > 0 and visits[child] > 0:
                    total += (
                        model.discount**2
                        * model.policy[state, action] ** 2
                        * chance
                        * oracle.normalizers[child] ** 2
                        / visits[child]
                    )
    assert oracle_mse_bound(mdp, model.policy, episodes) == pytest.approx(total, rel=1e-12)


def test_proposition_2_is_exact_on_a_bandit() -> None:
    problem = problems.find("bandit")()
    exact = oracle_mse(problem.mdp, problem.policy, 30)
    assert oracle_mse_bound(problem.mdp, problem.policy, 30) == pytest.approx(exact, rel=1e-12)


def rate(states: int, actions: int, samples: int) -> float:
    return sqrt(log(states * actions * samples**5.5) / samples**3)


@pytest.mark.parametrize("episodes", [10, 1000, 10**7])
def test_theorem_2_on_a_bandit(episodes: int) -> None:
    problem = problems.find("bandit")()
    noise = problem.policy[0] * problem.mdp.reward_std[0]
    smallest = noise.min() / noise.sum()
    expected = noise.sum() ** 2 / smallest**1.5 * rate(1, 5, episodes)
    assert regret_bound(problem.mdp, problem.policy, episodes) == pytest.approx(expected, rel=1e-12)


def test_theorem_2_on_example_1_by_hand() -> None:
    # B and b* of the root and of its children; each child has half the target policy's flow.
    problem = problems.find("example-1")()
    root = sqrt(200) + sqrt(151)
    at_root = root**2 / (sqrt(151) / root) ** 1.5
    at_children = max(0.5 * 20**2 / 0.5**1.5, 0.5 * 2**2 / 0.5**1.5)
    expected = (at_root + at_children) * rate(3, 2, 2 * 100)
    assert regret_bound(problem.mdp, problem.policy, 100) == pytest.approx(expected, rel=1e-12)


def test_theorem_2_discounts_what_is_below_the_root() -> None:
    problem = problems.find("example-1")()
    mdp = problem.mdp
    half = TabularMDP(mdp.transitions, mdp.reward_mean, mdp.reward_std, mdp.initial, 2, 0.5)
    scores = 0.5 * np.sqrt([400 + 0.25 * 400, 600 + 0.25 * 4])
    at_root = scores.sum() ** 2 / (scores.min() / scores.sum()) ** 1.5
    expected = (at_root + 0.5 * 0.5 * 400 / 0.5**1.5) * rate(3, 2, 200)
    assert regret_bound(half, problem.policy, 100) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("problem_id", ["tree", "random-tree", "example-2"])
def test_the_regret_falls_as_the_theorem_says(problem_id: str) -> None:
    problem = problems.find(problem_id)()
    mdp = problem.mdp
    factors = [
        regret_bound(mdp, problem.policy, episodes)
        / rate(mdp.states, mdp.actions, episodes * mdp.horizon)
        for episodes in (10, 100, 10_000, 10**6)
    ]
    assert factors == pytest.approx([factors[0]] * 4, rel=1e-12)
    assert 0 < factors[0] < inf


def test_actions_that_the_policy_does_not_take_do_not_count() -> None:
    mdp = TabularMDP(np.zeros((1, 3, 1)), 0.0, [[1.0, 3.0, 9.0]], [1.0], 1)
    expected = 2.0**2 / 0.25**1.5 * rate(1, 3, 100)
    assert regret_bound(mdp, [[0.5, 0.5, 0.0]], 100) == pytest.approx(expected, rel=1e-12)


def test_a_needed_action_without_noise_makes_the_bound_infinite() -> None:
    mdp = TabularMDP(np.zeros((1, 2, 1)), 0.0, [[1.0, 0.0]], [1.0], 1)
    assert regret_bound(mdp, [[0.5, 0.5]], 100) == inf


def test_without_any_noise_there_is_no_regret() -> None:
    mdp = TabularMDP(np.zeros((1, 2, 1)), 1.0, 0.0, [1.0], 1)
    assert regret_bound(mdp, [[0.5, 0.5]], 100) == 0.0


@pytest.mark.parametrize(
    ("bound", "name"), [(oracle_mse_bound, "Proposition 2"), (regret_bound, "Theorem 2")]
)
@pytest.mark.parametrize("problem_id", ["layered", "garnet", "gridworld", "riverswim"])
def test_bounds_hold_on_trees_only(bound: Callable[..., float], name: str, problem_id: str) -> None:
    problem = problems.find(problem_id)()
    with pytest.raises(InputError) as caught:
        bound(problem.mdp, problem.policy, 10)
    reason = problem.mdp.structure().reason
    assert str(caught.value) == f"{name} holds on trees; this model is not one: {reason}"


def test_theorem_2_needs_one_start_state() -> None:
    mdp = TabularMDP(np.zeros((2, 1, 2)), 0.0, 1.0, [0.5, 0.5], 1)
    with pytest.raises(InputError, match="needs a single start state; this model has 2"):
        regret_bound(mdp, [[1.0], [1.0]], 10)


@pytest.mark.parametrize("episodes", [0, -3, 1.5])
def test_theorem_2_counts_episodes(episodes: float) -> None:
    problem = problems.find("tree")()
    with pytest.raises(InputError, match=f"episodes is {episodes}; it must be a whole number"):
        regret_bound(problem.mdp, problem.policy, episodes)  # type: ignore[arg-type]
