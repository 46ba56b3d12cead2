"""Every strategy with its best estimator, problem by problem, against the limit."""

import numpy as np

from revar.experiments.results import Results
from revar.reports.charts import Chart, Line, Panel
from revar.reports.figures.figure import figures, styles
from revar.reports.summary import best_estimators


@figures.register("peers")
def peers(results: Results) -> Chart:
    """K*MSE / limit, one row a problem, one mark a strategy, one panel a budget."""
    return Chart(
        "peers",
        "K·MSE divided by its smallest possible value for large K, with one standard error to "
        "either side, each strategy with its best valid estimator. Further left is better.",
        tuple(_panel(results, budget) for budget in results.experiment.budgets()),
    )


def _panel(results: Results, budget: int) -> Panel:
    look = styles(results)
    problems, strategies = results.problems(), results.strategies()
    lines = []
    for rank, strategy in enumerate(strategies):
        x, error, y = [], [], []
        for row, problem in enumerate(problems):
            limit = results.facts(problem).limit or np.nan
            for series in best_estimators(results.of(problem, strategy, budget)):
                x.append(series.scaled[-1] / limit)
                error.append(series.scaled_standard_error[-1] / limit)
                # Marks of one problem stand a little apart.
                y.append(row + 0.7 * ((rank + 0.5) / len(strategies) - 0.5))
        if x:
            lines.append(
                Line(strategy, np.array(x), np.array(y), look[strategy], error=np.array(error))
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
