"""Error against the number of episodes: the curves of the paper, and K*MSE."""

import csv
from importlib.resources import files

import numpy as np

from revar.experiments.facts import Facts
from revar.experiments.results import Results
from revar.model.arrays import FloatArray
from revar.reports.charts import Chart, Line, Panel, exact_style
from revar.reports.figures.figure import EPISODES, along_budgets, curve, figures, styles
from revar.reports.summary import best_estimators

PAPER_VALUES = "paper_figure_values.csv"
CAPTION = (
    "Mean squared error against the number of episodes, with bands of one standard error. "
    "Thin dotted lines: closed forms for large K."
)


@figures.register("mse-curves")
def mse_curves(results: Results) -> Chart:
    """Mean squared error, both axes logarithmic, with what theory says."""
    return Chart(
        "mse-curves",
        CAPTION,
        _panels(results, scaled=False),
    )


@figures.register("mse-curves-beside-paper")
def mse_curves_beside_paper(results: Results) -> Chart:
    """The same, next to the points read off the paper's figure."""
    return Chart(
        "mse-curves-beside-paper",
        CAPTION + " Right: points read off the paper's figure. Its levels do not follow from "
        "the variances that it states; orders and crossings are what compares.",
        (*_panels(results, scaled=False), _digitised(results)),
    )


@figures.register("scaled-curves")
def scaled_curves(results: Results) -> Chart:
    """K*MSE: flat once a strategy has settled, so that levels compare at a glance."""
    return Chart(
        "scaled-curves",
        "K·MSE, the mean squared error times the number of episodes, with bands of one standard "
        "error. Thin dotted lines: closed forms for large K.",
        _panels(results, scaled=True),
    )


def _panels(results: Results, *, scaled: bool) -> tuple[Panel, ...]:
    return tuple(_panel(results, problem, scaled=scaled) for problem in results.problems())


def _panel(results: Results, problem: str, *, scaled: bool) -> Panel:
    look = styles(results)
    lines = []
    for strategy in results.strategies():
        parts = best_estimators(results.of(problem, strategy))
        if parts:
            lines.append(curve(along_budgets(parts), look[strategy], scaled=scaled))
    reach = np.concatenate([line.x for line in lines])
    if reach.size:  # where the error is 0 throughout there is nothing to draw
        lines += _exact_lines(results.facts(problem), reach, scaled=scaled)
    return Panel(problem, tuple(lines), EPISODES, "K·MSE" if scaled else "MSE")


def _exact_lines(facts: Facts, reach: FloatArray, *, scaled: bool) -> list[Line]:
    ends = np.array([reach.min(), reach.max()], dtype=float)
    if not scaled:
        ends[0] = max(ends[0], ends[1] / 100.0)  # closed forms hold for large K
    exact = facts.scaled_errors()
    if facts.structure in ("tree", "bandit"):
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


def _digitised(results: Results) -> Panel:
    text = files("revar.reports").joinpath(PAPER_VALUES).read_text(encoding="utf-8")
    points: dict[str, list[tuple[float, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        if row["figure"] == results.experiment.name:
            points.setdefault(row["series"], []).append((float(row["episodes"]), float(row["mse"])))
    look = {c.id: styles(results)[c.name] for c in results.experiment.strategy_choices()}
    lines = tuple(
        Line(name, np.array(places)[:, 0], np.array(places)[:, 1], look[name], "digitised")
        for name, places in points.items()
        if name in look
    )
    return Panel("the paper's figure, read off", lines, EPISODES, "MSE as printed")
