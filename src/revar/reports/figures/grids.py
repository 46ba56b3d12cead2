"""Grids seen from above: where a strategy goes, and what it does there."""

from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from revar.errors import InputError
from revar.experiments.results import Results
from revar.experiments.specification import build_problem
from revar.model.arrays import FloatArray
from revar.reports.charts import Picture
from revar.reports.figures.figure import figures
from revar.reports.static import PLAIN, SETTINGS, plain_number
from revar.reports.summary import best_estimators

INCHES = 2.3
COLUMNS = 3  # panels in a row, where there is one problem
# Wedges, in cells: a share of 1, the longest drawn, half the base.
WHOLE, LONGEST, BASE = 0.8, 0.48, 0.045
SHOWN = ("on-policy", "oracle", "revar", "flow")


@figures.register("grid-visits")
def grid_visits(results: Results) -> Picture:
    """Heat maps of visits per episode, with arrows for the share of each action."""
    tables = {problem: _tables(results, problem) for problem in results.problems()}
    count = len(next(iter(tables.values())))
    columns = count if len(tables) > 1 else min(COLUMNS, count)
    rows = len(tables) if len(tables) > 1 else -(-count // columns)
    with rc_context({**SETTINGS, "axes.grid": False}):
        figure = Figure(
            figsize=(INCHES * columns + 0.9, (INCHES + 0.25) * rows), layout="constrained"
        )
        axes = figure.subplots(rows, columns, squeeze=False)
        visited = np.concatenate([t.sum(axis=1) for each in tables.values() for t in each.values()])
        norm = LogNorm(visited[visited > 0].min(), visited.max())
        places = iter(axes.ravel())
        for problem, each in tables.items():
            moves = _moves(results, problem)
            for name, table in each.items():
                place = next(places)
                image = _draw(place, table, moves, norm)
                place.set_title(name if len(tables) == 1 else f"{problem}: {name}", **PLAIN)
        for place in places:
            place.set_visible(False)
        bar = figure.colorbar(image, ax=axes, shrink=min(0.8, 1.6 / rows), pad=0.02)
        bar.set_label("visits per episode")
        bar.ax.yaxis.set_major_formatter(plain_number)
        bar.ax.yaxis.set_minor_formatter(plain_number)
    return Picture(
        "grid-visits",
        "Visits per episode of each cell; the longer a wedge, the larger the share of the action "
        "that goes its way. Optimal: the flow that the limit belongs to.",
        figure,
    )


def _moves(results: Results, problem: str) -> tuple[tuple[int, int], ...]:
    choice = next(c for c in results.experiment.problem_choices() if c.name == problem)
    moves = build_problem(choice).moves
    if not moves:
        raise InputError(f"the figure 'grid-visits' needs a problem on a grid; {problem!r} is none")
    return moves


def _tables(results: Results, problem: str) -> dict[str, FloatArray]:
    """Visits per episode [state, action]: of each strategy as measured, and the optimum."""
    tables = {}
    budget = max(results.experiment.budgets())
    for choice in results.experiment.strategy_choices():
        for series in best_estimators(results.of(problem, choice.name, budget)):
            if choice.id in SHOWN:
                tables[choice.name] = series.visits / (series.runs * budget)
    tables["optimal"] = np.array(results.facts(problem).optimal_visits)
    return tables


def _draw(axes: Axes, table: FloatArray, moves: tuple[tuple[int, int], ...], norm: LogNorm) -> Any:
    size = round(np.sqrt(len(table)))
    visits = table.sum(axis=1)
    image = axes.imshow(
        np.where(visits > 0, visits, np.nan).reshape(size, size), cmap="YlGnBu", norm=norm
    )
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    states = np.flatnonzero(visits > 0)
    shares = table[states] / visits[states, None]
    dark = norm(visits[states]) > 0.6
    for state, share, light in zip(states, shares, dark, strict=True):
        x, y = state % size, state // size
        for (down, right), part in zip(moves, share, strict=True):
            length = min(LONGEST, WHOLE * part)
            tip = (x + right * length, y + down * length)
            # A wedge from the middle of the cell: its base stands across its direction.
            base = [(x - down * BASE, y - right * BASE), (x + down * BASE, y + right * BASE)]
            axes.fill(*zip(*base, tip, strict=True), color="white" if light else "#222222")
    return image
