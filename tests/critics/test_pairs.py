"""Differences of policies whose episodes start alike: never clearly wider than without critics."""

import numpy as np
import pytest
from scipy import stats

from revar.critics.estimate import CorrectedReturns
from revar.critics.interface import FOLDS, folds_of
from revar.critics.pairs import correct_pairs, joint_covariance

PAIRS, RUNS = 40, 120


def made_up(start: float, actions: float, seed: int, other: float = 3.0) -> list[CorrectedReturns]:
    """Two policies whose returns share a start, of which the second makes less if `other` is less.

    Corrections know start and actions, with errors of this size.
    """
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal(PAIRS)
    found = []
    for value, slope in ((0.0, 3.0), (0.5, other)):
        luck, noise = rng.standard_normal((2, PAIRS))
        found.append(
            CorrectedReturns(
                returns=value + slope * shared + luck + 0.5 * noise,
                by_actions=np.tile(luck + actions * rng.standard_normal(PAIRS), (FOLDS, 1)),
                by_start=np.tile(slope * shared + start * rng.standard_normal(PAIRS), (FOLDS, 1)),
                reset_values=np.zeros((FOLDS, 0)),
                weights={},
                start_weights={},
            )
        )
    return found


def difference(found: list[CorrectedReturns]) -> tuple[float, float]:
    """The second less the first, and the standard error of that."""
    covariance = joint_covariance(found)
    return found[1].value - found[0].value, float(
        np.sqrt(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
    )


def measure(start: float, actions: float, other: float = 3.0) -> tuple[float, float, float]:
    """Mean squares of errors, with weights and in full over those without; z of the bias."""
    errors = []
    for seed in range(RUNS):
        found = made_up(start, actions, seed, other)
        plain = found[1].returns.mean() - found[0].returns.mean()
        full = found[1].value - found[0].value
        weighed = difference(correct_pairs(found))[0]
        errors.append([weighed - 0.5, full - 0.5, plain - 0.5])
    table = np.array(errors)
    squares = (table**2).mean(axis=0)
    bias = table[:, 0].mean() / (table[:, 0].std() / np.sqrt(RUNS))
    return float(squares[0] / squares[2]), float(squares[1] / squares[2]), float(bias)


def test_what_is_said_of_the_start_is_not_believed_where_it_widens_a_difference() -> None:
    weighed, full, bias = measure(start=3.0, actions=0.3)
    assert full > 2.0  # it says more of noise than of what differs
    alone = measure(start=0.0, actions=0.3)[1]
    assert weighed < 1.15 * alone < 0.6 and abs(bias) < 3.0


def test_and_kept_where_it_narrows_it() -> None:
    weighed, full, bias = measure(start=0.3, actions=0.3, other=1.0)
    assert full < 0.2
    assert weighed < 1.3 * full and abs(bias) < 3.0


def test_the_mean_of_values_stays_and_intervals_hold() -> None:
    reach = stats.t.ppf(0.975, PAIRS - 1)
    held = 0
    for seed in range(RUNS):
        found = made_up(1.0, 0.5, seed)
        pairs = correct_pairs(found)
        assert np.mean([each.value for each in pairs]) == pytest.approx(
            np.mean([each.value for each in found])
        )
        value, error = difference(pairs)
        held += abs(value - 0.5) <= reach * error
    # 95% hold: fewer have a chance of 0.1%.
    assert held >= stats.binom.ppf(1e-3, RUNS, 0.95)


def test_weights_on_a_fold_do_not_know_it() -> None:
    found = made_up(0.3, 0.5, 0, other=1.0)
    fold = folds_of(PAIRS) == 2
    changed = [
        CorrectedReturns(
            np.where(fold, 7.0 * each.returns**2, each.returns),
            each.by_actions, each.by_start, each.reset_values, {}, {},
        )
        for each in found
    ]  # fmt: skip
    for before, after in zip(correct_pairs(found), correct_pairs(changed), strict=True):
        np.testing.assert_array_equal(before.by_start[2, fold], after.by_start[2, fold])
        assert not np.allclose(before.by_start[1], after.by_start[1])
