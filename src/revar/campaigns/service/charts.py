"""Geometry of the dashboard's chart: looks at the estimate as points, bands and ticks.

Coordinates are shares of the plot's width and height in percent, so that the page scales the plot
to any width while its labels keep their size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from revar.campaigns.progress import Look

FIRST = 5  # episodes: before, the line says nothing and its interval fills the page
REACH = 1.959963984540054  # of a 95% interval, in standard errors


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
    """The estimate with its interval against finished episodes, on a logarithmic axis."""

    line: str  # points of an SVG polyline
    band: str  # points of an SVG polygon, empty while no error is known
    marks: tuple[Mark, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


def estimate_chart(looks: Sequence[Look]) -> Chart | None:
    """None while there are fewer than two looks."""
    later = [look for look in looks if look.episodes >= FIRST and look.standard_error is not None]
    looks = later if len(later) > 1 else looks
    if len(looks) < 2:
        return None
    low, high = _range(looks)
    first, last = log10(looks[0].episodes), log10(looks[-1].episodes)

    def left(episodes: float) -> float:
        return 100.0 * (log10(episodes) - first) / max(last - first, 1e-9)

    def top(value: float) -> float:
        return 100.0 * (high - value) / (high - low)

    def point(look: Look, value: float) -> str:
        return f"{left(look.episodes):.2f},{min(max(top(value), -100.0), 200.0):.2f}"

    known = [look for look in looks if look.standard_error is not None]
    upper = [point(look, look.value + _reach(look)) for look in known]
    lower = [point(look, look.value - _reach(look)) for look in reversed(known)]
    return Chart(
        line=" ".join(point(look, look.value) for look in looks),
        band=" ".join(upper + lower) if len(known) > 1 else "",
        marks=tuple(
            Mark(left(look.episodes), top(look.value), _told(look))
            for look in looks
            if 0.0 <= top(look.value) <= 100.0  # the last one always lies there
        ),
        across=tuple(
            Tick(left(number), f"{number:,}")
            for number in _decades(looks[0].episodes, looks[-1].episodes)
        ),
        up=tuple(Tick(top(value), text) for value, text in _steps(low, high)),
    )


def _reach(look: Look) -> float:
    return REACH * (look.standard_error or 0.0)


def _told(look: Look) -> str:
    text = f"{look.episodes:,} episodes: {look.value:.4g}"
    return text if look.standard_error is None else f"{text} ± {_reach(look):.2g}"


def _range(looks: Sequence[Look]) -> tuple[float, float]:
    """Where the later looks lie: the first ones may be anywhere, and would flatten the rest."""
    late = [look for look in looks if 4 * look.episodes >= looks[-1].episodes] or list(looks)
    low = min(look.value - _reach(look) for look in late)
    high = max(look.value + _reach(look) for look in late)
    room = 0.25 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _decades(first: int, last: int) -> list[int]:
    """Round numbers of episodes between the first and the last look."""
    few = last / first > 30
    factors = (1,) if last / first > 3000 else (1, 3) if few else (1, 2, 5)
    marks = [
        factor * 10**power
        for power in range(floor(log10(first)), ceil(log10(last)) + 1)
        for factor in factors
    ]
    return [mark for mark in marks if first <= mark <= last]


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
