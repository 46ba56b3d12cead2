"""Ray as an engine: connecting to a cluster, or starting one on this machine."""

import os
import socket
from typing import Any

from revar.errors import InputError

ANSWER_SECONDS = 5.0


def start_ray(ray: Any, address: str | None, cores: int | None) -> bool:
    """Connect to Ray; True if that was done here, so that it must be undone.

    Without an address a cluster of so many cores (None: as there are) is started on loopback.
    """
    if ray.is_initialized():
        return False
    # Ray would otherwise send usage statistics to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is not None:
        try:
            _knock(address)
            ray.init(address=address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"no Ray cluster answers at {address!r}: {error}") from error
        return True
    ray.init(num_cpus=cores, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    return True


def _knock(address: str) -> None:
    """Raise OSError at once where nothing listens: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
