import numpy as np
import pytest
from numpy.typing import ArrayLike

from revar.errors import InputError
from revar.strategies import Plan, Selection


def test_scores_may_be_any_table_of_numbers() -> None:
    for scores in ([[[1, 0], [0, 1]]], np.asfortranarray(np.eye(2)[None]), np.eye(2)[None] > 0):
        plan = Plan(scores, Selection.SAMPLE)  # type: ignore[arg-type]
        assert plan.scores.dtype == np.float64
        assert plan.scores.flags.c_contiguous
        assert plan.scores.tolist() == [[[1.0, 0.0], [0.0, 1.0]]]


def test_a_plan_keeps_its_own_scores() -> None:
    scores = np.ones((1, 2, 2))
    plan = Plan(scores, Selection.TRACK)
    scores[:] = 7.0
    assert plan.scores.max() == 1.0


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones((2, 2)), r"scores of a plan have shape \(2, 2\); they must be \[1 or horizon,"),
        ([["a"]], "scores of a plan is not an array of numbers"),
        (
            [[[0.5, 0.5], [0.5, float("nan")]]],
            "the score of state 1, action 1 at step 0 of a plan is nan; scores must be finite",
        ),
        (
            [[[0.5, 0.5]], [[-0.25, 1.25]]],
            r"the score of state 0, action 0 at step 1 of a plan is -0\.25; .* not negative",
        ),
        ([[[float("inf"), 0.0]]], "the score of state 0, action 0 at step 0 of a plan is inf"),
    ],
)
def test_bad_scores_are_refused(scores: ArrayLike, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Plan(scores, Selection.TRACK)  # type: ignore[arg-type]


def test_an_unknown_selection_is_refused() -> None:
    with pytest.raises(InputError, match="selection of a plan is 1; it must be a Selection"):
        Plan(np.ones((1, 1, 1)), 1)  # type: ignore[arg-type]
