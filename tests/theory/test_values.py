"""Values, occupancies and return variances against a listing of all trajectories."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revar import TabularMDP, occupancy, policy_value, return_variance, state_values
from tests import enumeration
from tests.plain_model import MODELS, Floats, PlainModel

models = st.builds(
    lambda kind, seed, by_outcome: MODELS[kind](seed, by_outcome=by_outcome),
    st.sampled_from(sorted(MODELS)),
    st.integers(0, 10_000),
    st.booleans(),
)


def random_behavior(model: PlainModel, seed: int, *, by_step: bool) -> Floats:
    """Some actions are never taken, so that some states are never reached."""
    rng = np.random.default_rng(seed)
    steps = model.horizon if by_step else 1
    shape = (steps, model.states)
    behavior = rng.dirichlet(np.ones(model.actions), size=shape)
    lone = rng.random(shape) < 0.3
    behavior[lone] = np.eye(model.actions)[rng.integers(model.actions, size=lone.sum())]
    return behavior if by_step else behavior[0]


@given(models)
def test_values(model: PlainModel) -> None:
    mdp = model.mdp()
    value = policy_value(mdp, model.policy)
    assert value == pytest.approx(enumeration.value(model), rel=1e-12, abs=1e-13)
    assert isinstance(value, float)


@settings(max_examples=40)
@given(models)
def test_values_of_every_state_and_step(model: PlainModel) -> None:
    values = state_values(model.mdp(), model.policy)
    assert values.shape == (model.horizon + 1, model.states)
    expected = enumeration.state_values(model)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-13)


@given(models)
def test_variance_of_the_return(model: PlainModel) -> None:
    variance = return_variance(model.mdp(), model.policy)
    expected = enumeration.variance_of_return(model)
    assert variance == pytest.approx(expected, rel=1e-9, abs=1e-11)


@given(models, st.integers(0, 1000), st.booleans())
def test_occupancies(model: PlainModel, seed: int, by_step: bool) -> None:
    behavior = random_behavior(model, seed, by_step=by_step)
    found = occupancy(model.mdp(), behavior)
    assert found.shape == (model.horizon, model.states, model.actions)
    expected = enumeration.occupancy(model, behavior)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@given(models, st.integers(0, 1000))
def test_deterministic_policies(model: PlainModel, seed: int) -> None:
    # Rows of states that such a policy cannot reach are left empty.
    rng = np.random.default_rng(seed)
    policy = np.eye(model.actions)[rng.integers(model.actions, size=model.states)]
    reached = enumeration.occupancy(model, policy).sum(axis=(0, 2)) > 0
    policy[~reached] = 0.0
    changed = PlainModel(**{**vars(model), "policy": policy})
    mdp = changed.mdp()
    value = policy_value(mdp, policy)
    assert value == pytest.approx(enumeration.value(changed), rel=1e-12, abs=1e-13)
    assert return_variance(mdp, policy) == pytest.approx(
        enumeration.variance_of_return(changed), rel=1e-9, abs=1e-11
    )


def test_rewards_that_are_a_function_of_where_one_lands() -> None:
    # FrozenLake in miniature: 1 is paid on reaching the goal, which ends the episode; both other
    # ways of not going on (falling in) pay nothing. Only the "ends" column tells them apart.
    transitions = np.array([[[0.5, 0.25]], [[0.0, 0.0]]])
    goal = np.zeros((2, 1, 3))
    goal[0, 0, 2], goal[1, 0, 2] = 0.0, 1.0
    mdp = TabularMDP(transitions, goal, 0.0, [1.0, 0.0], 3)
    # State 1 is entered at step 1 (1/4) or at step 2 (1/8), and pays 1 when played.
    assert policy_value(mdp, [[1.0], [1.0]]) == 0.375
    assert return_variance(mdp, [[1.0], [1.0]]) == pytest.approx(0.375 * 0.625, rel=1e-14)


def test_a_discount_of_zero_leaves_the_first_reward() -> None:
    model = MODELS["general"](11)
    mdp = PlainModel(**{**vars(model), "discount": 0.0}).mdp()
    first = (model.chance * model.mean).sum(axis=2)
    expected = model.initial @ (model.policy * first).sum(axis=1)
    assert policy_value(mdp, model.policy) == pytest.approx(expected, rel=1e-13)
