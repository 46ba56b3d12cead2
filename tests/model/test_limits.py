"""Limits where states are known by keys: which actions are forbidden, and what fits no space."""

from typing import Any

import numpy as np
import pytest

from revar import Limits
from revar.errors import InputError


@pytest.mark.parametrize(
    ("forbidden", "state", "row"),
    [
        (None, "a", [False, False, False]),
        ([], "a", [False, False, False]),
        ([2], "a", [False, False, True]),
        ([2, 0], (1, 2), [True, False, True]),
        ([2, ("a", 0)], "a", [True, False, True]),
        ([2, ("a", 0)], "b", [False, False, True]),
        ([("a", 1)], "a", [False, True, False]),
        ([("a", 1)], "b", [False, False, False]),
        ([((1, 2), 0), ((1, 3), 1)], (1, 2), [True, False, False]),
        ([[[1, 2], 0]], (1, 2), [True, False, False]),  # as JSON has it
        ([(np.array([1, 2]), 0)], (1, 2), [True, False, False]),
        ([(np.int64(4), np.int64(0))], 4, [True, False, False]),
        (np.array([[0, 1, 0], [1, 0, 1]], dtype=bool), 1, [True, False, True]),
    ],
)
def test_forbidden_in_a_state(forbidden: Any, state: Any, row: list[bool]) -> None:
    limits = Limits(forbidden=forbidden)
    limits.check_actions(3)
    assert limits.forbidden_in(state, 3).tolist() == row


@pytest.mark.parametrize("state", ["a", (0,), 2, -1, None])
def test_an_array_has_rows_for_numbered_states_alone(state: Any) -> None:
    limits = Limits(forbidden=np.zeros((2, 3), dtype=bool))
    with pytest.raises(InputError, match="array of 2 states, and has no row for state"):
        limits.forbidden_in(state, 3)


@pytest.mark.parametrize(
    ("forbidden", "message"),
    [
        ([3], "forbidden names action 3; there are 3 actions"),
        ([("a", 1), ("b", 7)], "forbidden names action 7; there are 3 actions"),
        (np.zeros((2, 4), dtype=bool), r"forbidden has shape \(2, 4\); .* there are 3 actions"),
        (np.zeros((2, 3, 3), dtype=bool), r"forbidden has shape \(2, 3, 3\)"),
    ],
)
def test_actions_that_there_are_not(forbidden: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Limits(forbidden=forbidden).check_actions(3)
