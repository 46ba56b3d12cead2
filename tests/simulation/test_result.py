import numpy as np
import pytest

from revar.errors import InputError
from revar.simulation.result import SimulationResult


def result(estimates: object, standard_errors: object) -> SimulationResult:
    values = np.asarray(estimates, dtype=np.float64)
    return SimulationResult(
        true_value=2.0,
        strategy="on-policy",
        estimator="certainty-equivalence",
        checkpoints=np.arange(1, values.shape[1] + 1),
        estimates=values,
        standard_errors=np.asarray(standard_errors, dtype=np.float64),
        unvisited_probability=np.zeros(values.shape),
        visits=np.zeros((len(values), 1, 1), dtype=np.int64),
        episodes=np.full(len(values), values.shape[1]),
        spent=np.full(len(values), float(values.shape[1])),
        unit="episodes",
        values=values[:, :, None],
        covariances=np.asarray(standard_errors, dtype=np.float64)[:, :, None, None] ** 2,
        complete=True,
    )


def test_errors_and_coverage_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    estimates = 2.0 + rng.normal(size=(500, 3)) * [1.0, 0.5, 0.1]
    spread = rng.uniform(0.05, 1.5, size=(500, 3))
    found = result(estimates, spread)
    squares = (estimates - 2.0) ** 2
    assert found.runs == 500
    np.testing.assert_allclose(found.mse, squares.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(
        found.mse_standard_error, squares.std(axis=0, ddof=1) / np.sqrt(500), rtol=1e-13
    )
    # Quantiles of the standard normal distribution.
    for confidence, quantile in [(0.5, 0.6744897501960817), (0.95, 1.959963984540054)]:
        inside = np.abs(estimates - 2.0) <= quantile * spread
        assert found.coverage(confidence).tolist() == inside.mean(axis=0).tolist()
    assert found.coverage().tolist() == found.coverage(0.95).tolist()


def test_coverage_counts_by_hand() -> None:
    found = result([[2.0, 3.0], [2.5, 2.1], [1.0, 2.0], [2.0, 9.0]], np.full((4, 2), 0.3))
    # Within 0.588 of the truth: 2.0, 2.5 and 2.0; 2.1 and 2.0.
    assert found.coverage(0.95).tolist() == [0.75, 0.5]
    assert found.mse.tolist() == pytest.approx([1.25 / 4, 50.01 / 4])


def test_one_run_has_no_standard_error() -> None:
    found = result([[1.0, 3.0]], [[1.0, 1.0]])
    assert found.mse.tolist() == [1.0, 1.0]
    assert found.mse_standard_error.tolist() == [np.inf, np.inf]


def test_an_infinite_standard_error_covers_and_a_missing_estimate_has_no_coverage() -> None:
    found = result([[50.0, np.nan], [50.0, np.nan]], [[np.inf, np.nan], [1.0, np.nan]])
    np.testing.assert_array_equal(found.coverage(), [0.5, np.nan])
    np.testing.assert_array_equal(found.mse, [48.0**2, np.nan])


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95.0, float("nan")])
def test_impossible_confidences_are_refused(confidence: float) -> None:
    with pytest.raises(InputError, match=f"confidence is {confidence}; it must lie between 0"):
        result([[1.0]], [[1.0]]).coverage(confidence)
