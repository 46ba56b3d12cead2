"""The service as an ASGI application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from revar.campaigns.service import pages
from revar.campaigns.service.access import Access
from revar.campaigns.service.guard import Guard
from revar.campaigns.service.openapi import openapi_document
from revar.campaigns.service.replies import problem, reply
from revar.campaigns.service.routes import ROUTES
from revar.campaigns.service.workers import Campaigns
from revar.campaigns.storage import Storage

LARGEST_REQUEST = 2**20  # bytes
FOLDER = Path(__file__).parent


def make_app(
    storage: Storage, tokens: Sequence[str] = (), *, largest_request: int = LARGEST_REQUEST
) -> Guard:
    """The application; it closes the storage when it is shut down.

    Without tokens it answers only requests that name loopback as their host.
    """
    access = Access(tokens)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.campaigns = Campaigns(storage)
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
    return Guard(app, access, largest_request)


async def _health(request: Request) -> Response:  # noqa: ARG001 - as routes are called
    return reply({"status": "ok"})


async def _document(request: Request) -> Response:  # noqa: ARG001 - as routes are called
    return reply(openapi_document())


async def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001 - as routes are called
    """What Starlette refuses: no such page, no such method; and a body that is too long."""
    if not isinstance(error, HTTPException):
        raise error
    code = {404: "not-found", 405: "method", 413: "too-large"}.get(error.status_code, "refused")
    return problem(error.status_code, code, error.detail, error.headers)


async def _failure(request: Request, error: Exception) -> Response:  # noqa: ARG001 - as routes are called
    """A mistake of ours: the caller learns no more than that."""
    return problem(500, "failure", "the service failed; its log says why")
