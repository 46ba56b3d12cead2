"""The service as an ASGI application, and the server that runs it."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import FrameType

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from revar.campaigns.service import pages
from revar.campaigns.service.access import Gate, is_loopback
from revar.campaigns.service.api import ROUTES
from revar.campaigns.service.connections import (
    BACKLOG,
    MOST_CONNECTIONS,
    Connections,
    LimitedServer,
)
from revar.campaigns.service.logs import configure_logs
from revar.campaigns.service.messages import LARGEST_REQUEST
from revar.campaigns.service.metrics import Metrics, RequestRecorder
from revar.campaigns.service.openapi import openapi_document
from revar.campaigns.service.replies import error_reply, reply
from revar.campaigns.service.threads import POOL, CampaignThreads
from revar.campaigns.service.tokens import Access
from revar.campaigns.service.watching import WatchedStorage
from revar.campaigns.service.webhook import Webhook, check_webhook
from revar.campaigns.state import CampaignState
from revar.campaigns.storage import Storage, StorageError
from revar.errors import InputError, RefusedError

FOLDER = Path(__file__).parent
SWITCH = 0.001  # seconds after which a waiting thread may have its turn
PATIENCE = 10  # seconds that requests under way get when the service is told to stop
LAST_PATIENCE = 1.0  # seconds for threads to end, after that
READY_PATIENCE = 2.0  # seconds within which a storage that is ready takes something
READY_SECONDS = 1.0  # for which an answer about that holds
_logger = logging.getLogger("revar.service")


def make_app(
    storage: Storage,
    tokens: Sequence[str] = (),
    *,
    token_file: Path | None = None,
    largest_request: int = LARGEST_REQUEST,
    metrics: Metrics | None = None,
    webhook: str | None = None,
) -> RequestRecorder:
    """The application; it closes the storage when it is shut down.

    Without tokens it answers only requests that name loopback as their host. `webhook` is the
    address that is told when campaigns end or stall.
    """
    access = Access(tokens, token_file)
    measured = metrics or Metrics()
    if webhook is not None:
        check_webhook(webhook)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        campaigns = CampaignThreads(WatchedStorage(storage, measured), measured)
        app.state.campaigns = campaigns
        app.state.readiness = Readiness(campaigns)
        measured.gauge("revar_open_campaigns", "Campaigns in memory", lambda: len(campaigns.open))
        for name, meaning, count in (
            ("revar_open_leases", "Open episodes of these that hold a place", _leases),
            ("revar_plans", "Plans that were made for these", _plans),
        ):
            measured.gauge(name, meaning, partial(_sum, campaigns, count))
        watching = None
        if webhook is not None:
            watching = asyncio.create_task(Webhook(webhook, campaigns, measured).watch())
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
            await campaigns.stop()

    app = Starlette(
        routes=[
            *(Route(route.path, route.endpoint, methods=[route.method]) for route in ROUTES),
            Route("/health", health),
            Route("/ready", ready),
            Route("/metrics", show_metrics),
            Route("/api/openapi.json", document),
            *pages.routes(),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
        ],
        exception_handlers={HTTPException: _http_error, 500: _failure},
        lifespan=lifespan,
    )
    app.state.access = access
    app.state.metrics = measured
    return RequestRecorder(Gate(app, access, measured, largest_request), measured)


def _leases(state: CampaignState) -> int:
    return len(state.leases)


def _plans(state: CampaignState) -> int:
    return state.collection.plans_made


def _sum(campaigns: CampaignThreads, count: Callable[[CampaignState], int]) -> int:
    return sum(campaign.peek(count) for campaign in campaigns.open)


class Readiness:
    """Whether the storage takes something; asked often, it looks once in a while."""

    def __init__(self, campaigns: CampaignThreads) -> None:
        self._campaigns = campaigns
        self._looked = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Raise `StorageError` where it does not, or takes long."""
        loop = asyncio.get_running_loop()
        if self._looking is None or (
            self._looking.done() and loop.time() > self._looked + READY_SECONDS
        ):
            self._looking = loop.create_task(self._campaigns.check_writable())
            self._looking.add_done_callback(_take_note)
            self._looked = loop.time()
        try:
            await asyncio.wait_for(asyncio.shield(self._looking), READY_PATIENCE)
        except TimeoutError:
            raise StorageError("the storage takes too long") from None


def _take_note(looking: "asyncio.Task[None]") -> None:
    """Who asked may have gone when it fails at last; asyncio would log that nobody was told."""
    if not looking.cancelled():
        looking.exception()


async def health(request: Request) -> Response:  # noqa: ARG001 - as routes are called
    """The service is alive."""
    return reply({"status": "ok"})


async def ready(request: Request) -> Response:
    """The storage can be written: callers may be sent here."""
    try:
        await request.app.state.readiness.check()
    except StorageError:  # what it says is for those who may ask
        return error_reply(503, "storage", "the storage cannot be written")
    return reply({"status": "ready"})


async def show_metrics(request: Request) -> Response:
    """What the service has counted and timed."""
    metrics: Metrics = request.app.state.metrics
    return metrics.reply()


async def document(request: Request) -> Response:  # noqa: ARG001 - as routes are called
    """The API, described."""
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
    token_file: Path | None = None,
    most_connections: int = MOST_CONNECTIONS,
    log_json: bool = False,
    webhook: str | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `started` is told the address."""
    if not tokens and token_file is None and not is_loopback(host):
        raise InputError(
            f"host is {host!r}: outside loopback a token is needed (--token-file or REVAR_TOKEN)"
        )
    configure_logs(as_json=log_json)
    metrics = Metrics()
    app = make_app(
        storage,
        tokens,
        token_file=token_file,
        largest_request=largest_request,
        metrics=metrics,
        webhook=webhook,
    )
    connections = Connections(most_connections, lambda why: metrics.dropped.labels(why).inc())
    with listen(host, port) as listener:
        shown, number = listener.getsockname()[:2]
        started(f"http://[{shown}]:{number}" if ":" in shown else f"http://{shown}:{number}")
        # The thread that commits must not wait long for the one that talks to callers.
        sys.setswitchinterval(SWITCH)
        # The server takes these signals over while it runs, and raises them again at its end.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _nothing)
        LimitedServer(app, connections, PATIENCE).run(sockets=[listener])
    left = _threads_left(LAST_PATIENCE)
    if left:  # Python would wait for them, and they may wait for a storage that never answers
        _logger.error("ended while these were still at work: %s", ", ".join(left))
        logging.shutdown()
        os._exit(1)


def _threads_left(patience: float) -> list[str]:
    """The names of threads that are still at work after so many seconds, though all is stopped."""
    left = [each for each in threading.enumerate() if each.name.startswith(POOL)]
    ends = time.monotonic() + patience
    for thread in left:
        thread.join(max(0.0, ends - time.monotonic()))
    return [thread.name for thread in left if thread.is_alive()]


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
