"""What a chart shows, apart from how it is drawn: static.py and interactive.py draw it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import isotonic_regression

from revar.model.arrays import FloatArray

Dash = Literal["solid", "dash", "dot", "dashdot"]
Kind = Literal["measured", "exact", "digitised", "fit"]
Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Style:
    """How a line looks, told apart by more than its colour."""

    color: str
    dash: Dash = "solid"
    marker: str = "o"  # matplotlib's name


@dataclass(frozen=True, eq=False)
class Line:
    """One curve with its label; a band is one standard error to either side."""

    label: str
    x: FloatArray  # [point]
    y: FloatArray  # [point]
    style: Style
    kind: Kind = "measured"
    error: FloatArray | None = None  # [point] one standard error


@dataclass(frozen=True, eq=False)
class Panel:
    """A pair of axes."""

    title: str
    lines: tuple[Line, ...]
    x_label: str
    y_label: str
    x_scale: Scale = "log"
    y_scale: Scale = "log"
    categories: tuple[str, ...] = ()  # names of the whole numbers on the y axis, from 0 upwards


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels side by side, with a caption."""

    name: str
    caption: str
    panels: tuple[Panel, ...]
    shared_y: bool = False


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawing that is a matplotlib figure and nothing else."""

    name: str
    caption: str
    figure: Any  # matplotlib.figure.Figure


# Okabe and Ito's colours: told apart with any colour vision, and in print.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7A7A7A"

_OF_STRATEGY = {
    "on-policy": Style(GREY, "solid", "s"),
    "uniform": Style(ORANGE, "dash", "v"),
    "cb-var": Style(PURPLE, "dashdot", "D"),
    "oracle": Style(BLUE, "dash", "^"),
    "revar": Style(VERMILION, "solid", "o"),
    "flow": Style(GREEN, "solid", "*"),
    "flow-oracle": Style(SKY, "dash", "P"),
    "ros": Style(ORANGE, "solid", "<"),
    "bandit": Style(PURPLE, "solid", ">"),
    "bpg": Style(SKY, "dot", "X"),
    "odi": Style(BLUE, "dot", "d"),
    "dopt": Style(BLACK, "dot", "h"),
}
_IN_ORDER = (
    Style(BLUE, "solid", "o"),
    Style(ORANGE, "dash", "s"),
    Style(GREEN, "solid", "^"),
    Style(VERMILION, "dashdot", "D"),
    Style(PURPLE, "solid", "v"),
    Style(SKY, "dash", "P"),
    Style(BLACK, "dot", "*"),
    Style(GREY, "dashdot", "X"),
)
EXACT = Style(BLACK, "dot", "")
_EXACT_OF = {"on-policy": Style(GREY, "dot", ""), "oracle": Style(BLUE, "dot", "")}


def exact_style(name: str) -> Style:
    """The look of a closed form: that of the strategy it belongs to, dotted."""
    return _EXACT_OF.get(name, EXACT)


def styles_of(strategies: Sequence[tuple[str, str]]) -> dict[str, Style]:
    """A style for each label, from (id, label) pairs.

    A strategy looks the same in every report; where one is there several times with other
    options, styles go by order.
    """
    ids = [strategy_id for strategy_id, _ in strategies]
    styles: dict[str, Style] = {}
    for i, (strategy_id, label) in enumerate(strategies):
        own = _OF_STRATEGY.get(strategy_id)
        if own is None or ids.count(strategy_id) > 1:
            own = _IN_ORDER[i % len(_IN_ORDER)]
        styles[label] = own
    return styles


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> FloatArray:
    """Places at least `gap` apart within [low, high], in all as near to the wanted as can be."""
    places = np.asarray(wanted, dtype=float)
    order = np.argsort(places, kind="stable")
    # With each rank's share of the gaps taken off, apart means in order.
    shifts = gap * np.arange(places.size)
    starts = isotonic_regression(places[order] - shifts).x
    result = np.empty_like(places)
    result[order] = np.clip(starts, low, max(low, high - gap * (places.size - 1))) + shifts
    return result
