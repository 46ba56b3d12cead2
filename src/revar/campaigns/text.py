"""Text for people: numbers, spans of time and states."""

import json
from math import isfinite
from typing import Any

from revar.campaigns.events import decode_state
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import chance_text

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
LONGEST_STATE = 48  # characters of a state
LONGEST_NUMBER = 20  # digits of a whole number within a state


def duration(seconds: float) -> str:
    """A span of time in its two largest units."""
    whole = max(0, int(seconds))
    parts: list[str] = []
    for name, size in UNITS:
        if whole >= size or (name == "s" and not parts):
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])


def quantity(number: int, noun: str) -> str:
    """1 step, 2,000 steps."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def amount(value: float) -> str:
    """What was spent or is left, without noise behind the point: 1,234 or 0.25."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.6g}"


def number(value: float | None) -> str:
    """Four digits, or a dash."""
    if value is None or not isfinite(value):
        return "-"
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3e}"


def rate(value: float) -> str:
    """Three digits without noise behind the point."""
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def half_width(estimate: Estimate) -> str:
    """Half the interval."""
    low, high = estimate.interval
    half = (high - low) / 2
    return f"{half:.2g}" if isfinite(half) else "∞"


def percent(share: float) -> str:
    """A share as a percentage without false precision."""
    return f"{100 * share:.0f}%" if share >= 0.095 or share == 0 else f"{100 * share:.1f}%"


def interval(estimate: Estimate) -> str:
    """Its ends, or a dash."""
    low, high = estimate.interval
    return f"{number(low)} to {number(high)}" if isfinite(low) else "-"


def state_text(state: bytes) -> str:
    """A state for reading: an object as its fields, an array in parentheses, cut to fit."""
    value = decode_state(state)
    if isinstance(value, dict):
        text = ", ".join(f"{key}: {_inner(item)}" for key, item in value.items()) or "{}"
    elif isinstance(value, list):
        text = f"({', '.join(_inner(item) for item in value)})"
    else:
        text = _inner(value) or '""'
    text = text[: 2 * LONGEST_STATE]
    # Characters that cannot be seen, or that turn the text beside them around, by their code.
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= LONGEST_STATE else f"{text[: LONGEST_STATE - 1]}…"


def quoted(state: Any) -> str:
    """A state in a message, not longer than a line."""
    text: str = state.decode()
    return text if len(text) <= 60 else f"{text[:57]}..."


def _inner(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and len(str(value)) > LONGEST_NUMBER:
        digits = str(abs(value))
        return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:4]}…e+{len(digits) - 1}"
    return json.dumps(value, ensure_ascii=False)


# What templates may say after a value and a bar.
FILTERS = {
    function.__name__: function
    for function in (
        *(duration, quantity, amount, number, rate, half_width, interval),
        *(percent, chance_text, state_text),
    )
}
