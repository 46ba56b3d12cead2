"""Problems as pictures: trees from the root down, grids seen from above."""

from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from revar.charts.chart import BLUE, GREY, ORANGE, VERMILION, Picture
from revar.charts.static import PLAIN, SETTINGS, plain_number
from revar.errors import InputError
from revar.experiments.experiment import build_problem
from revar.experiments.results import Results
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.reports.figures import figures
from revar.reports.metrics import best_estimators

ACTION_COLORS = (BLUE, VERMILION, ORANGE, GREY)
MOST_STATES = 64  # of a tree that can be drawn
GRID_INCHES = 2.3
GRID_COLUMNS = 3  # panels in a row, where there is one problem
# Wedges, in cells: a share of 1, the longest drawn, half the base.
WHOLE, LONGEST, BASE = 0.8, 0.48, 0.045
SHOWN = ("on-policy", "oracle", "revar", "flow")


@figures.register("tree-proportions")
def tree_proportions(results: Results) -> Picture:
    """The share of each action in each state: target policy, oracle, and as measured."""
    problem = results.problems()[0]
    choice = next(c for c in results.experiment.problem_choices() if c.name == problem)
    mdp = build_problem(choice).mdp
    if not mdp.structure().is_tree or mdp.states > MOST_STATES:
        raise InputError(
            f"the figure 'tree-proportions' needs a tree of at most {MOST_STATES} states; "
            f"{problem!r} is none"
        )
    exact = results.exact(problem)
    tables = {"target policy": np.array(exact.policy), "oracle": np.array(exact.oracle_behavior)}
    budget = max(results.experiment.budgets())
    for strategy in results.strategies():
        identity = next(c for c in results.experiment.strategy_choices() if c.name == strategy)
        if identity.id in ("revar", "flow"):
            for series in best_estimators(results.of(problem, strategy, budget)):
                visits = series.visits.astype(float)
                # A state that was never entered has no shares to draw.
                seen = np.maximum(visits.sum(axis=1, keepdims=True), 1.0)
                tables[f"{strategy}, measured"] = visits / seen
    with rc_context({**SETTINGS, "axes.grid": False}):
        figure = Figure(
            figsize=(3.7 * min(2, len(tables)), 2.5 * -(-len(tables) // 2)), layout="constrained"
        )
        axes = figure.subplots(-(-len(tables) // 2), min(2, len(tables)), squeeze=False).ravel()
        for place in axes[len(tables) :]:
            place.set_visible(False)
        for place, (name, table) in zip(axes, tables.items(), strict=False):
            _draw_tree(place, mdp, table)
            place.set_title(name, **PLAIN)
    return Picture(
        "tree-proportions",
        "How often each action is taken in each state of the tree, in percent. Edges are the wider "
        "the more visits they get. The target policy's rare action (right) is the noisy one: the "
        "oracle takes it far more often.",
        figure,
    )


def _draw_tree(axes: Axes, mdp: TabularMDP, shares: FloatArray) -> None:
    axes.set_axis_off()
    places, parents = _place_states(mdp)
    reach = np.zeros(mdp.states)
    root = int(np.flatnonzero(mdp.initial)[0])
    reach[root] = 1.0
    for state in sorted(places, key=lambda s: places[s][1], reverse=True):
        x, y = places[state]
        if state in parents:
            parent, action, chance = parents[state]
            reach[state] = reach[parent] * shares[parent, action] * chance
        children = {a: c for c, (p, a, _) in parents.items() if p == state}
        for action in range(mdp.actions):
            if action in children:
                end_x, end_y = places[children[action]]
                label_x, label_y = 0.5 * (x + end_x), 0.5 * (y + end_y)
            else:
                end_x = x + 0.46 * (action - (mdp.actions - 1) / 2)
                end_y = y - 0.5
                label_x, label_y = end_x, end_y - 0.17
            used = reach[state] * shares[state, action]
            color = ACTION_COLORS[action % len(ACTION_COLORS)]
            axes.plot(
                [x, end_x],
                [y, end_y],
                color=color,
                linewidth=0.4 + 4.5 * np.sqrt(used),
                solid_capstyle="round",
                alpha=0.9,
                zorder=1,
            )
            axes.text(
                label_x,
                label_y,
                f"{100 * shares[state, action]:.0f}",
                fontsize=5.5,
                ha="center",
                va="center",
                color=color,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85},
                zorder=3,
            )
        axes.plot(x, y, "o", color="white", markeredgecolor="#333333", markersize=5, zorder=4)
    axes.margins(0.03)


def _place_states(
    mdp: TabularMDP,
) -> tuple[dict[int, tuple[float, float]], dict[int, tuple[int, int, float]]]:
    """The place of each state, leaves side by side; and its parent, action and probability."""
    parents: dict[int, tuple[int, int, float]] = {}
    transitions = mdp.transitions.tocoo()
    for pair, child, chance in zip(transitions.row, transitions.col, transitions.data, strict=True):
        parents[int(child)] = (int(pair) // mdp.actions, int(pair) % mdp.actions, float(chance))
    places: dict[int, tuple[float, float]] = {}
    free = 0.0

    def place(state: int, level: int) -> float:
        nonlocal free
        children = sorted(
            (c for c, (p, *_) in parents.items() if p == state), key=lambda c: parents[c][1]
        )
        if children:
            x = float(np.mean([place(child, level + 1) for child in children]))
        else:
            x = free
            free += 1.0
        places[state] = (x, -float(level))
        return x

    place(int(np.flatnonzero(mdp.initial)[0]), 0)
    return places, parents


@figures.register("grid-visits")
def grid_visits(results: Results) -> Picture:
    """Heat maps of visits per episode, with arrows for the share of each action."""
    tables = {problem: _visits(results, problem) for problem in results.problems()}
    count = len(next(iter(tables.values())))
    columns = count if len(tables) > 1 else min(GRID_COLUMNS, count)
    rows = len(tables) if len(tables) > 1 else -(-count // columns)
    with rc_context({**SETTINGS, "axes.grid": False}):
        figure = Figure(
            figsize=(GRID_INCHES * columns + 0.9, (GRID_INCHES + 0.25) * rows), layout="constrained"
        )
        axes = figure.subplots(rows, columns, squeeze=False)
        visited = np.concatenate([t.sum(axis=1) for each in tables.values() for t in each.values()])
        norm = LogNorm(visited[visited > 0].min(), visited.max())
        places = iter(axes.ravel())
        for problem, each in tables.items():
            moves = _moves(results, problem)
            for name, table in each.items():
                place = next(places)
                image = _draw_grid(place, table, moves, norm)
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


def _visits(results: Results, problem: str) -> dict[str, FloatArray]:
    """Visits per episode [state, action]: of each strategy as measured, and the optimum."""
    tables = {}
    budget = max(results.experiment.budgets())
    for choice in results.experiment.strategy_choices():
        for series in best_estimators(results.of(problem, choice.name, budget)):
            if choice.id in SHOWN:
                tables[choice.name] = series.visits / (series.runs * budget)
    tables["optimal"] = np.array(results.exact(problem).optimal_visits)
    return tables


def _draw_grid(
    axes: Axes, table: FloatArray, moves: tuple[tuple[int, int], ...], norm: LogNorm
) -> Any:
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
