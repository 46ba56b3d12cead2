"""Costs and variances of questions: by finite differences, closed forms, and simulation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar import (
    Best,
    Difference,
    Question,
    TabularMDP,
    Values,
    estimation_variance,
    occupancy,
    one_step_costs,
    policy_value,
)
from revar.errors import InputError
from revar.model.task import check_question
from revar.problems import problems
from revar.theory.costs import combination_costs
from tests.plain_model import MODELS, Floats, PlainModel
from tests.plain_simulation import counts, plain
from tests.theory.random_questions import models_of, random_policies
from tests.theory.test_costs import influence_of_outcomes, influence_of_rewards, models

bandit_policies = ([[0.5, 0.3, 0.2, 0.0]], [[0.1, 0.3, 0.5, 0.1]], [[0.4, 0.0, 0.4, 0.2]])


def bandit(means: Any = (1.0, 2.0, 3.0, 4.0)) -> TabularMDP:
    return TabularMDP(np.zeros((1, 4, 1)), [means], [[1.0, 2.0, 0.5, 3.0]], [1.0], 1)


def asked(model: PlainModel, seed: int) -> Question:
    rng = np.random.default_rng(seed)
    return Question(random_policies(model, seed, 3), rng.normal(size=(2, 3)), rng.random(2))


def delta_method(model: PlainModel, question: Question, row: Floats, known: bool) -> Floats:
    """The variance of one observation's influence on a combination of values, [S, A]."""
    every = models_of(model, question)
    costs = np.zeros((model.states, model.actions))
    for state, action in np.ndindex(costs.shape):
        chance, mean = model.chance[state, action], model.mean[state, action]
        weight = row @ [influence_of_rewards(each, state, action) for each in every]
        # The slopes hold the outcome's own mean reward; with known transitions it alone counts.
        slopes = row @ np.array([influence_of_outcomes(each, state, action) for each in every])
        worth = weight * mean if known else slopes
        between = chance @ (worth - chance @ worth) ** 2
        costs[state, action] = between + weight**2 * (chance @ model.std[state, action] ** 2)
    return costs


@given(models, st.integers(0, 1000), st.booleans())
def test_costs_are_the_variance_of_one_observation_s_influence(
    model: PlainModel, seed: int, known: bool
) -> None:
    question = asked(model, seed)
    combinations = question.combinations
    expected = np.stack(
        [delta_method(model, question, row, known) for row in combinations.coefficients]
    )
    mdp = model.mdp()
    each = combination_costs(mdp, check_question(mdp, question), known)
    np.testing.assert_allclose(each, expected, rtol=1e-6, atol=1e-8)
    total = one_step_costs(mdp, question, known_transitions=known)
    weighted = np.tensordot(combinations.weights, expected, axes=1)
    np.testing.assert_allclose(total, weighted, rtol=1e-6, atol=1e-8)


@given(models, st.integers(0, 1000), st.booleans())
def test_one_value_is_the_question_that_a_policy_stands_for(
    model: PlainModel, seed: int, known: bool
) -> None:
    mdp = model.mdp()
    others = random_policies(model, seed, 3)
    alone = one_step_costs(mdp, model.policy, known_transitions=known)
    for question in (
        Question.of_value(model.policy),
        Values([model.policy]),
        Question(others, [1.0, 0.0, 0.0]),
        Values(others, [1.0, 0.0, 0.0]),
        Question(others, [[1.0, 0.0, 0.0], [0.0, 2.0, 1.0]], [1.0, 0.0]),
    ):
        found = one_step_costs(mdp, question, known_transitions=known)
        np.testing.assert_array_equal(found, alone)
    # The variance of a multiple: its square.
    twice = one_step_costs(mdp, Question(others, [2.0, 0.0, 0.0]), known_transitions=known)
    np.testing.assert_allclose(twice, 4.0 * alone, rtol=1e-12)


def test_the_difference_of_two_policies_of_a_bandit() -> None:
    # v = sum pi mu: the difference has variance sum (pi_a - pi_b)^2 sigma^2 / T.
    mdp = bandit()
    first, second = (np.array(policy) for policy in bandit_policies[:2])
    costs = (first - second) ** 2 * mdp.reward_std**2
    difference = Difference(first, second)
    np.testing.assert_allclose(one_step_costs(mdp, difference), costs, rtol=1e-14)
    behavior = np.array([[0.1, 0.2, 0.3, 0.4]])
    expected = (costs / behavior).sum()
    assert estimation_variance(mdp, difference, behavior) == pytest.approx(expected, rel=1e-14)


def test_of_the_best_the_hardest_difference_counts() -> None:
    mdp = bandit()
    policies = [np.array(policy) for policy in bandit_policies]  # values 1.7, 2.6, 2.4
    best = Best(policies)
    behavior = np.full((1, 4), 0.25)
    costs = combination_costs(mdp, check_question(mdp, best), known_transitions=True)
    ratios = []
    for other, gap, found in zip((0, 2), (0.9, 0.2), costs, strict=True):
        expected = (policies[1] - policies[other]) ** 2 * mdp.reward_std**2 / gap**2
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        ratios.append((expected / behavior).sum())
    assert estimation_variance(mdp, best, behavior) == pytest.approx(max(ratios), rel=1e-12)
    # Action 1 is needed by the difference of policies 1 and 2 alone.
    never = np.array([[0.5, 0.0, 0.3, 0.2]])
    assert estimation_variance(mdp, Difference(policies[1], policies[0]), never) < np.inf
    assert estimation_variance(mdp, best, never) == np.inf


def test_where_policies_do_the_same_nothing_is_to_be_learned() -> None:
    # They part in state 1 alone. Before it they take different actions that lead there alike, so
    # that sums of 0.1 + 0.2 + 0.7 and 0.3 + 0.3 + 0.4 differ by rounding.
    transitions = np.zeros((3, 3, 3))
    transitions[0, :, 1] = transitions[1, :, 2] = 1.0
    mdp = TabularMDP(transitions, np.zeros((3, 3)), 1.0, [1.0, 0.0, 0.0], 3, 0.9)
    first = np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0], [0.1, 0.2, 0.7]])
    second = np.array([[0.3, 0.3, 0.4], [0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    costs = one_step_costs(mdp, Difference(first, second))
    assert (costs[:2] > 0).tolist() == [[True] * 3, [True, True, False]]
    assert costs[2].tolist() == [0.0, 0.0, 0.0]
    behavior = np.array([[0.4, 0.3, 0.3], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    assert estimation_variance(mdp, Difference(first, second), behavior) < np.inf
    assert estimation_variance(mdp, Difference(first, first), behavior) == 0.0


@pytest.mark.parametrize("known", [False, True])
def test_simulated_errors_of_a_difference_match(known: bool) -> None:
    problem = problems.find("gridworld")()
    mdp, first = problem.mdp, problem.policy
    second = np.full(first.shape, 0.25)
    episodes, runs = 4000, 700
    collected = counts(plain(mdp, first), second, episodes, runs, np.random.default_rng(15))
    found, other = (
        collected.values(plain(mdp, policy), known_transitions=known) for policy in (first, second)
    )
    truth = policy_value(mdp, first) - policy_value(mdp, second)
    scaled = episodes * (found - other - truth) ** 2
    difference = Difference(first, second)
    predicted = estimation_variance(mdp, difference, second, known_transitions=known)
    standard_error = scaled.std(ddof=1) / np.sqrt(runs)
    assert standard_error < 0.07 * predicted  # so that the comparison means something
    assert abs(scaled.mean() - predicted) < 4 * standard_error
    # The errors of the two values go together: as if independent, their sum would be refused.
    apart = sum(
        estimation_variance(mdp, each, second, known_transitions=known) for each in (first, second)
    )
    assert abs(scaled.mean() - apart) > 4 * standard_error


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_variances_of_several_combinations_add_up(kind: str) -> None:
    model = MODELS[kind](7)
    mdp, question = model.mdp(), asked(model, 7)
    behavior = np.full(model.policy.shape, 1.0 / model.actions)
    visits = occupancy(mdp, behavior).sum(axis=0)
    each = [
        estimation_variance(mdp, Question(question.policies, row), behavior)
        for row in question.combinations.coefficients
    ]
    found = estimation_variance(mdp, question, behavior)
    assert found == pytest.approx(question.combinations.weights @ each, rel=1e-12)
    costs = one_step_costs(mdp, question)
    needed = costs > 0
    assert found == pytest.approx((costs[needed] / visits[needed]).sum(), rel=1e-12)


def test_costs_of_the_best_are_refused() -> None:
    with pytest.raises(InputError, match=r"only optimal_flow finds out; ask for .* a Difference"):
        one_step_costs(bandit(), Best(bandit_policies))


def test_policies_of_the_same_value_have_no_best() -> None:
    behavior = np.full((1, 4), 0.25)
    message = r"policies 0 and 2 have the same value, 2\.4, .*leave one of them out"
    policies = [bandit_policies[2], bandit_policies[0], bandit_policies[2]]
    with pytest.raises(InputError, match=message):
        estimation_variance(bandit(), Best(policies), behavior)
    # Behind the leader policies may well be equal.
    policies = [bandit_policies[1], bandit_policies[2], bandit_policies[2]]
    assert estimation_variance(bandit(), Best(policies), behavior) < np.inf
    # Equal but for rounding, 0.1 + 0.2 against 0.3, also where the values themselves cancel.
    mdp = bandit([3.0, 3.0, -1.5, 0.0])
    policies = [[[0.1, 0.2, 0.6, 0.1]], [[0.3, 0.0, 0.6, 0.1]]]
    assert policy_value(mdp, policies[0]) != policy_value(mdp, policies[1])
    with pytest.raises(InputError, match="policies 0 and 1 have the same value"):
        estimation_variance(mdp, Best(policies), behavior)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda: Difference([[1.0, 0.0]], [[1.0, 0.0, 0.0]]), r"policy 1 has shape \(1, 3\)"),
        (lambda: Difference([[0.5] * 2], [[0.5] * 2]), r"policy 0 has shape \(1, 2\); it must be"),
        (lambda: Values([bandit_policies[0], [[0.4] * 4]]), "policy 1 of state 0 sums to 1.6"),
        (lambda: Values([bandit_policies[0]], [1.0, 2.0]), r"1 combinations has weights"),
        (lambda: Values(bandit_policies, [1.0, -1.0, 0.0]), "must be finite, not negative"),
        (lambda: Question(bandit_policies, [[1.0, -1.0]]), "3 policies has coefficients for 2"),
        (lambda: Question(bandit_policies, [[1.0, np.nan, 0.0]]), "must be finite numbers"),
        (lambda: Best([bandit_policies[0]]), "needs at least two"),
        (lambda: [[0.4] * 4], "policy of state 0 sums to 1.6"),
    ],
)
def test_questions_that_do_not_fit_are_refused(question: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimation_variance(bandit(), question(), np.full((1, 4), 0.25))
