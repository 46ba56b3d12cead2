"""The picture of README and of the site's first page: flow against on-policy collection.

`python -m benchmarks.site_figures` measures it and writes its two halves to docs/pictures, also for
dark pages. A minute or two on one core.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

import revar
from revar.charts.chart import GREY, ORANGE, SKY, spread_apart
from revar.model.arrays import FloatArray

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BUDGETS = np.array([100, 200, 400, 800, 1600])
RUNS = 400
# Of text and lines, by how the file's name ends: in the light, in the dark. There is no ground.
INK = {"": "#24292f", "-dark": "#e6e6ea"}


@dataclass(frozen=True)
class Curve:
    """A way to collect and to estimate."""

    label: str
    strategy: str
    estimator: str
    color: str


MEAN = Curve("mean return", "on-policy", "monte-carlo", GREY)
ON_POLICY = Curve("on-policy", "on-policy", "certainty-equivalence", ORANGE)
FLOW = Curve("flow", "flow", "certainty-equivalence", SKY)


@dataclass(frozen=True)
class View:
    """A panel: a problem with its title and unit of error."""

    title: str
    problem: str
    y_label: str
    relative: bool


VIEWS = (
    View("Value of a policy on a grid", "gridworld", "error of the value", relative=False),
    View(
        "A failure in one of 1,000 episodes", "rare-failure", "error / probability", relative=True
    ),
)


def measure(view: View, curve: Curve) -> FloatArray:
    """The root mean squared error after each budget, which is one collection of its own."""
    problem = revar.find_problem(view.problem)
    unit = revar.policy_value(problem.mdp, problem.policy) if view.relative else 1.0
    errors = [
        revar.simulate(
            problem.mdp,
            problem.policy,
            curve.strategy,
            episodes=int(budget),
            runs=RUNS,
            checkpoints=[int(budget)],
            estimator=curve.estimator,
        ).mse[-1]
        for budget in BUDGETS
    ]
    return np.sqrt(errors) / unit


def draw(view: View, curves: dict[Curve, FloatArray], ink: str) -> Figure:
    """The curves of a problem, labelled at their ends."""
    figure = Figure(figsize=(4.7, 3.6), layout="constrained")
    axes = figure.subplots()
    for curve, errors in curves.items():
        width = 3.0 if curve is FLOW else 2.0
        axes.plot(BUDGETS, errors, "o-", color=curve.color, linewidth=width, markersize=5)
    label(axes, view, ink)
    ends = np.log([errors[-1] for errors in curves.values()])
    low, high = np.log(axes.get_ylim())
    places = np.exp(spread_apart(ends.tolist(), (high - low) / 12, low, high))
    for curve, place in zip(curves, places, strict=True):
        axes.annotate(
            curve.label,
            (BUDGETS[-1], place),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            color=curve.color,
            fontsize=12,
            fontweight="bold",
        )
    return figure


def label(axes: Any, view: View, ink: str) -> None:
    """Scales, titles and the colour of everything that is not a curve."""
    axes.set(xscale="log", yscale="log", xlabel="episodes", ylabel=view.y_label)
    axes.set_title(view.title, color=ink, fontsize=13, fontweight="bold", loc="left")
    axes.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
    axes.set_xlim(BUDGETS[0] * 0.85, BUDGETS[-1] * 4.2)
    axes.minorticks_off()
    axes.yaxis.set_minor_formatter(NullFormatter())
    shown = (lambda y, _: f"{y:.0%}") if view.relative else (lambda y, _: f"{y:g}")
    axes.yaxis.set_major_formatter(FuncFormatter(shown))
    low, high = axes.get_ylim()
    ticks = [t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5) if low < t < high]
    axes.set_yticks(ticks)
    axes.patch.set_alpha(0.0)
    axes.grid(axis="y", color=ink, alpha=0.15)
    axes.tick_params(colors=ink)
    for side, spine in axes.spines.items():
        spine.set_color(ink)
        spine.set_visible(side in ("left", "bottom"))
    for text in (axes.xaxis.label, axes.yaxis.label):
        text.set(color=ink, fontsize=12)


def main() -> None:
    """Measure, and write every picture."""
    PICTURES.mkdir(exist_ok=True)
    for view in VIEWS:
        curves = {curve: measure(view, curve) for curve in (MEAN, ON_POLICY, FLOW)}
        for ending, ink in INK.items():
            path = PICTURES / f"{view.problem}{ending}.svg"
            draw(view, curves, ink).savefig(path, transparent=True, metadata={"Date": None})
        for curve, errors in curves.items():
            found = "  ".join(f"{error:.4g}" for error in errors)
            print(f"{view.problem:14} {curve.label:12} {found}")


if __name__ == "__main__":
    main()
