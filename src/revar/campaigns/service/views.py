"""What the pages show, ready to be written down: numbers as text, bars as percentages."""

import json
from dataclasses import dataclass
from math import isfinite
from typing import Any

from revar.campaigns.campaign import Campaign
from revar.campaigns.fold import CampaignState
from revar.campaigns.insight import Insight, insight_of
from revar.campaigns.progress import Look, looked_at
from revar.campaigns.service.charts import Chart, estimate_chart
from revar.campaigns.status import Status, status_of
from revar.campaigns.values import parsed

MOST_LEASES = 20  # shown
MOST_ACTIONS_SHOWN = 6
LONGEST_LABEL = 48  # characters of a state


@dataclass(frozen=True)
class CampaignView:
    """Everything on the page of a campaign."""

    status: Status
    chart: Chart | None
    insight: Insight | None
    average_pace: float


def view_of(campaign: Campaign) -> CampaignView:
    """One consistent look at the campaign."""

    def read(state: CampaignState, now: float) -> CampaignView:
        status = status_of(campaign.name, campaign.id, state, now)
        looks = _looks(state, now)
        return CampaignView(status, estimate_chart(looks), insight_of(state), _average_pace(status))

    return campaign.look(read)


def _looks(state: CampaignState, now: float) -> list[Look]:
    """Those kept, and one at the present."""
    looks = list(state.progress.looks)
    ledger = state.ledger
    if looks and looks[-1].episodes < ledger.finished:
        current = looked_at(now, ledger.finished, ledger.steps, state.learner.collection)
        if current is not None:
            looks.append(current)
    return looks


def _average_pace(status: Status) -> float:
    if status.first is None or status.last is None or status.last <= status.first:
        return 0.0
    return status.steps / (status.last - status.first)


# -- text -----------------------------------------------------------------------------------


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


def duration(seconds: float) -> str:
    """A span of time in its two largest units."""
    whole = max(0, int(seconds))
    units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
    parts: list[str] = []
    for name, size in units:
        if whole >= size or (name == "s" and not parts):
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])


def label(state: bytes) -> str:
    """A state for reading: an object as its fields, an array in parentheses, cut to fit."""
    value = parsed(state)
    if isinstance(value, dict):
        text = ", ".join(f"{key}: {_inner(item)}" for key, item in value.items()) or "{}"
    elif isinstance(value, list):
        text = f"({', '.join(_inner(item) for item in value)})"
    else:
        text = _inner(value)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def _inner(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def condition(status: Status) -> str:
    """A word for where a campaign stands."""
    if status.finished >= status.budget:
        return "complete"
    if status.closed:
        return "closed"
    return "running" if status.leased else "waiting"


FILTERS = {
    "number": number,
    "rate": rate,
    "half_width": half_width,
    "percent": percent,
    "duration": duration,
    "label": label,
    "condition": condition,
}
