"""What the pages say: numbers, states and conditions as text."""

import json
from math import isfinite
from typing import Any

from revar.campaigns.status import Status
from revar.campaigns.values import parsed
from revar.campaigns.wording import counted, duration

LONGEST_LABEL = 48  # characters of a state
LONGEST_NUMBER = 20  # digits of a whole number within a state


def number(value: float | None) -> str:
    """Four digits, or a dash."""
    if value is None or not isfinite(value):
        return "-"
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3e}"


def rate(value: float) -> str:
    """Three digits without noise behind the point."""
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def half_width(status: Status) -> str:
    """Half the 95% interval."""
    if status.estimate is None:
        return "-"
    low, high = status.estimate.interval
    half = (high - low) / 2
    return f"{half:.2g}" if isfinite(half) else "∞"


def percent(share: float) -> str:
    """A share as a percentage without false precision."""
    return f"{100 * share:.0f}%" if share >= 0.095 or share == 0 else f"{100 * share:.1f}%"


def label(state: bytes) -> str:
    """A state for reading: an object as its fields, an array in parentheses, cut to fit."""
    value = parsed(state)
    if isinstance(value, dict):
        text = ", ".join(f"{key}: {_inner(item)}" for key, item in value.items()) or "{}"
    elif isinstance(value, list):
        text = f"({', '.join(_inner(item) for item in value)})"
    else:
        text = _inner(value) or '""'
    text = text[: 2 * LONGEST_LABEL]
    # Characters that cannot be seen, or that turn the text beside them around, by their code.
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def _inner(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and len(str(value)) > LONGEST_NUMBER:
        digits = str(abs(value))
        return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:4]}…e+{len(digits) - 1}"
    return json.dumps(value, ensure_ascii=False)


def condition(status: Status) -> str:
    """A word for where a campaign stands."""
    if status.finished >= status.budget:
        return "complete"
    if status.closed:
        return "closed"
    if not status.leases:
        return "waiting"
    return "stalled" if all(lease.overdue for lease in status.leases) else "running"


FILTERS = {
    "number": number,
    "rate": rate,
    "half_width": half_width,
    "percent": percent,
    "duration": duration,
    "counted": counted,
    "label": label,
    "condition": condition,
}
