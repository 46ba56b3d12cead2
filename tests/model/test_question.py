"""Questions: combinations of the values of several policies, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from revar import Best, Difference, Question, Values
from revar.errors import InputError
from revar.model.question import Combinations, combinations_of, combined_variances

FIRST, SECOND = [[0.75, 0.25], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]


def test_what_each_kind_asks_for() -> None:
    difference = Difference(FIRST, SECOND).combinations
    assert difference.coefficients.tolist() == [[1.0, -1.0]]
    assert difference.single
    assert not difference.best
    values = Values([FIRST, SECOND], [1.0, 3.0]).combinations
    assert values.coefficients.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert values.weights.tolist() == [1.0, 3.0]
    best = Best([FIRST, SECOND]).combinations
    assert best.best
    assert best.coefficients.tolist() == values.coefficients.tolist()
    contrast = Question([FIRST, SECOND], [0.5, 0.5]).combinations
    assert contrast.coefficients.tolist() == [[0.5, 0.5]]
    assert contrast.weights.tolist() == [1.0]
    single = Question.of_value(FIRST)
    np.testing.assert_array_equal(single.policy, FIRST)
    assert single.combinations.single


def test_policies_may_come_as_one_array() -> None:
    stacked = Values(np.array([FIRST, SECOND]))
    assert stacked.policies.tolist() == [FIRST, SECOND]
    np.testing.assert_array_equal(stacked.policy, [[0.5, 0.5], [0.75, 0.25]])


def test_answers_and_their_variances() -> None:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(5, 3, 3))
    covariance = roots @ roots.transpose(0, 2, 1)
    values = rng.normal(size=(5, 3))
    asked = Combinations(np.array([[1.0, -1.0, 0.0], [0.2, 0.3, 0.5]]), np.ones(2))
    np.testing.assert_allclose(asked.answer(values), values @ asked.coefficients.T)
    expected = [[row @ each @ row for row in asked.coefficients] for each in covariance]
    np.testing.assert_allclose(asked.answer_variance(covariance), expected, rtol=1e-12)
    difference = combinations_of("difference", 2)
    assert difference.answer(np.array([3.0, 1.0])) == 2.0
    assert difference.answer_variance(np.array([[2.0, 1.5], [1.5, 2.0]])) == 1.0


def test_what_is_unknown_counts_only_where_it_is_asked_for() -> None:
    covariance = np.array([[np.inf, np.inf, 0.0], [np.inf, np.inf, 0.0], [0.0, 0.0, 4.0]])
    rows = np.array([[1.0, 0.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    assert combined_variances(rows, covariance).tolist() == [np.inf, np.inf, 16.0, np.inf]
    # An estimate that was not made is not an unknown one.
    nothing = np.full((3, 3), np.nan)
    assert np.isnan(combined_variances(rows, nothing)).all()
    # Rounding leaves no negative variance.
    alike = np.full((2, 2), 1.0 + 1e-16)
    alike[0, 0] -= 1e-16
    assert combined_variances(np.array([[1.0, -1.0]]), alike) >= 0.0


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        make()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", [Values, Best])
@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([], "a question needs at least one policy"),
        (None, "policies are a NoneType; they must be a list of arrays [states, actions]"),
        (3, "policies are an int; they must be a list of arrays [states, actions]"),
        ("ab", "policies are a str; they must be a list of arrays [states, actions]"),
        ({"a": FIRST}, "policies are a dict; they must be a list of arrays [states, actions]"),
        (FIRST, "policy 0 has shape (2,); it must be [states, actions]"),
        (
            [FIRST, [[0.5, 0.5, 0.0]]],
            "policy 1 has shape (1, 3), and policy 0 has (2, 2); policies that are compared act "
            "in the same states with the same actions",
        ),
    ],
    ids=str,
)
def test_bad_policies_are_refused(kind: Any, policies: Any, message: str) -> None:
    assert refusal(lambda: kind(policies)) == message


def test_policies_that_are_no_numbers_are_refused_by_number() -> None:
    assert refusal(lambda: Values([FIRST, "second"])).startswith(
        "policy 1 is not an array of numbers: "
    )
    assert refusal(lambda: Difference(FIRST, None)) == (
        "policy 1 has shape (); it must be [states, actions]"
    )


def test_the_best_of_one_is_no_question() -> None:
    assert refusal(lambda: Best([FIRST])) == (
        "the best of several policies needs at least two of them"
    )


@pytest.mark.parametrize(
    ("coefficients", "weights", "message"),
    [
        ([[1.0, 0.0, 0.0]], None, "a question about 2 policies has coefficients for 3"),
        ([[1.0, np.nan]], None, "coefficients of a question have shape (1, 2); they must be"),
        ([], None, "coefficients of a question have shape (1, 0); they must be finite numbers"),
        ("ab", None, "coefficients of a question is not an array of numbers: "),
        ([[1.0, -1.0]], [1.0, 2.0], "a question of 1 combinations has weights of shape (2,)"),
        ([[1.0, -1.0]], [-1.0], "weights of a question are [-1.0]; they must be finite, not"),
        ([[1.0, -1.0]], [0.0], "weights of a question are [0.0]; they must be finite, not"),
        ([[1.0, -1.0]], [np.inf], "weights of a question are [inf]; they must be finite, not"),
    ],
    ids=str,
)
def test_bad_coefficients_are_refused(coefficients: Any, weights: Any, message: str) -> None:
    found = refusal(lambda: Question([FIRST, SECOND], coefficients, weights))
    assert found.startswith(message)


def test_kinds_are_known() -> None:
    assert refusal(lambda: combinations_of("bets", 2)) == (
        "question is 'bets'; it must be one of best, values, difference"
    )
    assert refusal(lambda: combinations_of("difference", 3)) == (
        "a difference is between two policies; there are 3"
    )
