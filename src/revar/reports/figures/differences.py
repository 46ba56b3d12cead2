"""The error of a difference of two policies, by how the episodes are collected."""

from dataclasses import replace

import numpy as np

from revar.charts.chart import Chart, Line, Panel, Style
from revar.experiments.results import Results, Series
from revar.reports.figures import figures, strategy_styles
from revar.reports.figures.curves import EPISODES
from revar.reports.metrics import best_estimators, difference_problems, merge_budgets


@figures.register("difference")
def difference(results: Results) -> Chart:
    """The error against episodes, and how many times the episodes of the optimum it takes."""
    panels = []
    for problem in difference_problems(results):
        panels += [_panel(results, problem, scaled=scaled) for scaled in (False, True)]
    return Chart(
        "difference",
        "Left: mean squared error of the estimated difference of two policies' values. Right: the "
        "same times K, over its smallest possible value: how many times the episodes of the "
        "optimum it takes for the same error. Bands of one standard error; dotted lines and "
        "numbers, what theory says for large K. Apart: each policy from its own episodes, an equal "
        "share of them.",
        tuple(panels),
    )


def _panel(results: Results, problem: str, *, scaled: bool) -> Panel:
    exact = results.exact(problem)
    styles = strategy_styles(results.experiment.strategy_choices())
    lines = []
    for choice in results.experiment.strategy_choices():
        series = merge_budgets(best_estimators(results.of(problem, choice.name)))
        style = styles[choice.name]
        line = _curve(series, style, exact.limit if scaled else None)
        expected = exact.expected(choice.id, apart=bool(choice.apart))
        if expected is not None and line.x.size:
            ends, times = line.x[[0, -1]], expected / exact.limit
            level = np.full(2, times) if scaled else expected / ends
            lines.append(Line("", ends, level, Style(style.color, "dot", ""), "exact"))
            line = replace(line, label=f"{choice.name}: {times:.1f}") if scaled else line
        lines.append(line)
    title = f"{problem}, episodes for the same error" if scaled else f"{problem}, error"
    return Panel(title, tuple(lines), EPISODES, "K·MSE / limit" if scaled else "MSE")


def _curve(series: Series, style: Style, limit: float | None) -> Line:
    """The error from the first estimate of every run on; times K, over the limit, if given one."""
    seen = np.isfinite(series.mse) & (series.mse > 0)
    points = series.checkpoints[seen].astype(float)
    times = 1.0 if limit is None else points / limit
    y, error = times * series.mse[seen], times * series.mse_standard_error[seen]
    return Line(series.strategy, points, y, style, error=error)
