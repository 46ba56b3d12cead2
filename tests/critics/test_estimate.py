"""Corrected returns: when they are returns, what is reported of them, and what may be given."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.linear_quadratic import LinearQuadratic

from revar.critics.estimate import (
    LEAST_EPISODES,
    default_families,
    estimate_returns,
    joint_fold_covariance,
)
from revar.critics.interface import Experience
from revar.critics.linear import LinearFamily
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.law import Law

FAMILY = LinearFamily((1.0,))
PROBLEM = LinearQuadratic(2, normal=True, horizon=6)


def _played(episodes: int = 40, resets: int = 400, seed: int = 0) -> Experience:
    return PROBLEM.play(episodes, resets, np.random.default_rng(seed))


class Rough:
    """Values that rise and fall as the true ones do."""

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        return np.asarray(-np.sum(inputs**2, axis=1) * (1.0 - elapsed))


class Constant:
    def __init__(self, number: float, width: int = 0) -> None:
        self.number, self.width = number, width

    def values(self, inputs: FloatArray, elapsed: FloatArray) -> FloatArray:
        del elapsed
        return np.full((inputs.shape[0], *([1] * self.width)), self.number)


def test_few_episodes_keep_their_returns() -> None:
    found = estimate_returns(_played(LEAST_EPISODES - 1), [FAMILY], [Rough()])
    assert np.array_equal(found.corrected, found.returns)
    assert found.standard_error == found.mean_return_error
    assert found.weights == {}
    assert np.isnan(estimate_returns(_played(1), [FAMILY]).standard_error)


def test_it_is_the_same_for_the_same_seed() -> None:
    first, again, other = (estimate_returns(_played(), [FAMILY], seed=s) for s in (1, 1, 2))
    assert np.array_equal(first.corrected, again.corrected)
    assert not np.array_equal(first.corrected, other.corrected)


def test_a_law_without_parts_has_the_start_state_alone() -> None:
    played = _played()
    unknown = replace(played, law=Law(), scores=np.zeros((240, 0)), noise=np.zeros((240, 0)))
    found = estimate_returns(unknown, [FAMILY], [Rough()])
    assert found.actions_share == 0.0
    assert found.start_share > 0.3
    assert found.standard_error < 0.9 * found.mean_return_error


def test_without_resets_there_is_no_start_state_term() -> None:
    found = estimate_returns(_played(resets=0), [FAMILY])
    assert found.start_share == 0.0
    assert found.reset_variance == 0.0
    assert set(found.start_weights.values()) == {0.0}
    assert max(found.weights.values()) > 0.0


def test_the_finite_number_of_resets_counts() -> None:
    few, many = (estimate_returns(_played(resets=r), [FAMILY]) for r in (20, 4000))
    assert few.reset_variance > many.reset_variance > 0.0
    assert max(few.start_weights.values()) < max(many.start_weights.values())


def test_shares_and_the_rest_make_up_the_variance() -> None:
    found = estimate_returns(_played(), [FAMILY])
    shares = found.actions_share + found.start_share + found.unexplained_share
    assert shares == pytest.approx(1.0)
    left = found.unexplained_share + found.learning_share
    assert left == pytest.approx((found.standard_error / found.mean_return_error) ** 2)


def test_what_folds_teach_each_other_cancels_in_a_difference_of_equals() -> None:
    changes = np.random.default_rng(0).standard_normal((4, 4))
    first = changes + changes.T
    joint = joint_fold_covariance([first, first, -2.0 * first])
    assert joint == pytest.approx(np.sum(first**2) * np.outer([1, 1, -2], [1, 1, -2]))
    # Where folds seem to correct each other the other way round, nothing is taken off.
    turned = changes - changes.T
    assert joint_fold_covariance([turned]) == 0.0
    assert np.linalg.eigvalsh(joint_fold_covariance([first, turned])).min() > -1e-12


def test_changes_are_what_other_worlds_say_less() -> None:
    found = estimate_returns(_played(), [FAMILY])
    explained = found.by_actions + found.by_start
    for fold, other in ((0, 1), (3, 2)):
        rows = found.folds == fold
        change = (explained[fold] - explained[other])[rows].sum() / rows.size
        assert found.fold_changes[fold, other] == pytest.approx(change)
    assert found.corrected == pytest.approx(found.returns - np.choose(found.folds, explained))


def test_rewards_of_any_size() -> None:
    played = _played(16)
    plain = estimate_returns(played, [FAMILY])
    for unit in (2.0**200, 2.0**-200):
        scaled = estimate_returns(replace(played, rewards=played.rewards * unit), [FAMILY])
        assert scaled.value / unit == plain.value
        assert scaled.standard_error / unit == pytest.approx(plain.standard_error, rel=1e-12)
    none = estimate_returns(replace(played, rewards=np.zeros(96)), [FAMILY])
    assert none.value == none.standard_error == none.actions_share == 0.0


def test_a_useless_critic_is_not_believed() -> None:
    played = _played()
    ratios = []
    for seed in range(10):
        noise = replace(played, rewards=np.random.default_rng(seed).standard_normal(240))
        found = estimate_returns(noise, [FAMILY])
        ratios.append((found.standard_error / found.mean_return_error) ** 2)
    assert np.median(ratios) < 1.02
    assert max(ratios) < 1.15


def test_values_alone_help_with_actions_too() -> None:
    played = LinearQuadratic(1, normal=False).play(100, 1000, np.random.default_rng(0))
    found = estimate_returns(played, [], [Rough()])
    assert found.actions_share > 0.1
    assert found.start_share > 0.1


def test_what_is_given_must_be_numbers_of_the_right_shape() -> None:
    with pytest.raises(InputError, match=r"critic 'given 0' gave an array of shape \(240, 1\)"):
        estimate_returns(_played(), [], [Constant(1.0, width=1)])
    with pytest.raises(InputError, match="critic 'given 0' gave nan"):
        estimate_returns(_played(), [], [Constant(float("nan"))])


def test_families_by_name() -> None:
    assert [each.name for each in default_families(["linear"])] == ["linear"]
    with pytest.raises(InputError, match="there are no critics 'forest'; there are linear"):
        default_families(["forest"])
