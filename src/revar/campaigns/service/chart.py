"""Geometry of the dashboard's chart: the history of an estimate as points, bands and ticks.

Coordinates are shares of the plot's width and height in percent, so that the page scales the plot
to any width while its labels keep their size.
"""

from collections.abc import Mapping, Sequence
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
class Series:
    """One line of a chart, with its interval."""

    name: str
    line: str  # points of an SVG polyline
    band: str  # points of an SVG polygon, empty while no error is known
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class EstimateChart:
    """Estimates with their intervals against finished episodes or time."""

    series: tuple[Series, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    zero: float | None = None  # where differences vanish, percent from the top


def estimate_chart(
    history: Sequence[HistoryPoint], axis: Axis, began: float
) -> EstimateChart | None:
    """None while there are fewer than two points. `began` is the time of the first event."""
    return _chart({"": history}, axis, began, REACH)


def difference_chart(
    differences: Mapping[str, Sequence[HistoryPoint]],
    axis: Axis,
    began: float,
    reach: float,
    *,
    banded: str,
) -> EstimateChart | None:
    """Several lines by name, and the level of zero; `reach` counts standard errors.

    One of the lines has its interval: bands that overlap could not be told apart.
    """
    return _chart(differences, axis, began, reach, banded=banded, with_zero=True)


def _chart(
    tracks: Mapping[str, Sequence[HistoryPoint]],
    axis: Axis,
    began: float,
    reach: float,
    *,
    banded: str = "",
    with_zero: bool = False,
) -> EstimateChart | None:
    later = {name: [p for p in points if _tells(p)] for name, points in tracks.items()}
    shown = later if all(len(points) > 1 for points in later.values()) else tracks
    if not shown or any(len(points) < 2 for points in shown.values()):
        return None
    points = sorted((p for track in shown.values() for p in track), key=lambda p: p.episodes)
    low, high = _range(points, 0.0, with_zero)
    lowest, highest = _range(shown[banded], reach, with_zero)
    low, high = min(low, lowest), max(high, highest)
    if axis is Axis.EPISODES:
        ends = points[0].episodes, points[-1].episodes
        first, last = map(log10, ends)
        ticks = [(log10(mark), f"{mark:,}") for mark in _decades(*ends)]
    else:
        first, last = 0.0, max(point.time - began for point in points)
        ticks = _times(last)
    frame = _Frame(axis, began, reach, first, last, low, high)
    return EstimateChart(
        series=tuple(frame.series(name, track, name == banded) for name, track in shown.items()),
        across=tuple(Tick(frame.left(place), text) for place, text in ticks),
        up=tuple(Tick(frame.top(value), text) for value, text in round_values(low, high)),
        zero=frame.top(0.0) if with_zero else None,
    )


@dataclass(frozen=True)
class _Frame:
    """Where points lie: from `first` to `last` across, from `low` to `high` up."""

    axis: Axis
    began: float
    reach: float  # of an interval, in standard errors
    first: float
    last: float
    low: float
    high: float

    def left(self, place: float) -> float:
        return 100.0 * (place - self.first) / max(self.last - self.first, 1e-9)

    def top(self, value: float) -> float:
        return 100.0 * (self.high - value) / (self.high - self.low)

    def across(self, point: HistoryPoint) -> float:
        counted = self.axis is Axis.EPISODES
        return self.left(log10(point.episodes) if counted else point.time - self.began)

    def at(self, point: HistoryPoint, value: float) -> str:
        return f"{self.across(point):.2f},{min(max(self.top(value), -100.0), 200.0):.2f}"

    def series(self, name: str, points: Sequence[HistoryPoint], banded: bool) -> Series:
        reach = self.reach
        known = [point for point in points if point.standard_error is not None]
        upper = [self.at(point, point.value + _reach(point, reach)) for point in known]
        lower = [self.at(point, point.value - _reach(point, reach)) for point in reversed(known)]
        return Series(
            name,
            line=" ".join(self.at(point, point.value) for point in points),
            band=" ".join(upper + lower) if banded and len(known) > 1 else "",
            marks=tuple(
                Mark(
                    self.across(point),
                    self.top(point.value),
                    _describe(name, point, self.began, reach),
                )
                for point in points
                if 0.0 <= self.top(point.value) <= 100.0  # the last one always lies there
            ),
        )


def _tells(point: HistoryPoint) -> bool:
    return point.episodes >= FIRST and point.standard_error is not None


def _reach(point: HistoryPoint, reach: float) -> float:
    return reach * (point.standard_error or 0.0)


def _describe(name: str, point: HistoryPoint, began: float, reach: float) -> str:
    when = f"{quantity(point.episodes, 'episode')} after {duration(point.time - began)}"
    text = f"{when}: {name} {point.value:.4g}" if name else f"{when}: {point.value:.4g}"
    return text if point.standard_error is None else f"{text} ± {_reach(point, reach):.2g}"


def _range(points: Sequence[HistoryPoint], reach: float, with_zero: bool) -> tuple[float, float]:
    """Where the later points lie: the first ones may be anywhere, and would flatten the rest."""
    late = [point for point in points if 4 * point.episodes >= points[-1].episodes]
    low = min(point.value - _reach(point, reach) for point in late)
    high = max(point.value + _reach(point, reach) for point in late)
    if with_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = (0.1 if with_zero else 0.25) * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _decades(first: int, last: int) -> list[int]:
    """A few round numbers of episodes between the first and the last point."""
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


def round_values(low: float, high: float, most: int = MANY_TICKS) -> list[tuple[float, str]]:
    """A few round values, with enough digits to tell them apart."""
    raw = (high - low) / most
    size = 10.0 ** floor(log10(raw))
    step = size * min((factor for factor in (1, 2, 5, 10) if factor * size >= raw), default=10)
    digits = max(0, -floor(log10(step) + 1e-9))
    first = ceil(low / step)
    values = [number * step for number in range(first, floor(high / step) + 1)]
    if max(abs(low), abs(high)) >= 1e6:
        return [(value, f"{value:.3g}") for value in values]
    return [(value, f"{value:,.{digits}f}") for value in values]
