"""Running the service: its socket, its server, and its end."""

import signal
import socket
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from revar.campaigns.service.access import is_loopback
from revar.campaigns.storage import Storage
from revar.errors import InputError, RefusedError, require_extra

BACKLOG = 1024  # callers that may wait to be let in
SWITCH = 0.001  # seconds after which a waiting thread may have its turn
PATIENCE = 10  # seconds that requests under way get when the service is told to stop


def run(
    storage: Storage,
    *,
    host: str,
    port: int,
    tokens: Sequence[str],
    largest_request: int,
    started: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM; `started` is told the address."""
    uvicorn = require_extra("uvicorn", "serve")
    require_extra("starlette", "serve")
    require_extra("jinja2", "serve")
    from revar.campaigns.service.app import make_app  # noqa: PLC0415

    if not tokens and not is_loopback(host):
        raise InputError(
            f"host is {host!r}: outside loopback a token is needed (--token-file or REVAR_TOKEN)"
        )
    app = make_app(storage, tokens, largest_request=largest_request)
    with _bound(host, port) as listener:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=PATIENCE,
        )
        shown, number = listener.getsockname()[:2]
        started(f"http://[{shown}]:{number}" if ":" in shown else f"http://{shown}:{number}")
        # The thread that commits must not wait long for the one that talks to callers.
        sys.setswitchinterval(SWITCH)
        # The server takes these signals over while it runs, and raises them again at its end.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _nothing)
        uvicorn.Server(config).run(sockets=[listener])


def _nothing(number: int, frame: FrameType | None) -> None:
    """The service has come to its end in good order: there is nothing left to do."""


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise RefusedError(f"there is no address {host!r} to listen at: {error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)  # from here on callers wait instead of being refused
    except OSError as error:
        listener.close()
        raise RefusedError(f"cannot listen at {host} port {port}: {error}") from None
    return listener
