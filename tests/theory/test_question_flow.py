"""optimal_flow of questions against a general convex solver, closed forms, and its certificate."""

from functools import cache

import numpy as np
import pytest

from revar import (
    Best,
    Difference,
    Question,
    TabularMDP,
    Values,
    estimation_variance,
    optimal_flow,
    policy_value,
)
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.task import check_question
from revar.problems import problems
from revar.theory.costs import combination_costs
from revar.theory.flow import _Solver
from tests.theory.convex_program import ACCURACY, smallest_error
from tests.theory.random_questions import KINDS, random_question

SEEDS = range(30)
every_question = [pytest.param(kind, seed, id=f"{kind}-{seed}") for kind in KINDS for seed in SEEDS]


@cache
def drawn(kind: str, seed: int) -> tuple[TabularMDP, Question, bool, float]:
    """Model, question, whether transitions are known, and the smallest error of all."""
    model, question = random_question(kind, seed)
    # The kinds of model take turns in fives: both kinds of knowledge for each of them.
    mdp, known = model.mdp(), seed % 2 == 1
    return mdp, question, known, smallest_error(mdp, question, known_transitions=known)


@pytest.mark.parametrize(("kind", "seed"), every_question)
def test_it_agrees_with_a_general_solver_and_never_claims_too_much(kind: str, seed: int) -> None:
    mdp, question, known, smallest = drawn(kind, seed)
    for tolerance in (1e-2, 1e-3, 1e-5):
        flow = optimal_flow(mdp, question, known_transitions=known, tolerance=tolerance)
        assert 0.0 <= flow.gap <= tolerance * flow.limit
        assert flow.limit - flow.gap <= smallest * (1 + ACCURACY)
        assert smallest <= flow.limit * (1 + ACCURACY)
        assert flow.limit == pytest.approx(smallest, rel=tolerance + ACCURACY)


@pytest.mark.parametrize(("kind", "seed"), every_question)
def test_the_limit_is_the_error_of_the_behavior(kind: str, seed: int) -> None:
    mdp, question, known, _ = drawn(kind, seed)
    flow = optimal_flow(mdp, question, known_transitions=known, tolerance=1e-3)
    assert flow.behavior.shape == (mdp.horizon, mdp.states, mdp.actions)
    np.testing.assert_allclose(flow.behavior.sum(axis=2), 1.0, rtol=1e-12)
    found = estimation_variance(mdp, question, flow.behavior, known_transitions=known)
    assert flow.limit == pytest.approx(found, rel=1e-9)


def planted(kind: str, seed: int, behavior: FloatArray, weights: FloatArray | None) -> _Solver:
    """The solver's account of a behavior that someone else has made."""
    mdp, question, known, _ = drawn(kind, seed)
    costs = combination_costs(mdp, check_question(mdp, question), known)
    if kind != "best":
        costs = np.tensordot(question.combinations.weights, costs, axes=1)[None]
    solver = _Solver(mdp, costs, behavior)
    if weights is not None:
        solver.weights, solver.costs = weights, np.tensordot(weights, costs, axes=1)
    solver.sweep(0)  # the flow of the behavior as it is
    solver.step_to_replies(1, 1e9)  # the bound that its prices prove, and no step
    solver.measure()
    return solver


@pytest.mark.parametrize(("kind", "seed"), every_question)
def test_no_behavior_and_no_weights_prove_too_much(kind: str, seed: int) -> None:
    mdp, question, known, smallest = drawn(kind, seed)
    rng = np.random.default_rng(seed)
    shape = (mdp.horizon, mdp.states)
    for _ in range(20):
        behavior = rng.dirichlet(np.full(mdp.actions, 2.0), size=shape)
        weights = rng.dirichlet(np.ones(len(question.policies) - 1)) if kind == "best" else None
        solver = planted(kind, seed, behavior.copy(), weights)
        error = estimation_variance(mdp, question, behavior, known_transitions=known)
        assert solver.limit == pytest.approx(error, rel=1e-9)
        assert 0.0 < solver.bound <= smallest * (1 + ACCURACY)
        assert solver.gap >= (error - smallest) - ACCURACY * smallest


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_behavior_is_not_certified(kind: str) -> None:
    # Equal shares are at least a tenth worse than the best on most models, and are found out.
    found_out = 0
    for seed in SEEDS:
        mdp, _, _, smallest = drawn(kind, seed)
        equal = np.full((mdp.horizon, mdp.states, mdp.actions), 1.0 / mdp.actions)
        solver = planted(kind, seed, equal, None)
        if solver.limit > 1.1 * smallest:
            assert solver.gap > (1.0 - 1.0 / 1.1 - ACCURACY) * solver.limit
            found_out += 1
    assert found_out > len(SEEDS) / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_the_weights_of_the_best_balance_the_differences(seed: int) -> None:
    mdp, question, known, smallest = drawn("best", seed)
    flow = optimal_flow(mdp, question, known_transitions=known, tolerance=1e-5)
    values = [policy_value(mdp, policy) for policy in question.policies]
    leader = int(np.argmax(values))
    assert flow.weights.shape == (len(values),)
    assert flow.weights[leader] == 0.0
    assert flow.weights.sum() == pytest.approx(1.0, rel=1e-12)
    ratios = np.zeros(len(values))
    for other in set(range(len(values))) - {leader}:
        pair = Difference(question.policies[leader], question.policies[other])
        variance = estimation_variance(mdp, pair, flow.behavior, known_transitions=known)
        ratios[other] = variance / (values[leader] - values[other]) ** 2
    assert ratios.max() == pytest.approx(flow.limit, rel=1e-9)
    # What has weight is as hard as the hardest: sum w (limit - ratio) is a part of the gap.
    assert flow.weights @ (flow.limit - ratios) <= flow.gap + ACCURACY * smallest
    # The flow for these weights as such is no worse than the bound.
    rows = np.eye(len(values))[leader] - np.eye(len(values))
    rows = np.delete(rows, leader, axis=0)
    gaps = np.delete(values[leader] - np.array(values), leader)
    fixed = Question(question.policies, rows, np.delete(flow.weights, leader) / gaps**2)
    alone = optimal_flow(mdp, fixed, known_transitions=known, tolerance=1e-5)
    assert alone.limit >= (flow.limit - flow.gap) * (1 - 1e-9)


def test_the_difference_of_two_policies_of_a_bandit() -> None:
    # b is proportional to |pi_a - pi_b| sigma, and the limit the square of the sum.
    mdp = TabularMDP(np.zeros((1, 3, 1)), [[1.0, 2.0, 3.0]], [[1.0, 2.0, 0.5]], [1.0], 1)
    first, second = np.array([[0.6, 0.3, 0.1]]), np.array([[0.2, 0.3, 0.5]])
    scores = np.abs(first - second)[0] * mdp.reward_std[0]
    flow = optimal_flow(mdp, Difference(first, second), tolerance=1e-9)
    np.testing.assert_allclose(flow.behavior[0, 0], scores / scores.sum(), atol=1e-9)
    assert flow.limit == pytest.approx(scores.sum() ** 2, rel=1e-9)
    assert flow.weights.tolist() == [1.0]
    # Both values: b is proportional to the root of the summed squares.
    scores = np.sqrt(3.0 * first**2 + second**2)[0] * mdp.reward_std[0]
    flow = optimal_flow(mdp, Values([first, second], [3.0, 1.0]), tolerance=1e-9)
    np.testing.assert_allclose(flow.behavior[0, 0], scores / scores.sum(), atol=1e-9)
    assert flow.weights.tolist() == [3.0, 1.0]


def test_the_best_of_two_is_their_difference_over_the_squared_gap() -> None:
    grid = problems.find("gridworld")()
    other = np.full(grid.policy.shape, 0.25)
    gap = policy_value(grid.mdp, other) - policy_value(grid.mdp, grid.policy)
    best = optimal_flow(grid.mdp, Best([grid.policy, other]), tolerance=1e-4)
    difference = optimal_flow(grid.mdp, Difference(grid.policy, other), tolerance=1e-4)
    assert best.limit == pytest.approx(difference.limit / gap**2, rel=1e-12)
    assert best.weights.tolist() == [1.0, 0.0]


def test_contenders_on_arms_of_their_own_are_balanced_exactly() -> None:
    # Arm j is played by policy j alone. Differences to the leader share arm 0, and at the optimum
    # T_0 = t, T_j = u_j with s_0^2/t + s_j^2/u_j = z gap_j^2 for every j: solved here by bisection.
    means, deviations = np.array([3.0, 2.0, 1.0, 0.0]), np.array([1.0, 2.0, 1.0, 3.0])
    mdp = TabularMDP(np.zeros((1, 4, 1)), means[None], deviations[None], [1.0], 1)
    gaps, variances = means[0] - means[1:], deviations**2

    def spent(share: float, ratio: float) -> float:
        left = ratio * gaps**2 - variances[0] / share
        return share + (variances[1:] / left).sum() if (left > 0).all() else np.inf

    shares = np.linspace(0.001, 0.999, 500)
    low, high = 0.0, 1e3
    for _ in range(60):
        ratio = 0.5 * (low + high)
        enough = min(spent(share, ratio) for share in shares) <= 1.0
        low, high = (low, ratio) if enough else (ratio, high)
    flow = optimal_flow(mdp, Best(list(np.eye(4)[:, None])), tolerance=1e-6)
    # The best share is met to 0.001, and the ratio is flat there.
    assert flow.limit == pytest.approx(high, rel=1e-4)
    assert flow.weights[0] == 0.0
    assert (flow.weights[1:] > 0).all()


@pytest.mark.parametrize("count", [3, 5])
def test_the_best_of_several_on_the_gridworld_takes_few_sweeps(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = problems.find("gridworld")()
    rng = np.random.default_rng(count)
    shape = (grid.mdp.states, grid.mdp.actions)
    policies = [0.7 * grid.policy + 0.3 * rng.dirichlet(np.ones(4), shape[0]) for _ in range(count)]
    monkeypatch.setattr("revar.theory.flow.MOST_SWEEPS", 4000)  # about a tenth of a second
    flow = optimal_flow(grid.mdp, Best(policies), tolerance=1e-3)
    assert flow.gap <= 1e-3 * flow.limit


def test_policies_of_the_same_value_have_no_best() -> None:
    grid = problems.find("gridworld")()
    with pytest.raises(InputError, match="policies 0 and 1 have the same value"):
        optimal_flow(grid.mdp, Best([grid.policy, grid.policy]))


def test_where_policies_do_the_same_there_is_nothing_to_learn() -> None:
    grid = problems.find("gridworld")()
    flow = optimal_flow(grid.mdp, Difference(grid.policy, grid.policy))
    assert (flow.limit, flow.gap) == (0.0, 0.0)
    np.testing.assert_allclose(flow.behavior.sum(axis=2), 1.0, rtol=1e-12)
