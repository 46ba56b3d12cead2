"""Facts about the machine, without which a measured time says little."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numba
import numpy as np


def facts() -> dict[str, str]:
    """What the numbers depend on, by name."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "CPU": _cpu_model(),
        "cores": str(_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "numba": str(numba.__version__),
        "C compiler": _compiler(),
        "load before": _load(),
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_model() -> str:
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _compiler() -> str:
    try:
        shown = subprocess.run(["cc", "--version"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return shown.stdout.partition("\n")[0]


def _load() -> str:
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"
