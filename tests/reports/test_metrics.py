from dataclasses import replace

import msgspec
import numpy as np
import pytest

from revar.errors import InputError
from revar.experiments.results import Series
from revar.reports.metrics import (
    Measurement,
    best_estimators,
    coverage,
    crossing,
    error_ratio,
    final,
    regret,
    relative_error,
)
from tests.reports.made_up import EXACT_VALUES, results, series

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (4.0378, 0.0312, "4.038 ± 0.031"),
        (4.0378, 0.096, "4.038 ± 0.096"),
        (20.1557, 1.23, "20.2 ± 1.2"),
        (1234.5, 67.8, "1234 ± 68"),  # two digits of the error, as everywhere
        (123456.0, 7890.0, "123456 ± 7890"),
        (0.000123, 0.0000045, "0.000123 ± 4.5e-06"),
        (0.00123, 0.000045, "0.00123 ± 4.5e-05"),
        (0.0123, 0.00045, "0.01230 ± 0.00045"),
        (-1.5, 0.25, "-1.50 ± 0.25"),
        (2.0, 0.0, "2"),
        (2.0, NAN, "2"),
        (2.0, INF, "2"),
        (INF, 1.0, "∞"),
        (NAN, NAN, "-"),
    ],
)
def test_numbers_show_as_many_digits_as_their_error_allows(
    value: float, error: float, shown: str
) -> None:
    assert str(Measurement(value, error)) == shown


def test_the_final_error_is_scaled() -> None:
    # Squared errors 1 and 9: mean 5, standard deviation sqrt(32), standard error 4.
    measured = final(series([1.0, -3.0], budget=100))
    assert measured.value == pytest.approx(500.0)
    assert measured.error == pytest.approx(400.0)


def test_ratios_of_errors() -> None:
    one, other = series([1.0, 3.0]), series([1.0, -1.0])
    # Shares of the mean: 0.2 and 1.8 against 1 and 1; differences -0.8 and 0.8.
    ratio = error_ratio(one, other)
    assert ratio.value == pytest.approx(5.0)
    assert ratio.error == pytest.approx(5.0 * 0.8)
    assert error_ratio(other, one).value == pytest.approx(0.2)
    # Runs that draw the same numbers and do the same differ in nothing.
    assert error_ratio(one, one).value == 1.0
    assert error_ratio(one, one).error == 0.0


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_error_of_a_ratio_is_the_spread_of_repetitions(correlation: float) -> None:
    generator = np.random.default_rng(5)
    values, errors = [], []
    for _ in range(800):
        shared = generator.normal(size=(2, 200))
        shared[1] = correlation * shared[0] + np.sqrt(1 - correlation**2) * shared[1]
        ratio = error_ratio(series(2.0 * shared[0]), series(shared[1]))
        values.append(ratio.value)
        errors.append(ratio.error)
    # A standard deviation from 800 values is known to 2.5%; taking the runs as independent
    # where they are not would be off by 40%.
    assert np.mean(errors) == pytest.approx(np.std(values, ddof=1), rel=0.1)
    assert np.mean(values) == pytest.approx(4.0, rel=0.05)


def test_ratios_without_an_error_to_compare() -> None:
    some, none = series([1.0, 3.0]), series([0.0, 0.0])
    assert str(error_ratio(some, none)) == "∞"
    assert str(error_ratio(none, none)) == "-"
    assert str(error_ratio(none, some)) == "-"
    assert str(error_ratio(some, series([NAN, 1.0]))) == "-"


def curve(errors: list[float]) -> Series:
    """Two runs with that error at 10, 20, 30, ... episodes."""
    return series([errors, errors], checkpoints=np.arange(1, len(errors) + 1) * 10)


FLAT = [2.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("falling", "flat", "expected"),
    [
        ([3.0, 3.0, 1.0, 1.0], FLAT, 30),
        ([3.0, 1.0, 3.0, 1.0], FLAT, 40),  # the last crossing
        ([1.0, 1.0, 1.0, 1.0], FLAT, 10),
        ([1.0, 1.0, 1.0, 3.0], FLAT, None),
        ([1.0, 1.0, 1.0, 2.0], FLAT, None),  # equal is not below
        ([NAN, 1.0, 1.0, 1.0], FLAT, 20),
        ([1.0, 1.0, 1.0, 1.0], [NAN, NAN, 2.0, 2.0], 30),
        ([1.0, 1.0, 1.0, NAN], FLAT, None),
    ],
)
def test_crossings(falling: list[float], flat: list[float], expected: int | None) -> None:
    assert crossing(curve(falling), curve(flat)) == expected


def power_law(exponent: float, optimum: float, budgets: tuple[int, ...]) -> list[Series]:
    """Regret 3 K^exponent, and a spread of a tenth of it to either side."""
    return [
        series(
            np.zeros(3),
            budget=budget,
            variances=optimum / budget
            + 3.0 * float(budget) ** exponent * np.array([0.9, 1.0, 1.1]),
        )
        for budget in budgets
    ]


@pytest.mark.parametrize("exponent", [-1.5, -2.0])
@pytest.mark.parametrize(("structure", "optimum"), [("general", 1.0), ("tree", 2.0)])
def test_the_slope_of_a_power_law(exponent: float, structure: str, optimum: float) -> None:
    budgets = (100, 1000, 10_000)
    exact = msgspec.structs.replace(EXACT_VALUES, structure=structure)
    found = regret(
        results(*power_law(exponent, optimum, budgets), exact=(exact,)), "p", "on-policy"
    )
    assert found.budgets.tolist() == [100.0, 1000.0, 10_000.0]
    np.testing.assert_allclose(found.mean, 3.0 * found.budgets**exponent, rtol=1e-6)
    np.testing.assert_allclose(found.error, 0.1 / np.sqrt(3) * found.mean, rtol=1e-6)
    np.testing.assert_allclose(found.line(), found.mean, rtol=1e-6)
    assert found.slope.value == pytest.approx(exponent)
    # Least squares on three points a factor of ten apart: error of a point over log(10) sqrt(2).
    assert found.slope.error == pytest.approx(0.1 / np.sqrt(3) / (np.log(10) * np.sqrt(2)))


def test_budgets_with_an_infinite_error_are_left_out_of_the_slope() -> None:
    parts = power_law(-1.5, 1.0, (10, 100, 1000, 10_000))
    parts[0] = series(np.zeros(3), budget=10, variances=[INF, 1.0, INF])
    found = regret(results(*parts), "p", "on-policy")
    assert found.slope.value == pytest.approx(-1.5)
    assert found.mean[0] == INF


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            power_law(-1.5, 1.0, (10, 100)),
            "a regret slope needs results at three budgets at least",
        ),
        (
            [series(np.zeros(3), budget=k, variances=[INF] * 3) for k in (10, 20, 30)],
            "a regret slope needs three budgets whose regret is finite, positive and not the same "
            "in all runs; 'on-policy' on 'p' has 0",
        ),
        (
            [series(np.zeros(3), budget=k, variances=[0.0, 1e-9, 0.0]) for k in (10, 20, 30)],
            "a regret slope needs three budgets whose regret is finite, positive and not the same "
            "in all runs; 'on-policy' on 'p' has 0",
        ),
    ],
)
def test_no_slope_without_regret(parts: list[Series], message: str) -> None:
    with pytest.raises(InputError) as caught:
        regret(results(*parts), "p", "on-policy")
    assert str(caught.value) == message


def test_the_best_estimator_is_that_of_the_largest_budget() -> None:
    parts = [
        series([1.0, 1.0], budget=10, estimator="early"),
        series([9.0, 9.0], budget=20, estimator="early"),
        series([5.0, 5.0], budget=10, estimator="late"),
        series([2.0, 2.0], budget=20, estimator="late"),
        series([NAN, NAN], budget=20, estimator="never"),
    ]
    assert [part.label()[2:] for part in best_estimators(parts)] == [("late", 10), ("late", 20)]
    assert best_estimators([]) == []


def test_coverage_counts_intervals_that_hold_the_truth() -> None:
    # 1.96 standard errors at 95%, 1.28 at 80%.
    parts = series([0.0, 1.0, 1.9, -1.9, 2.1], standard_errors=1.0)
    assert coverage(parts, 0.95).value == pytest.approx(0.8)
    assert coverage(parts, 0.95).error == pytest.approx(np.sqrt(0.8 * 0.2 / 5))
    assert coverage(parts, 0.8).value == pytest.approx(0.4)
    assert coverage(series([0.0, 0.0]), 0.95) == Measurement(1.0, 0.0)


def test_relative_errors_are_shares_of_the_value() -> None:
    # Around -4 the errors are 1 and 2: squared 1 and 4, mean 2.5 with standard error 1.5.
    found = relative_error(replace(series([-3.0, -2.0]), true_value=-4.0))
    assert found.value == pytest.approx(np.sqrt(2.5) / 4)
    assert found.error == pytest.approx(1.5 / (2 * np.sqrt(2.5)) / 4)
    assert relative_error(replace(series([3.0, 3.0]), true_value=3.0)) == Measurement(0.0, 0.0)
    with pytest.raises(InputError, match="the value of 'p' is 0; no error is a share of it"):
        relative_error(series([1.0, 1.0]))
