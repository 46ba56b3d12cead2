"""How much of the machine other processes take while something is measured."""

import os
from pathlib import Path
from typing import NamedTuple

_TABLE = Path("/proc/stat")


class Used(NamedTuple):
    """CPU seconds since the machine was started, or since this process was."""

    here: float
    anywhere: float
    available: float


def used() -> Used:
    """The counters now; all zero where the system does not show them."""
    if not _TABLE.exists():
        return Used(0.0, 0.0, 0.0)
    ticks = [int(field) for field in _TABLE.read_text().partition("\n")[0].split()[1:9]]
    second = os.sysconf("SC_CLK_TCK")
    idle = ticks[3] + ticks[4]
    own = os.times()
    return Used(own.user + own.system, (sum(ticks) - idle) / second, sum(ticks) / second)


def share_of_others(before: Used, after: Used) -> float:
    """The part of all cores that other processes used between two looks, 0 if it is not known."""
    available = after.available - before.available
    if available <= 0.0:
        return 0.0
    others = (after.anywhere - before.anywhere) - (after.here - before.here)
    return max(0.0, others / available)
