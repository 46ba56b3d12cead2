"""Errors, ratios, regret and coverage, computed from results for tables, sentences and figures."""

from dataclasses import dataclass

import numpy as np

from revar.errors import InputError
from revar.experiments.results import Results, Series
from revar.model.arrays import FloatArray


@dataclass(frozen=True)
class Measurement:
    """A number with its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "-"
        if np.isinf(self.value):
            return "∞"
        if not np.isfinite(self.error) or self.error <= 0:
            return f"{self.value:.4g}"
        digits = max(0, 1 - int(np.floor(np.log10(self.error))))
        if digits <= 5:
            return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"
        return f"{self.value:.3g} ± {self.error:.2g}"


def best_estimators(parts: list[Series]) -> list[Series]:
    """Keep the series of the best estimator, given those of one problem and strategy.

    The error at the largest budget decides, so that a curve does not mix estimators.
    """
    if not parts:
        return []
    largest = max(part.budget for part in parts)
    best = min(
        (part for part in parts if part.budget == largest),
        key=lambda part: np.nan_to_num(part.mse[-1], nan=np.inf),
    )
    return [part for part in parts if part.estimator == best.estimator]


def merge_budgets(parts: list[Series]) -> Series:
    """Series of several budgets, each read at its end, as one with the budgets as checkpoints."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return Series(
        true_value=first.true_value,
        problem=first.problem,
        strategy=first.strategy,
        estimator=first.estimator,
        budget=parts[-1].budget,
        checkpoints=np.array([part.budget for part in parts]),
        estimates=np.column_stack([part.estimates[:, -1] for part in parts]),
        standard_errors=np.column_stack([part.standard_errors[:, -1] for part in parts]),
        unvisited_probability=np.column_stack(
            [part.unvisited_probability[:, -1] for part in parts]
        ),
        variances=parts[-1].variances,
        visits=parts[-1].visits,
    )


def difference_problems(results: Results) -> list[str]:
    """The problems that ask for a difference of policies."""
    found = [problem for problem in results.problems() if results.exact(problem).alone]
    if not found:
        raise InputError(f"experiment {results.experiment.name!r} asks for no difference")
    return found


def final(series: Series) -> Measurement:
    """K*MSE at the end."""
    return Measurement(float(series.scaled[-1]), float(series.scaled_standard_error[-1]))


def error_ratio(series: Series, other: Series) -> Measurement:
    """The ratio of two mean squared errors at the end.

    Run i of both draws from the same stream, so that the two errors are correlated. The standard
    error is therefore computed from differences run by run (of the logarithm, to first order).
    """
    if not (series.mse[-1] > 0 and other.mse[-1] > 0):
        return Measurement(float("inf") if series.mse[-1] > other.mse[-1] else float("nan"), 0.0)
    ratio = float(series.mse[-1] / other.mse[-1])
    shares = [
        (each.estimates[:, -1] - each.true_value) ** 2 / each.mse[-1] for each in (series, other)
    ]
    relative = np.std(shares[0] - shares[1], ddof=1) / np.sqrt(series.runs)
    return Measurement(ratio, float(ratio * relative))


def crossing(falling: Series, flat: Series) -> int | None:
    """The checkpoint from which `falling` stays below `flat`; None if there is none."""
    above = falling.mse >= flat.mse
    unknown = ~np.isfinite(falling.mse) | ~np.isfinite(flat.mse)
    last = np.flatnonzero(above | unknown)
    if last.size == 0:
        return int(falling.checkpoints[0])
    if last[-1] + 1 == falling.checkpoints.size:
        return None
    return int(falling.checkpoints[last[-1] + 1])


@dataclass(frozen=True, eq=False)
class Regret:
    """Error beyond the optimum against the budget, and the slope of a line through it."""

    budgets: FloatArray  # [budget]
    mean: FloatArray  # [budget]
    error: FloatArray  # [budget] its standard error
    slope: Measurement
    intercept: float

    def line(self) -> FloatArray:
        """The fitted line at the budgets."""
        return np.asarray(np.exp(self.intercept + self.slope.value * np.log(self.budgets)))


def regret(results: Results, problem: str, strategy: str) -> Regret:
    """Sum of cost / visits less the smallest possible, over budgets.

    Computed from visits, not from estimates: without the noise of the rewards, few runs suffice to
    measure a regret that is a small part of the error.
    """
    parts = sorted(results.of(problem, strategy), key=lambda part: part.budget)
    if len(parts) < 3:
        raise InputError("a regret slope needs results at three budgets at least")
    exact = results.exact(problem)
    oracle = exact.oracle if exact.structure in ("tree", "bandit") else None
    optimum = exact.limit if oracle is None else oracle
    budgets = np.array([part.budget for part in parts], dtype=float)
    excess = [part.variances - optimum / part.budget for part in parts]
    mean = np.array([each.mean() for each in excess])
    # Where a pair was never visited the error is infinite.
    error = np.array(
        [
            each.std(ddof=1) / np.sqrt(each.size) if np.isfinite(each).all() else np.inf
            for each in excess
        ]
    )
    usable = np.isfinite(mean) & (mean > 0) & (error > 0)
    if usable.sum() < 3:
        raise InputError(
            f"a regret slope needs three budgets whose regret is finite, positive and not the "
            f"same in all runs; {strategy!r} on {problem!r} has {usable.sum()}"
        )
    weights = mean[usable] / error[usable]  # of log regret: one over its standard error
    coefficients, covariance = np.polyfit(
        np.log(budgets[usable]), np.log(mean[usable]), 1, w=weights, cov="unscaled"
    )
    return Regret(
        budgets,
        mean,
        error,
        Measurement(float(coefficients[0]), float(np.sqrt(covariance[0, 0]))),
        float(coefficients[1]),
    )


def coverage(series: Series, confidence: float) -> Measurement:
    """The share of intervals at the end that hold the true value."""
    share = float(series.coverage(confidence)[-1])
    return Measurement(share, float(np.sqrt(max(share * (1.0 - share), 0.0) / series.runs)))


def relative_error(series: Series) -> Measurement:
    """The root mean squared error at the end as a share of the true value."""
    value = abs(float(series.true_value))
    if value == 0.0:
        raise InputError(f"the value of {series.problem!r} is 0; no error is a share of it")
    root = float(np.sqrt(series.mse[-1]))
    error = float(series.mse_standard_error[-1]) / (2.0 * root) if root > 0.0 else 0.0
    return Measurement(root / value, error / value)
