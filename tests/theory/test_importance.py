"""Variances of importance-sampling estimates against a listing of all trajectories."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revar import (
    doubly_robust_variance,
    importance_sampling_gradient,
    importance_sampling_variance,
    per_decision_variance,
    return_variance,
)
from revar.errors import InputError
from tests import enumeration
from tests.plain_model import MODELS, Floats, PlainModel

VARIANCES: dict[str, Callable[..., float]] = {
    "ordinary": importance_sampling_variance,
    "per-decision": per_decision_variance,
    "doubly-robust": doubly_robust_variance,
}
models = st.builds(
    lambda kind, seed, by_outcome: MODELS[kind](seed, by_outcome=by_outcome),
    st.sampled_from(sorted(MODELS)),
    st.integers(0, 10_000),
    st.booleans(),
)


def some_behavior(model: PlainModel, seed: int, *, by_step: bool) -> Floats:
    """Every action is taken, some much more often than by the target policy."""
    rng = np.random.default_rng(seed)
    shape = (model.horizon, model.states) if by_step else (model.states,)
    drawn = rng.dirichlet(np.ones(model.actions), size=shape)
    return np.asarray(0.7 * drawn + 0.3 / model.actions)


@pytest.mark.parametrize("estimator", VARIANCES)
@settings(max_examples=25)
@given(models, st.integers(0, 1000), st.booleans())
def test_variances(estimator: str, model: PlainModel, seed: int, by_step: bool) -> None:
    behavior = some_behavior(model, seed, by_step=by_step)
    mean, variance = enumeration.estimate_moments(model, behavior, estimator)
    assert mean == pytest.approx(enumeration.value(model), rel=1e-9, abs=1e-11)  # unbiased
    found = VARIANCES[estimator](model.mdp(), model.policy, behavior)
    assert found == pytest.approx(variance, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("estimator", ["ordinary", "per-decision"])
@settings(max_examples=25)
@given(models)
def test_on_policy_it_is_the_variance_of_the_return(estimator: str, model: PlainModel) -> None:
    found = VARIANCES[estimator](model.mdp(), model.policy, model.policy)
    expected = return_variance(model.mdp(), model.policy)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-10)


@settings(max_examples=15)
@given(models, st.integers(0, 1000), st.booleans())
def test_the_gradient_is_that_of_the_listed_trajectories(
    model: PlainModel, seed: int, by_step: bool
) -> None:
    """Against central differences along random directions that keep rows at 1."""
    behavior = some_behavior(model, seed, by_step=by_step)
    gradient = importance_sampling_gradient(model.mdp(), model.policy, behavior)
    assert gradient.shape == behavior.shape
    rng = np.random.default_rng(seed)
    for _ in range(3):
        direction = rng.normal(size=behavior.shape)
        direction -= direction.mean(axis=-1, keepdims=True)
        step = 1e-5 / max(1.0, float(np.abs(direction).max()))
        above, below = (
            enumeration.estimate_moments(model, behavior + sign * step * direction, "ordinary")[1]
            for sign in (1.0, -1.0)
        )
        slope = (above - below) / (2 * step)
        scale = float(np.abs(gradient * direction).sum()) + 1.0
        assert float((gradient * direction).sum()) == pytest.approx(slope, abs=1e-5 * scale)


@pytest.mark.parametrize("variance", VARIANCES.values())
def test_a_behavior_that_leaves_an_action_out_is_refused(variance: Callable[..., float]) -> None:
    model = MODELS["layered"](3)
    behavior = np.repeat(model.policy[None], model.horizon, axis=0)
    behavior[2, 3] = np.eye(model.actions)[0]
    with pytest.raises(InputError, match="never takes action 1 in state 3 at step 2"):
        variance(model.mdp(), model.policy, behavior)
    # Where the target policy cannot be, it may do as it likes.
    behavior[2, 3], behavior[0, 3] = model.policy[3], behavior[2, 3]
    assert np.isfinite(variance(model.mdp(), model.policy, behavior))
