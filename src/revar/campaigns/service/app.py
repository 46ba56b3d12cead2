"""The service as an ASGI application, and the server that runs it."""

import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from revar.campaigns.service import pages
from revar.campaigns.service.access import Access, Gate, is_loopback
from revar.campaigns.service.api import ROUTES
from revar.campaigns.service.openapi import openapi_document
from revar.campaigns.service.replies import error_reply, reply
from revar.campaigns.service.threads import CampaignThreads
from revar.campaigns.storage import Storage
from revar.errors import InputError, RefusedError

LARGEST_REQUEST = 2**20  # bytes
FOLDER = Path(__file__).parent
BACKLOG = 1024  # callers that may wait to be let in
SWITCH = 0.001  # seconds after which a waiting thread may have its turn
PATIENCE = 10  # seconds that requests under way get when the service is told to stop


def make_app(
    storage: Storage, tokens: Sequence[str] = (), *, largest_request: int = LARGEST_REQUEST
) -> Gate:
    """The application; it closes the storage when it is shut down.

    Without tokens it answers only requests that name loopback as their host.
    """
    access = Access(tokens)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.campaigns = CampaignThreads(storage)
        try:
            yield
        finally:
            await app.state.campaigns.stop()

    app = Starlette(
        routes=[
            *(Route(route.path, route.endpoint, methods=[route.method]) for route in ROUTES),
            Route("/health", _health),
            Route("/api/openapi.json", _document),
            *pages.routes(),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
        ],
        exception_handlers={HTTPException: _http_error, 500: _failure},
        lifespan=lifespan,
    )
    app.state.access = access
    return Gate(app, access, largest_request)


async def _health(request: Request) -> Response:  # noqa: ARG001 - as routes are called
    return reply({"status": "ok"})


async def _document(request: Request) -> Response:  # noqa: ARG001 - as routes are called
    return reply(openapi_document())


async def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001 - as routes are called
    """What Starlette refuses: no such page, no such method; and a body that is too long."""
    if not isinstance(error, HTTPException):
        raise error
    code = {404: "not-found", 405: "method", 413: "too-large"}.get(error.status_code, "refused")
    return error_reply(error.status_code, code, error.detail, error.headers)


async def _failure(request: Request, error: Exception) -> Response:  # noqa: ARG001 - as routes are called
    """A mistake of ours: the caller is told nothing else."""
    return error_reply(500, "failure", "the service failed; its log says why")


def serve(
    storage: Storage,
    *,
    host: str,
    port: int,
    tokens: Sequence[str],
    largest_request: int,
    started: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM; `started` is told the address."""
    if not tokens and not is_loopback(host):
        raise InputError(
            f"host is {host!r}: outside loopback a token is needed (--token-file or REVAR_TOKEN)"
        )
    app = make_app(storage, tokens, largest_request=largest_request)
    with listen(host, port) as listener:
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
    """The service has stopped in good order: nothing is left to do."""


def listen(host: str, port: int) -> socket.socket:
    """A socket at that address; callers wait from here on instead of being refused."""
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
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise RefusedError(f"cannot listen at {host} port {port}: {error}") from None
    return listener
