"""The figures of results: how an interval shrank, and a forest plot of several policies."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from revar.charts.chart import BLUE, VERMILION, Chart, Line, Panel, Style
from revar.collection.checkpoints import student_quantile
from revar.errors import MissingExtraError, require_extra
from revar.estimators.estimator import Estimate, normal_quantile
from revar.evaluation.returns.result import ReturnFindings

if TYPE_CHECKING:
    from revar.evaluation.comparison import ComparisonResult
    from revar.evaluation.result import EvaluationResult


def check_figure_path(path: Any) -> None:
    """Raise if no figure can be saved there."""
    _drawing().check_figure_path(path)


def plot_result(result: "EvaluationResult", path: Any = None) -> Any:
    """Draw the value and interval at every checkpoint, and the on-policy interval at the end."""
    return _plot(chart_of(result), path)


def plot_comparison(result: "ComparisonResult", path: Any = None) -> Any:
    """Draw the value of every policy, and how far the best is above each of the others."""
    return _plot(forest_of(result), path, str(result))


def _plot(chart: Chart, path: Any, title: str = "") -> Any:
    drawing = _drawing()
    target = None if path is None else drawing.check_figure_path(path)
    figure = drawing.draw(chart)
    if title:
        figure.suptitle(fill(title, 100), fontsize=9, parse_math=False)
    if target is not None:
        figure.savefig(target, dpi=150)
    return figure


def inline_picture(result: "EvaluationResult | ComparisonResult") -> str:
    """The figure as an image of HTML; nothing where matplotlib is not installed.

    Of returns it shows how they ended: how intervals shrank takes critics that learn anew.
    """
    try:
        drawing = _drawing()
    except MissingExtraError:
        return ""
    content = BytesIO()
    drawing.draw(_inline_chart(result)).savefig(content, format="png", dpi=90)
    image = b64encode(content.getvalue()).decode()
    return f"<img alt='{escape(str(result))}' src='data:image/png;base64,{image}'>"


def _inline_chart(result: Any) -> Chart:
    if not hasattr(result, "estimate"):
        return forest_of(result)
    if not isinstance(result.findings, ReturnFindings):
        return chart_of(result)
    corrected = result.findings.corrected
    mean = Estimate(
        corrected.mean_return,
        corrected.mean_return_error,
        result.episodes,
        confidence=result.confidence,
        quantile=result.quantile,
    )
    names = ["with critics", "mean return"] if result.method == "critic" else ["mean return"]
    found = [replace(result.estimate, quantile=result.quantile), mean][-len(names) :]
    return Chart(
        "evaluation",
        "",
        (
            Panel(
                f"{result.confidence:.0%} intervals",
                (_dots(found, range(len(names)), BLUE),),
                "estimated value of the policy",
                "",
                "linear",
                "linear",
                categories=tuple(names),
            ),
        ),
    )


def chart_of(result: "EvaluationResult") -> Chart:
    """What the figure shows."""
    if isinstance(result.findings, ReturnFindings):
        return _returns_chart(result, result.findings)
    checkpoints = [c for c in result.checkpoints if np.isfinite(c.estimate.standard_error)]
    unit = result.budget.unit
    lines: tuple[Line, ...] = (_value_alone(result),)
    y_range = None
    if checkpoints:
        spent = np.array([c.spent for c in checkpoints], dtype=float)
        values = np.array([c.estimate.value for c in checkpoints])
        reach = result.quantile * np.array([c.estimate.standard_error for c in checkpoints])
        label = f"{result.strategy}, {result.confidence:.0%} interval"
        instead = result.quantile * result.alternatives.on_policy
        on_policy = Line(
            f"on-policy {'at the same cost' if unit == 'cost' else f'with as many {unit}'}",
            spent[-1:] * 1.12,
            values[-1:],
            Style(VERMILION, marker="s"),
            "interval",
            np.array([instead]),
        )
        lines = (Line(label, spent, values, Style(BLUE), error=reach), on_policy)
        # The first intervals are wide; what matters is where they end.
        shown = 2.0 * max(reach[len(reach) // 2 :].max(), instead)
        y_range = (values[-1] - shown, values[-1] + shown) if 0.0 < shown < np.inf else None
    panel = Panel(
        str(result),
        lines,
        unit,
        "estimated value of the policy",
        # With prior data alone nothing is spent.
        "log" if checkpoints and checkpoints[0].spent > 0 else "linear",
        "linear",
        y_range=y_range,
    )
    return Chart("evaluation", "", (panel,), alone=True)


FEWEST = 16  # episodes of the first interval that is drawn


def _returns_chart(result: "EvaluationResult", findings: ReturnFindings) -> Chart:
    """The interval as it shrank, beside that of the mean return; critics learn anew for each."""
    total = findings.corrected.returns.size
    counts = [total]
    while counts[0] >= 2 * FEWEST:
        counts.insert(0, counts[0] // 2)
    z = normal_quantile(result.confidence)
    found = [findings.at(count) for count in counts[:-1]] + [findings.corrected]
    reach = [student_quantile(z, count) for count in counts[:-1]] + [result.quantile]
    lines: tuple[Line, ...] = (_value_alone(result),)
    y_range = None
    if total > 1 and np.isfinite(result.standard_error):
        errors = np.array([each.standard_error for each in found]) * reach
        plain = np.array([each.mean_return_error for each in found]) * reach
        places = np.array(counts, dtype=float)
        label = f"{result.confidence:.0%} interval"
        lines = (
            Line(
                f"mean return, {label}",
                places * (1.0 if result.method == "mean" else 1.06),
                np.array([each.mean_return for each in found]),
                Style(VERMILION, marker="s"),
                "interval",
                plain,
            ),
        )
        if result.method == "critic":
            values = np.array([each.value for each in found])
            lines = (
                Line(f"with critics, {label}", places, values, Style(BLUE), error=errors),
                *lines,
            )
        shown = 2.0 * float(plain[len(plain) // 2 :].max())
        y_range = (result.value - shown, result.value + shown) if shown > 0.0 else None
    panel = Panel(
        str(result),
        lines,
        "episodes",
        "estimated value of the policy",
        "log" if total > 1 else "linear",
        "linear",
        y_range=y_range,
    )
    return Chart("evaluation", "", (panel,), alone=True)


def forest_of(result: "ComparisonResult") -> Chart:
    """What the forest plot shows, the best policy first."""
    order = list(result.ranking.best_first)
    differences = result.differences
    level = f"{100 * result.confidence:.4g}% intervals"
    return Chart(
        "comparison",
        str(result),
        (
            Panel(
                f"values, {level}",
                (_dots([result.values[name] for name in order], range(len(order)), BLUE),),
                "estimated value",
                "",
                "linear",
                "linear",
                categories=tuple(order),
            ),
            Panel(
                f"best minus the others, {level}",
                (
                    _dots(
                        [differences[name] for name in order[1:]], range(1, len(order)), VERMILION
                    ),
                ),
                f"value of {result.best} minus that of the policy",
                "",
                "linear",
                "linear",
                categories=tuple(order),
                x_mark=0.0,
            ),
        ),
    )


def _dots(estimates: Sequence[Estimate], places: Iterable[int], color: str) -> Line:
    ends = np.array([each.interval for each in estimates])
    reach = (ends[:, 1] - ends[:, 0]) / 2.0
    known = np.isfinite(reach)
    return Line(
        "",
        np.where(known, [each.value for each in estimates], np.nan),
        np.array(list(places), dtype=float),
        Style(color, marker="s"),
        "interval",
        np.where(known, reach, 0.0),
    )


def _value_alone(result: "EvaluationResult") -> Line:
    """The value as a point, where there are too few episodes for an interval."""
    label = f"{result.strategy}, too few episodes for an interval"
    return Line(label, np.array([result.spent]), np.array([result.value]), Style(BLUE))


def _drawing() -> Any:
    require_extra("matplotlib", "plots")
    from revar.charts import static  # noqa: PLC0415 - needs matplotlib

    return static
