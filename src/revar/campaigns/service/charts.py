"""Geometry of the dashboard's chart: looks at the estimate as points, bands and ticks.

Coordinates are shares of the plot's width and height in percent, so that the page scales the plot
to any width while its labels keep their size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, floor, log10

from revar.campaigns.progress import Look
from revar.campaigns.wording import UNITS, counted, duration

FIRST = 5  # episodes: before, the line says nothing and its interval fills the page
REACH = 1.959963984540054  # of a 95% interval, in standard errors
FEW_TICKS, MANY_TICKS = 3, 6
# Steps between marks of time, in seconds.
SPANS = (
    *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800),
    *(3_600, 7_200, 10_800, 21_600, 43_200, 86_400),
)


class Across(Enum):
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
    """One look, for pointing at."""

    left: float
    top: float
    text: str


@dataclass(frozen=True)
class Chart:
    """The estimate with its interval against finished episodes or time."""

    line: str  # points of an SVG polyline
    band: str  # points of an SVG polygon, empty while no error is known
    marks: tuple[Mark, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


def estimate_chart(looks: Sequence[Look], across: Across, began: float) -> Chart | None:
    """None while there are fewer than two looks. `began` is the time of the first event."""
    later = [look for look in looks if look.episodes >= FIRST and look.standard_error is not None]
    looks = later if len(later) > 1 else looks
    if len(looks) < 2:
        return None
    low, high = _range(looks)
    if across is Across.EPISODES:
        places = [log10(look.episodes) for look in looks]
        first, last = places[0], places[-1]
        ticks = [(log10(mark), f"{mark:,}") for mark in _decades(looks)]
    else:
        places = [look.time - began for look in looks]
        first, last = 0.0, max(places)
        ticks = _times(last)

    def left(place: float) -> float:
        return 100.0 * (place - first) / max(last - first, 1e-9)

    def top(value: float) -> float:
        return 100.0 * (high - value) / (high - low)

    def point(place: float, value: float) -> str:
        return f"{left(place):.2f},{min(max(top(value), -100.0), 200.0):.2f}"

    placed = list(zip(places, looks, strict=True))
    known = [(place, look) for place, look in placed if look.standard_error is not None]
    upper = [point(place, look.value + _reach(look)) for place, look in known]
    lower = [point(place, look.value - _reach(look)) for place, look in reversed(known)]
    return Chart(
        line=" ".join(point(place, look.value) for place, look in placed),
        band=" ".join(upper + lower) if len(known) > 1 else "",
        marks=tuple(
            Mark(left(place), top(look.value), _told(look, began))
            for place, look in placed
            if 0.0 <= top(look.value) <= 100.0  # the last one always lies there
        ),
        across=tuple(Tick(left(place), text) for place, text in ticks),
        up=tuple(Tick(top(value), text) for value, text in _steps(low, high)),
    )


def _reach(look: Look) -> float:
    return REACH * (look.standard_error or 0.0)


def _told(look: Look, began: float) -> str:
    text = (
        f"{counted(look.episodes, 'episode')} after {duration(look.time - began)}: {look.value:.4g}"
    )
    return text if look.standard_error is None else f"{text} ± {_reach(look):.2g}"


def _range(looks: Sequence[Look]) -> tuple[float, float]:
    """Where the later looks lie: the first ones may be anywhere, and would flatten the rest."""
    late = [look for look in looks if 4 * look.episodes >= looks[-1].episodes] or list(looks)
    low = min(look.value - _reach(look) for look in late)
    high = max(look.value + _reach(look) for look in late)
    room = 0.25 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _decades(looks: Sequence[Look]) -> list[int]:
    """Round numbers of episodes between the first and the last look: some, but not many."""
    first, last = looks[0].episodes, looks[-1].episodes
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
    """Round spans of time up to the last look."""
    step = next((span for span in SPANS if last / span < MANY_TICKS), 0)
    if step == 0:
        days = ceil(last / MANY_TICKS / 86_400)
        step = 86_400 * days
    name, size = next(unit for unit in UNITS if step >= unit[1])
    marks = range(0, floor(last) + 1, step)
    return [(float(mark), f"{mark / size:g} {name}") for mark in marks]


def _steps(low: float, high: float) -> list[tuple[float, str]]:
    """Some round values with as many digits as tell them apart."""
    raw = (high - low) / 6
    size = 10.0 ** floor(log10(raw))
    step = size * min((factor for factor in (1, 2, 5, 10) if factor * size >= raw), default=10)
    digits = max(0, -floor(log10(step) + 1e-9))
    first = ceil(low / step)
    values = [number * step for number in range(first, floor(high / step) + 1)]
    if max(abs(low), abs(high)) >= 1e6:
        return [(value, f"{value:.3g}") for value in values]
    return [(value, f"{value:,.{digits}f}") for value in values]
