"""optimal_flow against a general convex solver, closed forms, and its own certificate."""

from functools import cache

import numpy as np
import pytest

from revar import (
    TabularMDP,
    estimation_variance,
    occupancy,
    optimal_flow,
    oracle_mse,
    sampling_proportions,
)
from revar.errors import InputError
from revar.problems import problems
from revar.theory.proportions import fallback_shares
from tests.plain_model import PlainModel
from tests.theory.convex_program import ACCURACY, smallest_error
from tests.theory.random_models import KINDS, entered_states, random_model

SEEDS = range(50)
TOLERANCES = (1e-2, 1e-4, 1e-6)
both_kinds_of_knowledge = pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])


@cache
def drawn(seed: int) -> tuple[PlainModel, TabularMDP]:
    model = random_model(seed)
    return model, model.mdp()


def test_the_random_models_have_everything() -> None:
    found: dict[str, int] = {}
    for seed in SEEDS:
        model, mdp = drawn(seed)
        loops = np.diagonal(model.chance, axis1=0, axis2=2) > 0
        features = {
            mdp.structure().kind: True,
            f"discount {model.discount}": True,
            "several starts": (model.initial > 0).sum() > 1,
            "endings": (model.chance[:, :, -1] > 0).any() and mdp.structure().kind == "general",
            "self-loops": loops.any(),
            "unreachable states": not entered_states(model, np.ones_like(model.policy) > 0).all(),
            "actions left out": (model.policy[model.policy.any(axis=1)] == 0).any(),
            "no row for a state": not model.policy.any(axis=1).all(),
            "deterministic rewards": (model.std == 0).all(axis=2).any(),
            "rewards by outcome": mdp.rewards_depend_on_outcome,
        }
        for name, has in features.items():
            found[name] = found.get(name, 0) + bool(has)
    expected = {"bandit", "tree", "layered", "general"}
    expected |= {"discount 1.0", "discount 0.9", "discount 0.5"}
    assert expected <= set(found)
    assert min(found.values()) >= 5, found


@both_kinds_of_knowledge
@pytest.mark.parametrize("seed", SEEDS)
def test_it_agrees_with_a_general_solver_and_never_claims_too_much(seed: int, known: bool) -> None:
    model, mdp = drawn(seed)
    smallest = smallest_error(mdp, model.policy, known_transitions=known)
    flow = optimal_flow(mdp, model.policy, known_transitions=known)
    assert flow.limit == pytest.approx(smallest, rel=1e-3)
    for tolerance in TOLERANCES:
        flow = optimal_flow(mdp, model.policy, known_transitions=known, tolerance=tolerance)
        assert 0.0 <= flow.gap <= tolerance * flow.limit
        assert flow.limit - flow.gap <= smallest * (1 + ACCURACY)
        assert smallest <= flow.limit * (1 + ACCURACY)


# MATH prints 2.86, 4.71, 7.94 and 3.21; the third is 0.1% above the optimum.
@pytest.mark.parametrize(
    ("slip", "known", "limit"),
    [(0.0, False, 2.8617), (0.1, False, 4.7100), (0.3, False, 7.9329), (0.1, True, 3.2096)],
)
def test_the_grids(slip: float, known: bool, limit: float) -> None:
    grid = problems.find("gridworld")(slip=slip)
    flow = optimal_flow(grid.mdp, grid.policy, known_transitions=known, tolerance=1e-6)
    assert flow.limit == pytest.approx(limit, abs=5e-5)
    assert flow.gap <= 1e-6 * flow.limit
    smallest = smallest_error(grid.mdp, grid.policy, known_transitions=known)
    assert flow.limit - flow.gap <= smallest * (1 + ACCURACY)
    assert smallest <= flow.limit * (1 + ACCURACY)


@both_kinds_of_knowledge
@pytest.mark.parametrize("seed", SEEDS)
def test_the_limit_is_the_error_of_the_behavior(seed: int, known: bool) -> None:
    model, mdp = drawn(seed)
    flow = optimal_flow(mdp, model.policy, known_transitions=known)
    assert flow.behavior.shape == (mdp.horizon, mdp.states, mdp.actions)
    assert flow.behavior.min() >= 0.0
    np.testing.assert_allclose(flow.behavior.sum(axis=2), 1.0, rtol=1e-12)
    found = estimation_variance(mdp, model.policy, flow.behavior, known_transitions=known)
    assert flow.limit == pytest.approx(found, rel=1e-9)


@both_kinds_of_knowledge
@pytest.mark.parametrize("seed", SEEDS)
def test_no_other_way_to_collect_is_better(seed: int, known: bool) -> None:
    model, mdp = drawn(seed)
    flow = optimal_flow(mdp, model.policy, known_transitions=known)
    for behavior in (
        fallback_shares(model.policy),
        sampling_proportions(mdp, model.policy).behavior,
        np.full(model.policy.shape, 1.0 / mdp.actions),
    ):
        other = estimation_variance(mdp, model.policy, behavior, known_transitions=known)
        assert flow.limit - flow.gap <= other * (1 + 1e-12)
        assert flow.limit <= other * (1 + 1e-4)  # the tolerance: other may itself be optimal


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if seed % len(KINDS) < 2])
def test_on_trees_it_is_theorem_1(seed: int) -> None:
    model, mdp = drawn(seed)
    assert mdp.structure().is_tree
    flow = optimal_flow(mdp, model.policy, known_transitions=True)
    assert flow.limit == pytest.approx(oracle_mse(mdp, model.policy, 1), rel=1e-9)
    theorem = sampling_proportions(mdp, model.policy)
    levels = mdp.structure().levels
    entered = occupancy(mdp, theorem.behavior).sum(axis=(0, 2)) > 0
    compared = np.flatnonzero(entered & (theorem.normalizers > 0))
    assert compared.size > 0
    np.testing.assert_allclose(
        flow.behavior[levels[compared], compared], theorem.behavior[compared], atol=1e-9
    )


def test_the_papers_tree() -> None:
    tree = problems.find("tree")()
    for known in (False, True):  # its transitions are deterministic
        flow = optimal_flow(tree.mdp, tree.policy, known_transitions=known)
        assert flow.limit == pytest.approx(0.890945, abs=5e-7)


def test_on_bandits_it_is_proposition_1() -> None:
    bandit = problems.find("bandit")()
    flow = optimal_flow(bandit.mdp, bandit.policy)
    scores = bandit.policy[0] * bandit.mdp.reward_std[0]
    np.testing.assert_allclose(flow.behavior[0, 0], scores / scores.sum(), rtol=1e-12)
    assert flow.limit == pytest.approx(scores.sum() ** 2, rel=1e-12)


def test_it_may_take_what_the_target_policy_never_takes() -> None:
    # The noisy state 1 is entered by action 0, which the target policy takes, one time in ten,
    # and by action 1 every time. W(1) = 0.1, so that C = 0.01 * 9 there and 0 elsewhere.
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 0.1, 1.0
    deviations = np.array([[0.0, 0.0], [3.0, 0.0]])
    mdp = TabularMDP(transitions, 1.0, deviations, [1.0, 0.0], 2)
    flow = optimal_flow(mdp, [[1.0, 0.0], [1.0, 0.0]], known_transitions=True, tolerance=1e-9)
    assert flow.limit == pytest.approx(0.09, rel=1e-8)
    np.testing.assert_allclose(flow.behavior[[0, 1], [0, 1]], [[0, 1], [1, 0]], atol=1e-8)


@both_kinds_of_knowledge
def test_where_nothing_varies_there_is_nothing_to_learn(known: bool) -> None:
    tree = problems.find("tree")(low_variance=0.0, high_variance=0.0)
    flow = optimal_flow(tree.mdp, tree.policy, known_transitions=known)
    assert (flow.limit, flow.gap) == (0.0, 0.0)
    np.testing.assert_allclose(flow.behavior.sum(axis=2), 1.0, rtol=1e-12)
    # Where only transitions vary it depends on whether they are known.
    river = problems.find("riverswim")(noise=0.0)
    flow = optimal_flow(river.mdp, river.policy, known_transitions=known)
    assert (flow.limit == 0.0) is known


@pytest.mark.parametrize("tolerance", [0.0, -1e-3, float("nan")])
def test_impossible_tolerances_are_refused(tolerance: float) -> None:
    bandit = problems.find("bandit")()
    with pytest.raises(InputError, match=r"tolerance is .*; it must be positive"):
        optimal_flow(bandit.mdp, bandit.policy, tolerance=tolerance)


def test_impossible_policies_are_refused() -> None:
    bandit = problems.find("bandit")()
    with pytest.raises(InputError, match="sums to"):
        optimal_flow(bandit.mdp, np.full((1, 5), 0.3))
