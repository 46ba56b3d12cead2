"""How often intervals hold the truth, against how often they say they do."""

from statistics import NormalDist

import numpy as np

from revar.experiments.results import Results
from revar.model.arrays import FloatArray
from revar.reports.charts import EXACT, Chart, Line, Panel
from revar.reports.figures.figure import figures, styles
from revar.reports.summary import coverage

LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99])


@figures.register("coverage")
def coverage_chart(results: Results) -> Chart:
    """Coverage less the nominal level, at the largest budget, one panel a problem."""
    look = styles(results)
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
                    look[series.strategy],
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
