"""Trees drawn from the root down, edges as wide as they are used."""

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from revar.errors import InputError
from revar.experiments.results import Results
from revar.experiments.specification import build_problem
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.reports.charts import BLUE, GREY, ORANGE, VERMILION, Picture
from revar.reports.figures.figure import figures
from revar.reports.static import PLAIN, SETTINGS
from revar.reports.summary import best_estimators

COLORS = (BLUE, VERMILION, ORANGE, GREY)
MOST_STATES = 64


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
    facts = results.facts(problem)
    tables = {"target policy": np.array(facts.policy), "oracle": np.array(facts.oracle_behavior)}
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
            _draw(place, mdp, table)
            place.set_title(name, **PLAIN)
    return Picture(
        "tree-proportions",
        "How often each action is taken in each state of the tree, in percent. Edges are the wider "
        "the more visits they get. The target policy's rare action (right) is the noisy one: the "
        "oracle takes it far more often.",
        figure,
    )


def _draw(axes: Axes, mdp: TabularMDP, shares: FloatArray) -> None:
    axes.set_axis_off()
    places, parents = _places(mdp)
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
            color = COLORS[action % len(COLORS)]
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


def _places(
    mdp: TabularMDP,
) -> tuple[dict[int, tuple[float, float]], dict[int, tuple[int, int, float]]]:
    """Where each state stands, leaves side by side; and its parent, action and probability."""
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
