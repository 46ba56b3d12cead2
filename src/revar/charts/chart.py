"""What a chart shows. static.py draws it with matplotlib, interactive.py with plotly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import isotonic_regression

from revar.model.arrays import FloatArray

Dash = Literal["solid", "dash", "dot", "dashdot"]
LineKind = Literal["measured", "exact", "digitised", "fit", "interval"]
Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Style:
    """How a line looks; dash and marker tell lines apart without colour."""

    color: str
    dash: Dash = "solid"
    marker: str = "o"  # matplotlib's name


@dataclass(frozen=True, eq=False)
class Line:
    """One curve with its label, in a band; of kind "interval" it is points with error bars."""

    label: str
    x: FloatArray  # [point]
    y: FloatArray  # [point]
    style: Style
    kind: LineKind = "measured"
    error: FloatArray | None = None  # [point] to either side: one standard error


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
    y_range: tuple[float, float] | None = None  # None: as the lines need
    x_mark: float | None = None  # where a vertical line helps the eye


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels side by side, with a caption.

    A chart that stands alone has one panel, with a legend and a sentence as its title.
    """

    name: str
    caption: str
    panels: tuple[Panel, ...]
    alone: bool = False


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure that only matplotlib can draw."""

    name: str
    caption: str
    figure: Any  # matplotlib.figure.Figure


# Okabe and Ito's colours can be told apart with any colour vision, and in print.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7A7A7A"


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> FloatArray:
    """Places in [low, high] at least `gap` apart, nearest to the wanted ones by least squares."""
    places = np.asarray(wanted, dtype=float)
    order = np.argsort(places, kind="stable")
    # With rank * gap subtracted, "at least gap apart" becomes "in order".
    shifts = gap * np.arange(places.size)
    starts = isotonic_regression(places[order] - shifts).x
    result = np.empty_like(places)
    result[order] = np.clip(starts, low, max(low, high - gap * (places.size - 1))) + shifts
    return result
