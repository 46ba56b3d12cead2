"""Charts of measured errors: curves over episodes, regret, coverage, and all strategies in rows."""

import csv
from importlib.resources import files
from statistics import NormalDist

import numpy as np

from revar.charts.chart import Chart, Line, Panel, Style
from revar.experiments.exact import ExactValues
from revar.experiments.results import Results, Series
from revar.model.arrays import FloatArray
from revar.reports.figures import EXACT, exact_style, figures, strategy_styles
from revar.reports.metrics import best_estimators, coverage, merge_budgets, regret

EPISODES = "episodes K"
PAPER_VALUES = "paper_figure_values.csv"
CAPTION = (
    "Mean squared error against the number of episodes, with bands of one standard error. "
    "Thin dotted lines: closed forms for large K."
)
LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99])  # of intervals


@figures.register("mse-curves")
def mse_curves(results: Results) -> Chart:
    """Mean squared error, both axes logarithmic, with what theory says."""
    return Chart(
        "mse-curves",
        CAPTION,
        _error_panels(results, scaled=False),
    )


@figures.register("mse-curves-beside-paper")
def mse_curves_beside_paper(results: Results) -> Chart:
    """The same, next to the points read off the paper's figure."""
    return Chart(
        "mse-curves-beside-paper",
        CAPTION + " Right: points read off the paper's figure. Its levels do not follow from "
        "the variances that it states; orders and crossings are what compares.",
        (*_error_panels(results, scaled=False), _paper_panel(results)),
    )


@figures.register("scaled-curves")
def scaled_curves(results: Results) -> Chart:
    """K*MSE: flat once a strategy has settled, so that levels compare at a glance."""
    return Chart(
        "scaled-curves",
        "K·MSE, the mean squared error times the number of episodes, with bands of one standard "
        "error. Thin dotted lines: closed forms for large K.",
        _error_panels(results, scaled=True),
    )


def _error_panels(results: Results, *, scaled: bool) -> tuple[Panel, ...]:
    return tuple(_error_panel(results, problem, scaled=scaled) for problem in results.problems())


def _error_panel(results: Results, problem: str, *, scaled: bool) -> Panel:
    styles = strategy_styles(results.experiment.strategy_choices())
    lines = []
    for strategy in results.strategies():
        parts = best_estimators(results.of(problem, strategy))
        if parts:
            lines.append(_curve(merge_budgets(parts), styles[strategy], scaled=scaled))
    reach = np.concatenate([line.x for line in lines])
    if reach.size:  # where the error is 0 throughout there is nothing to draw
        lines += _exact_lines(results.exact(problem), reach, scaled=scaled)
    return Panel(problem, tuple(lines), EPISODES, "K·MSE" if scaled else "MSE")


def _curve(series: Series, style: Style, *, scaled: bool) -> Line:
    """The series' error against the number of episodes, from the first estimate of every run."""
    seen = np.isfinite(series.mse) & (series.mse > 0)
    y, error = (
        (series.scaled, series.scaled_standard_error)
        if scaled
        else (series.mse, series.mse_standard_error)
    )
    return Line(
        series.strategy, series.checkpoints[seen].astype(float), y[seen], style, error=error[seen]
    )


def _exact_lines(values: ExactValues, reach: FloatArray, *, scaled: bool) -> list[Line]:
    ends = np.array([reach.min(), reach.max()], dtype=float)
    if not scaled:
        ends[0] = max(ends[0], ends[1] / 100.0)  # closed forms hold for large K
    exact = values.scaled_errors()
    if values.structure in ("tree", "bandit"):
        exact.pop("limit", None)  # there the oracle is the limit
    return [
        Line(
            f"{name}, theory",
            ends,
            np.full_like(ends, constant) if scaled else constant / ends,
            exact_style(name),
            "exact",
        )
        for name, constant in exact.items()
        if constant > 0
    ]


def _paper_panel(results: Results) -> Panel:
    text = files("revar.reports").joinpath(PAPER_VALUES).read_text(encoding="utf-8")
    points: dict[str, list[tuple[float, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        if row["figure"] == results.experiment.name:
            points.setdefault(row["series"], []).append((float(row["episodes"]), float(row["mse"])))
    choices = results.experiment.strategy_choices()
    look = strategy_styles(choices)
    styles = {c.id: look[c.name] for c in choices}
    lines = tuple(
        Line(name, np.array(places)[:, 0], np.array(places)[:, 1], styles[name], "digitised")
        for name, places in points.items()
        if name in styles
    )
    return Panel("the paper's figure, read off", lines, EPISODES, "MSE as printed")


@figures.register("regret-slope")
def regret_slope(results: Results) -> Chart:
    """Regret of each strategy on logarithmic axes, and a line through it."""
    panels = []
    styles = strategy_styles(results.experiment.strategy_choices())
    for problem in results.problems():
        lines = []
        for strategy in results.strategies():
            found = regret(results, problem, strategy)
            style = styles[strategy]
            label = f"{strategy}: {found.slope.value:.2f}"
            lines.append(Line(label, found.budgets, found.mean, style, error=found.error))
            thin = Style(style.color, "dot", "")
            lines.append(Line("", found.budgets, found.line(), thin, "fit"))
        lines.append(_guide(lines[0]))
        panels.append(Panel(problem, tuple(lines), EPISODES, "regret: error beyond the optimum"))
    return Chart(
        "regret-slope",
        "Regret, the sum of cost / visits less its smallest possible value, with bands of one "
        "standard error and the slopes of fitted (dotted) lines. The guide has the slope of the "
        "paper's bound, -3/2.",
        tuple(panels),
    )


def _guide(first: Line) -> Line:
    height = 3.0 * np.nanmax(first.y)
    return Line("slope -3/2", first.x, height * (first.x / first.x[0]) ** -1.5, EXACT, "exact")


@figures.register("coverage")
def coverage_chart(results: Results) -> Chart:
    """Coverage less the nominal level, at the largest budget; one panel for each problem."""
    styles = strategy_styles(results.experiment.strategy_choices())
    budget = max(results.experiment.budgets())
    panels = []
    for problem in results.problems():
        lines = []
        for series in results.of(problem, budget=budget):
            found = [coverage(series, level) for level in LEVELS]
            shares = np.array([each.value for each in found])
            lines.append(
                Line(
                    series.strategy,
                    100 * LEVELS,
                    100 * (shares - LEVELS),
                    styles[series.strategy],
                    error=np.array([100 * each.error for each in found]),
                )
            )
        noise = _noise(results.experiment.runs)
        lines.append(Line("", 100 * LEVELS, 100 * noise, EXACT, "exact"))
        lines.append(Line("", 100 * LEVELS, -100 * noise, EXACT, "exact"))
        panels.append(
            Panel(
                problem,
                tuple(lines),
                "nominal coverage, %",
                "measured - nominal, % points",
                "linear",
                "linear",
            )
        )
    return Chart(
        "coverage",
        f"Measured less nominal coverage of the intervals after {budget:,} episodes, with bands of "
        "one standard error. Dotted: where 95% of perfect intervals' results would lie.",
        tuple(panels),
    )


def _noise(runs: int) -> FloatArray:
    """Two-sided 95% range of the measured coverage of a perfect interval."""
    return np.asarray(NormalDist().inv_cdf(0.975) * np.sqrt(LEVELS * (1 - LEVELS) / runs))


@figures.register("peers")
def peers(results: Results) -> Chart:
    """K*MSE / limit: rows are problems, marks are strategies, panels are budgets."""
    return Chart(
        "peers",
        "K·MSE divided by its smallest possible value for large K, with one standard error to "
        "either side, each strategy with its best valid estimator. Further left is better.",
        tuple(_peers_panel(results, budget) for budget in results.experiment.budgets()),
    )


def _peers_panel(results: Results, budget: int) -> Panel:
    styles = strategy_styles(results.experiment.strategy_choices())
    problems, strategies = results.problems(), results.strategies()
    lines = []
    for rank, strategy in enumerate(strategies):
        x, error, y = [], [], []
        for row, problem in enumerate(problems):
            limit = results.exact(problem).limit or np.nan
            for series in best_estimators(results.of(problem, strategy, budget)):
                x.append(series.scaled[-1] / limit)
                error.append(series.scaled_standard_error[-1] / limit)
                # Marks of one problem stand a little apart.
                y.append(row + 0.7 * ((rank + 0.5) / len(strategies) - 0.5))
        if x:
            lines.append(
                Line(strategy, np.array(x), np.array(y), styles[strategy], error=np.array(error))
            )
    return Panel(
        f"{budget:,} episodes",
        tuple(lines),
        "K·MSE / limit",
        "",
        "log",
        "linear",
        tuple(problems),
    )
