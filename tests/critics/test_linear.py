"""Linear critics: what they find, and that they can be kept."""

import io
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.linear_quadratic import LinearQuadratic

from revar.critics.estimate import estimate_returns
from revar.critics.features import MOST_INPUTS, Scaling
from revar.critics.learning import MOST_PRODUCTS, multiply
from revar.critics.linear import LinearFamily
from revar.critics.linear_critic import LinearCritic
from revar.critics.nodes import action_design, law_nodes
from revar.critics.sums import episode_sums, sums_to_go
from revar.model.law import Categorical, Law, Normal

FAMILY = LinearFamily((1.0,))


@pytest.mark.parametrize("normal", [True, False])
def test_a_critic_of_other_episodes_explains_most(normal: bool) -> None:
    problem = LinearQuadratic(1, normal=normal, horizon=6, noise=0.0)
    critic = FAMILY.fit(problem.play(100, 0, np.random.default_rng(0)), seed=0)
    played = problem.play(40, 4000, np.random.default_rng(1))
    found = estimate_returns(played, [], [critic])
    assert found.standard_error < 0.25 * found.mean_return_error


def test_a_critic_is_kept_without_a_pickle() -> None:
    problem = LinearQuadratic(2, normal=True, horizon=6)
    played = problem.play(24, 0, np.random.default_rng(0))
    critic = FAMILY.fit(played, seed=0)
    file = io.BytesIO()
    np.savez(file, **critic.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        again = LinearCritic.from_arrays(dict(archive))
    inputs, elapsed = played.inputs, played.elapsed
    assert np.array_equal(critic.values(inputs, elapsed), again.values(inputs, elapsed))
    assert np.array_equal(critic.coefficients(inputs, elapsed), again.coefficients(inputs, elapsed))
    assert critic.coefficients(inputs, elapsed).shape == (144, 2)


def test_nodes_read_off_the_scores_of_a_function() -> None:
    law = Law((Categorical(3), Normal(2)))
    rng = np.random.default_rng(0)
    actions = np.column_stack([rng.integers(0, 3, 50), rng.standard_normal((50, 2))])
    chances = rng.dirichlet(np.ones(3), 50)
    noise = np.column_stack([chances, actions[:, 1:]])
    design = action_design(law, actions, noise)
    nodes = law_nodes(law)
    weights = rng.standard_normal(design.shape[1:])
    coefficients = np.asarray(nodes.design @ weights) @ nodes.projection
    effect = design @ weights
    # Normal numbers have mean zero in the design.
    mean = chances @ (np.eye(3)[:, :2] - 1 / 3) @ weights[:2]
    assert law.scores(actions, noise) @ coefficients == pytest.approx(effect - mean)


def test_many_inputs_are_projected() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((40, MOST_INPUTS + 1)) * 5.0 + 3.0
    scaled = Scaling.fit(inputs, rng)(inputs)
    assert scaled.shape[1] < MOST_INPUTS
    assert scaled.std(axis=0) == pytest.approx(1.0, abs=0.01)
    constant = Scaling.fit(np.full((40, 2), 7.1), rng)(np.full((40, 2), 7.1))
    assert not constant.any()


def test_images_and_many_actions_are_bounded() -> None:
    rng = np.random.default_rng(0)
    problem = LinearQuadratic(1, normal=True, horizon=4)
    played = problem.play(16, 0, rng)
    law = Law((Normal(8),))
    noise = rng.standard_normal((64, 8))
    wide = replace(
        played,
        inputs=rng.integers(0, 255, (64, 300)).astype(float),
        resets=rng.integers(0, 255, (10, 300)).astype(float),
        law=law,
        noise=noise,
        actions=noise,
        scores=law.scores(noise, noise),
    )
    found = estimate_returns(wide, [FAMILY])
    assert np.isfinite(found.standard_error)
    assert multiply(np.ones((2, 300), np.float32), wide.scores[:2]).shape[1] <= MOST_PRODUCTS


def test_sums_over_episodes_of_different_length() -> None:
    problem = LinearQuadratic(1, normal=True, horizon=6)
    played = replace(problem.play(1, 0, np.random.default_rng(0)), start=np.array([0, 1, 4, 6]))
    terms = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    g = problem.discount
    to_go = [1.0, 2 + 3 * g + 4 * g**2, 3 + 4 * g, 4.0, 5 + 6 * g, 6.0]
    assert sums_to_go(played, terms) == pytest.approx(to_go)
    assert episode_sums(played, terms) == pytest.approx([to_go[0], to_go[1], to_go[4]])
