import dataclasses
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from revar import TabularMDP, policy_value
from revar.problems import problems
from tests.plain_model import MODELS


def same_model(one: TabularMDP, other: TabularMDP) -> bool:
    """Whether two models hold exactly the same numbers."""
    return (
        (one.states, one.actions, one.horizon, one.discount, one.reward_law)
        == (other.states, other.actions, other.horizon, other.discount, other.reward_law)
        and all(np.array_equal(a, b) for a, b in zip(one.outcomes, other.outcomes, strict=True))
        and np.array_equal(one.reward_mean, other.reward_mean)
        and np.array_equal(one.reward_std, other.reward_std)
        and np.array_equal(one.outcome_reward_mean, other.outcome_reward_mean)
        and np.array_equal(one.outcome_reward_std, other.outcome_reward_std)
        and one.rewards_depend_on_outcome == other.rewards_depend_on_outcome
        and np.array_equal(one.initial, other.initial)
    )


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10_000), st.booleans())
def test_dense_and_sparse_input_give_the_same_model(kind: str, seed: int, by_outcome: bool) -> None:
    model = MODELS[kind](seed, by_outcome=by_outcome)
    assert same_model(model.mdp(), model.sparse_mdp())


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10_000), st.booleans())
def test_what_was_given_can_be_read_back(kind: str, seed: int, by_outcome: bool) -> None:
    model = MODELS[kind](seed, by_outcome=by_outcome)
    mdp = model.mdp()
    shape = (model.states, model.actions, model.states)
    assert np.array_equal(mdp.transitions.toarray().reshape(shape), model.chance[:, :, :-1])
    assert np.array_equal(mdp.initial, model.initial)
    dense = np.zeros((model.states * model.actions, model.states + 1))
    dense[
        np.repeat(np.arange(len(dense)), np.diff(mdp.outcomes.row_start)), mdp.outcomes.successor
    ] = mdp.outcomes.probability
    np.testing.assert_allclose(dense.reshape(model.chance.shape), model.chance, atol=1e-15)
    # Moments of the reward given the pair, over outcomes and noise.
    mean = (model.chance * model.mean).sum(axis=2)
    second = (model.chance * (model.std**2 + model.mean**2)).sum(axis=2)
    np.testing.assert_allclose(mdp.reward_mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(mdp.reward_std**2, second - mean**2, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.csr_matrix, sparse.csc_array])
def test_every_sparse_format_is_read(kind: Any) -> None:
    model = MODELS["general"](3)
    dense = model.chance[:, :, :-1].reshape(-1, model.states)
    mdp = TabularMDP(kind(dense), 0.0, 1.0, model.initial, 3)
    assert np.array_equal(mdp.transitions.toarray(), dense)


def test_repeated_entries_of_sparse_input_are_summed() -> None:
    # As Gymnasium's FrozenLake lists the same successor several times.
    rows, columns = [0, 0, 0, 1], [1, 1, 0, 1]
    repeated = sparse.coo_array(([0.25, 0.25, 0.5, 1.0], (rows, columns)), shape=(2, 2))
    mdp = TabularMDP(repeated, [[1.0], [2.0]], 0.0, [1.0, 0.0], 2)
    assert np.array_equal(mdp.transitions.toarray(), [[0.5, 0.5], [0.0, 1.0]])
    assert mdp.outcomes.successor.tolist() == [0, 1, 1]
    unsorted = sparse.csr_array(
        (np.array([0.25, 0.5, 0.25, 1.0]), np.array([1, 0, 1, 1]), np.array([0, 3, 4])),
        shape=(2, 2),
    )
    assert same_model(mdp, TabularMDP(unsorted, [[1.0], [2.0]], 0.0, [1.0, 0.0], 2))
    assert unsorted.nnz == 4  # what the user handed over was left alone


def test_entries_of_zero_are_no_transitions() -> None:
    stored = sparse.csr_array(
        (np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 2)
    )
    mdp = TabularMDP(stored, 0.0, 0.0, [1.0, 0.0], 2)
    assert mdp.outcomes.successor.tolist() == [1, 2]


def test_rows_below_one_end_the_episode() -> None:
    mdp = TabularMDP([[[0.75]]], [[1.0]], 0.0, [1.0], horizon=3)
    assert mdp.outcomes.successor.tolist() == [0, 1]
    assert mdp.outcomes.probability.tolist() == [0.75, 0.25]
    # The reward is paid at every step that is played: 1 + 3/4 + 9/16.
    assert policy_value(mdp, [[1.0]]) == 1 + 0.75 + 0.5625


def test_scalars_stand_for_the_same_reward_everywhere() -> None:
    mdp = TabularMDP(np.zeros((2, 3, 2)), 4.0, 0.5, [1.0, 0.0], 1)
    assert np.array_equal(mdp.reward_mean, np.full((2, 3), 4.0))
    assert np.array_equal(mdp.reward_std, np.full((2, 3), 0.5))
    assert not mdp.rewards_depend_on_outcome


def test_scalar_deviation_beside_means_per_outcome() -> None:
    transitions = np.array([[[0.5, 0.25]], [[0.0, 0.0]]])
    mean = np.array([[[1.0, 3.0, 7.0]], [[9.0, 9.0, 5.0]]])  # the last column: episode ends
    mdp = TabularMDP(transitions, mean, 2.0, [1.0, 0.0], 2)
    assert mdp.rewards_depend_on_outcome
    assert mdp.outcome_reward_mean.tolist() == [1.0, 3.0, 7.0, 5.0]
    assert mdp.outcome_reward_std.tolist() == [2.0, 2.0, 2.0, 2.0]
    assert mdp.reward_mean.tolist() == [[3.0], [5.0]]
    # 4 of noise plus the variance of 1, 3, 7 with chances 1/2, 1/4, 1/4 around 3.
    np.testing.assert_allclose(mdp.reward_std, np.sqrt([[4.0 + 6.0], [4.0]]), rtol=1e-15)


def test_fields_cannot_be_changed() -> None:
    mdp = problems.find("example-2")().mdp
    for field in dataclasses.fields(mdp):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mdp, field.name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(mdp, field.name)


@pytest.mark.parametrize("by_outcome", [False, True])
def test_arrays_cannot_be_changed(by_outcome: bool) -> None:
    model = MODELS["general"](4, by_outcome=by_outcome)
    mdp, untouched = model.mdp(), model.mdp()
    shown = [mdp.initial, mdp.reward_mean, mdp.reward_std, *mdp.outcomes]
    if by_outcome:
        shown += [mdp.outcome_reward_mean, mdp.outcome_reward_std]
    for array in shown:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    # What is made anew on every access may be written to, and changes nothing.
    mdp.transitions.data[:] = 0.0
    assert same_model(mdp, untouched)


@pytest.mark.parametrize("by_outcome", [False, True])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_later_changes_of_the_input_do_not_reach_the_model(
    as_sparse: bool, by_outcome: bool
) -> None:
    model = MODELS["general"](5, by_outcome=by_outcome)
    transitions: Any = np.array(model.chance[:, :, :-1])
    mean: Any = np.array(model.mean if by_outcome else model.mean[:, :, 0])
    std: Any = np.array(model.std if by_outcome else model.std[:, :, 0])
    initial = np.array(model.initial)
    buffers = [transitions, mean, std, initial]
    if as_sparse:
        transitions = sparse.csr_array(transitions.reshape(-1, model.states))
        buffers[0] = transitions.data
        if by_outcome:
            mean = sparse.csr_array(mean.reshape(-1, model.states + 1))
            std = sparse.csr_array(std.reshape(-1, model.states + 1))
            buffers[1:3] = mean.data, std.data
    mdp = TabularMDP(transitions, mean, std, initial, model.horizon, model.discount)
    for buffer in buffers:
        buffer[:] = 0.125
    assert same_model(mdp, model.mdp())


def test_memory_is_proportional_to_the_transitions() -> None:
    # A dense [S, A, S] array of this chain would take 16 * 10^10 bytes.
    states, actions = 100_000, 2
    pairs = np.arange(states * actions)
    transitions = sparse.csr_array(
        (np.full(pairs.size, 0.5), (pairs, (pairs // actions + 1) % states)),
        shape=(pairs.size, states),
    )
    initial = np.zeros(states)
    initial[0] = 1.0
    mean = np.zeros((states, actions))
    tracemalloc.start()
    try:
        mdp = TabularMDP(transitions, mean, mean, initial, 10)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    slots = 2 * pairs.size  # one successor and one ending each
    assert mdp.outcomes.successor.size == slots
    # Kept: two numbers a slot, three a pair (layout and moments), one a state.
    assert kept < 8 * (2 * slots + 3 * pairs.size + states) + 100_000
    assert peak < 20 * 8 * slots


def test_repr_names_the_size() -> None:
    assert repr(problems.find("tree")().mdp) == (
        "TabularMDP(states=15, actions=2, horizon=4, discount=1, outcomes=30, reward_law='normal')"
    )
