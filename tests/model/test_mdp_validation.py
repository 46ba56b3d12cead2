from typing import Any

import numpy as np
import pytest
from scipy import sparse

from revar import TabularMDP
from revar.errors import InputError


def build(**changes: Any) -> TabularMDP:
    """A valid model of 3 states and 2 actions, with some of its arguments replaced."""
    arguments: dict[str, Any] = {
        "transitions": np.full((3, 2, 3), 0.25),
        "reward_mean": np.zeros((3, 2)),
        "reward_std": np.ones((3, 2)),
        "initial": [0.5, 0.5, 0.0],
        "horizon": 4,
        "discount": 0.9,
    }
    return TabularMDP(**{**arguments, **changes})


def changed(array: Any, place: tuple[int, ...], value: float) -> Any:
    """A copy of the array with one entry replaced."""
    copy = np.array(array, dtype=np.float64)
    copy[place] = value
    return copy


def refusal(**changes: Any) -> str:
    with pytest.raises(InputError) as caught:
        build(**changes)
    return str(caught.value)


def test_the_unchanged_arguments_are_accepted() -> None:
    mdp = build()
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.discount) == (3, 2, 4, 0.9)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (np.nan, "transitions of state 1, action 0, successor 2 is nan; it must be finite"),
        (np.inf, "transitions of state 1, action 0, successor 2 is inf; it must be finite"),
        (-np.inf, "transitions of state 1, action 0, successor 2 is -inf; it must be finite"),
        (-0.1, "transitions of state 1, action 0, successor 2 is -0.1; it must not be negative"),
        (1.5, "transitions of state 1, action 0, successor 2 is 1.5; it must be at most 1"),
    ],
)
def test_bad_probabilities_are_named(value: float, rule: str) -> None:
    dense = changed(np.full((3, 2, 3), 0.25), (1, 0, 2), value)
    assert refusal(transitions=dense) == rule
    assert refusal(transitions=sparse.csr_array(dense.reshape(6, 3))) == rule


def test_the_first_of_several_bad_probabilities_is_named() -> None:
    dense = np.full((3, 2, 3), 0.25)
    dense[1, 1, 0] = -0.2
    dense[2, 0, 1] = -0.3
    assert "state 1, action 1, successor 0 is -0.2" in refusal(transitions=dense)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_rows_above_one_are_refused(as_sparse: bool) -> None:
    dense = np.full((3, 2, 3), 0.25)
    dense[2, 1] = [0.5, 0.5, 0.25]
    given = sparse.coo_array(dense.reshape(6, 3)) if as_sparse else dense
    assert refusal(transitions=given) == (
        "transitions of state 2, action 1 sum to 1.25; a row sums to at most 1 "
        "(what is missing ends the episode)"
    )


def test_rows_at_one_up_to_rounding_are_accepted() -> None:
    mdp = build(transitions=np.full((3, 2, 3), 1.0 / 3.0 + 1e-11))
    assert np.all(mdp.outcomes.successor < 3)


@pytest.mark.parametrize(
    ("transitions", "shape"),
    [
        (np.zeros((3, 2, 2)), "(3, 2, 2)"),
        (np.zeros((2, 2, 3)), "(2, 2, 3)"),
        (np.zeros((3, 0, 3)), "(3, 0, 3)"),
        (np.zeros((6, 3)), "(6, 3)"),
        (sparse.csr_array((6, 4)), "(6, 4)"),
        (sparse.csr_array((7, 3)), "(7, 3)"),
        (sparse.csr_array((0, 3)), "(0, 3)"),
        (sparse.coo_array((6,)), "(6,)"),
        (sparse.coo_array((3, 2, 3)), "(3, 2, 3)"),
    ],
)
def test_transitions_of_the_wrong_shape(transitions: Any, shape: str) -> None:
    message = refusal(transitions=transitions)
    assert message.startswith(f"transitions has shape {shape};")
    assert "3 states (the length of initial)" in message


def test_sparse_transitions_whose_indices_do_not_fit() -> None:
    matrix = sparse.csr_array(np.full((6, 3), 0.25))
    matrix.indices[4] = 9
    assert refusal(transitions=matrix).startswith("transitions is not a valid sparse matrix:")


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([0.5, np.nan, 0.5], "initial of state 1 is nan; it must be finite"),
        ([0.5, 0.5, np.inf], "initial of state 2 is inf; it must be finite"),
        ([-0.5, 1.0, 0.5], "initial of state 0 is -0.5; it must lie in [0, 1]"),
        ([0.0, 1.5, 0.0], "initial of state 1 is 1.5; it must lie in [0, 1]"),
        ([0.5, 0.4, 0.0], "initial sums to 0.9; it must sum to 1"),
        ([0.0, 0.0, 0.0], "initial sums to 0; it must sum to 1"),
        ([[0.5, 0.5, 0.0]], "initial has shape (1, 3); it must be [states]"),
        ([], "initial has shape (0,); it must be [states]"),
        (1.0, "initial has shape (); it must be [states]"),
    ],
)
def test_bad_initial_distributions(initial: Any, message: str) -> None:
    assert refusal(initial=initial) == message


@pytest.mark.parametrize("field", ["transitions", "reward_mean", "reward_std", "initial"])
def test_what_is_not_numbers_is_refused(field: str) -> None:
    assert refusal(**{field: [["a"], ["b"]]}).startswith(f"{field} is not an array of numbers")
    assert refusal(**{field: [[1.0], [2.0, 3.0]]}).startswith(f"{field} is not an array of numbers")


@pytest.mark.parametrize(
    "horizon", [0, -1, 2.5, True, float("nan"), float("inf"), "3", None, np.array([1, 2])]
)
def test_bad_horizons(horizon: Any) -> None:
    message = refusal(horizon=horizon)
    assert message == f"horizon is {horizon!r}; it must be a whole number of at least 1"


@pytest.mark.parametrize("horizon", [3, 3.0, np.int32(3), np.float64(3.0)])
def test_whole_numbers_of_any_type_are_horizons(horizon: Any) -> None:
    kept = build(horizon=horizon).horizon
    assert kept == 3
    assert type(kept) is int


@pytest.mark.parametrize(
    "discount", [-0.1, 1.0000001, float("nan"), float("inf"), "0.9", None, np.array([0.5, 0.5])]
)
def test_bad_discounts(discount: Any) -> None:
    assert refusal(discount=discount) == f"discount is {discount!r}; it must lie in [0, 1]"


@pytest.mark.parametrize("discount", [0, 0.0, 1, 1.0, np.float32(0.5)])
def test_the_ends_of_the_discount_are_allowed(discount: Any) -> None:
    assert build(discount=discount).discount == float(discount)


@pytest.mark.parametrize("field", ["reward_mean", "reward_std"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rewards_must_be_finite(field: str, value: float) -> None:
    given = changed(np.ones((3, 2)), (2, 1), value)
    assert (
        refusal(**{field: given}) == f"{field} of state 2, action 1 is {value}; it must be finite"
    )


def test_negative_deviations_are_refused() -> None:
    given = changed(np.ones((3, 2)), (1, 0), -2.0)
    assert refusal(reward_std=given) == (
        "reward_std of state 1, action 0 is -2; it must not be negative"
    )


@pytest.mark.parametrize("field", ["reward_mean", "reward_std"])
@pytest.mark.parametrize("shape", [(2, 3), (3,), (3, 2, 1, 1)])
def test_rewards_of_the_wrong_shape(field: str, shape: tuple[int, ...]) -> None:
    message = refusal(**{field: np.ones(shape)})
    assert message.startswith(f"{field} has shape {shape}; it must be [states, actions] = (3, 2)")


@pytest.mark.parametrize("field", ["reward_mean", "reward_std"])
def test_rewards_per_outcome_of_the_wrong_shape(field: str) -> None:
    rewards = {"reward_mean": np.zeros((3, 2, 4)), "reward_std": np.ones((3, 2, 4))}
    dense = refusal(**{**rewards, field: np.ones((3, 2, 3))})
    assert dense == (
        f"{field} has shape (3, 2, 3); per outcome it must be [states, actions, states+1] = "
        f"(3, 2, 4)"
    )
    stored = refusal(**{**rewards, field: sparse.csr_array((6, 3))})
    assert stored == (
        f"{field} has shape (6, 3); sparse rewards per outcome must be "
        f"[states*actions, states+1] = (6, 4)"
    )


@pytest.mark.parametrize("field", ["reward_mean", "reward_std"])
def test_both_rewards_take_the_same_form(field: str) -> None:
    rewards = {"reward_mean": np.zeros((3, 2, 4)), "reward_std": np.ones((3, 2, 4))}
    assert refusal(**{**rewards, field: np.ones((3, 2))}) == (
        f"{field} is given per state and action while its partner is given per outcome; give "
        f"both per outcome, or a scalar"
    )


@pytest.mark.parametrize(
    ("outcome", "named"), [(1, "outcome successor 1"), (3, "outcome 'episode ends'")]
)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_bad_rewards_per_outcome_name_the_outcome(
    outcome: int, named: str, as_sparse: bool
) -> None:
    def given(array: Any) -> Any:
        return sparse.csr_array(array.reshape(6, 4)) if as_sparse else array

    good = np.ones((3, 2, 4))
    bad_mean = given(changed(good, (2, 0, outcome), np.nan))
    assert refusal(reward_mean=bad_mean, reward_std=given(good)) == (
        f"reward_mean of state 2, action 0, {named} is nan; it must be finite"
    )
    bad_std = given(changed(good, (2, 0, outcome), -1.0))
    assert refusal(reward_mean=given(good), reward_std=bad_std) == (
        f"reward_std of state 2, action 0, {named} is -1; it must not be negative"
    )


def test_rewards_of_impossible_outcomes_are_not_looked_at() -> None:
    transitions = np.zeros((3, 2, 3))
    transitions[:, :, 0] = 1.0
    mean = np.full((3, 2, 4), np.nan)
    mean[:, :, 0] = 7.0
    mdp = build(transitions=transitions, reward_mean=mean, reward_std=0.0)
    assert np.all(mdp.reward_mean == 7.0)


def test_unknown_reward_laws_are_refused() -> None:
    assert refusal(reward_law="cauchy") == (
        "reward_law is 'cauchy'; known laws: normal, two-point, bernoulli, uniform, deterministic"
    )
