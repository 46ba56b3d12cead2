"""Geometry of the dashboard's chart: the history of an estimate as points, bands and ticks.

Coordinates are shares of the plot's width and height in percent, so that the page scales the plot
to any width while its labels keep their size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, floor, log10

from revar.campaigns.state import HistoryPoint
from revar.campaigns.text import UNITS, duration, quantity

FIRST = 5  # episodes: before, the line says nothing and its interval fills the page
REACH = 1.959963984540054  # of a 95% interval, in standard errors
FEW_TICKS, MANY_TICKS = 3, 6
# Steps between marks of time, in seconds.
SPANS = (
    *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800),
    *(3_600, 7_200, 10_800, 21_600, 43_200, 86_400),
)


class Axis(Enum):
    """What the chart's horizontal axis counts."""

    EPISODES = "episodes"  # logarithmic
    TIME = "time"  # since the first event


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    place: float  # percent from the left, or from the top
    label: str


@dataclass(frozen=True)
class Mark:
    """A point of the history that shows its numbers under the pointer."""

    left: float
    top: float
    text: str


@dataclass(frozen=True)
class EstimateChart:
    """The estimate with its interval against finished episodes or time."""

    line: str  # points of an SVG polyline
    band: str  # points of an SVG polygon, empty while no error is known
    marks: tuple[Mark, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


def estimate_chart(
    history: Sequence[HistoryPoint], axis: Axis, began: float
) -> EstimateChart | None:
    """None while there are fewer than two points. `began` is the time of the first event."""
    later = [
        point for point in history if point.episodes >= FIRST and point.standard_error is not None
    ]
    history = later if len(later) > 1 else history
    if len(history) < 2:
        return None
    low, high = _range(history)
    if axis is Axis.EPISODES:
        places = [log10(point.episodes) for point in history]
        first, last = places[0], places[-1]
        ticks = [(log10(mark), f"{mark:,}") for mark in _decades(history)]
    else:
        places = [point.time - began for point in history]
        first, last = 0.0, max(places)
        ticks = _times(last)

    def left(place: float) -> float:
        return 100.0 * (place - first) / max(last - first, 1e-9)

    def top(value: float) -> float:
        return 100.0 * (high - value) / (high - low)

    def at(place: float, value: float) -> str:
        return f"{left(place):.2f},{min(max(top(value), -100.0), 200.0):.2f}"

    placed = list(zip(places, history, strict=True))
    known = [(place, point) for place, point in placed if point.standard_error is not None]
    upper = [at(place, point.value + _reach(point)) for place, point in known]
    lower = [at(place, point.value - _reach(point)) for place, point in reversed(known)]
    return EstimateChart(
        line=" ".join(at(place, point.value) for place, point in placed),
        band=" ".join(upper + lower) if len(known) > 1 else "",
        marks=tuple(
            Mark(left(place), top(point.value), _describe(point, began))
            for place, point in placed
            if 0.0 <= top(point.value) <= 100.0  # the last one always lies there
        ),
        across=tuple(Tick(left(place), text) for place, text in ticks),
        up=tuple(Tick(top(value), text) for value, text in _steps(low, high)),
    )


def _reach(point: HistoryPoint) -> float:
    return REACH * (point.standard_error or 0.0)


def _describe(point: HistoryPoint, began: float) -> str:
    when = f"{quantity(point.episodes, 'episode')} after {duration(point.time - began)}"
    text = f"{when}: {point.value:.4g}"
    return text if point.standard_error is None else f"{text} ± {_reach(point):.2g}"


def _range(history: Sequence[HistoryPoint]) -> tuple[float, float]:
    """Where the later points lie: the first ones may be anywhere, and would flatten the rest."""
    late = [point for point in history if 4 * point.episodes >= history[-1].episodes] or list(
        history
    )
    low = min(point.value - _reach(point) for point in late)
    high = max(point.value + _reach(point) for point in late)
    room = 0.25 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _decades(history: Sequence[HistoryPoint]) -> list[int]:
    """A few round numbers of episodes between the first and the last point."""
    first, last = history[0].episodes, history[-1].episodes
    powers = range(floor(log10(first)), ceil(log10(last)) + 1)
    marks: Sequence[int] = range(first, last + 1)
    for factors in (range(1, 10), (1, 2, 5), (1, 3), (1,)):
        coarser = [factor * 10**power for power in powers for factor in factors]
        coarser = [mark for mark in coarser if first <= mark <= last]
        if len(coarser) < FEW_TICKS:
            break
        marks = coarser
    return list(marks[:: ceil(len(marks) / MANY_TICKS)])


def _times(last: float) -> list[tuple[float, str]]:
    """Round spans of time up to the last point."""
    step = next((span for span in SPANS if last / span < MANY_TICKS), 0)
    if step == 0:
        days = ceil(last / MANY_TICKS / 86_400)
        step = 86_400 * days
    name, size = next(unit for unit in UNITS if step >= unit[1])
    marks = range(0, floor(last) + 1, step)
    return [(float(mark), f"{mark / size:g} {name}") for mark in marks]


def _steps(low: float, high: float) -> list[tuple[float, str]]:
    """A few round values, with enough digits to tell them apart."""
    raw = (high - low) / 6
    size = 10.0 ** floor(log10(raw))
    step = size * min((factor for factor in (1, 2, 5, 10) if factor * size >= raw), default=10)
    digits = max(0, -floor(log10(step) + 1e-9))
    first = ceil(low / step)
    values = [number * step for number in range(first, floor(high / step) + 1)]
    if max(abs(low), abs(high)) >= 1e6:
        return [(value, f"{value:.3g}") for value in values]
    return [(value, f"{value:,.{digits}f}") for value in values]
