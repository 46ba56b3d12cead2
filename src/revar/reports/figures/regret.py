"""Regret against the budget, with the slope that was fitted."""

import numpy as np

from revar.experiments.results import Results
from revar.reports.charts import EXACT, Chart, Line, Panel, Style
from revar.reports.figures.figure import EPISODES, figures, styles
from revar.reports.summary import regret


@figures.register("regret-slope")
def regret_slope(results: Results) -> Chart:
    """Regret of each strategy on logarithmic axes, and a line through it."""
    panels = []
    look = styles(results)
    for problem in results.problems():
        lines = []
        for strategy in results.strategies():
            found = regret(results, problem, strategy)
            style = look[strategy]
            label = f"{strategy}: {found.slope.value:.2f}"
            lines.append(Line(label, found.budgets, found.mean, style, error=found.error))
            thin = Style(style.color, "dot", "")
            lines.append(Line("", found.budgets, found.fitted(), thin, "fit"))
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
