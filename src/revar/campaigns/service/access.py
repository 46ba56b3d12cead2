"""Who may ask: hosts, rights, and the gate that checks them.

Without tokens the service answers on loopback only, and only to requests that name loopback as
their host: a page from elsewhere in somebody's browser must not reach it by a name of its own.
"""

import ipaddress
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from revar.campaigns.service.asgi import App, Message, Receive, Send
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.service.replies import error_reply, retry_after
from revar.campaigns.service.tokens import Access, Right, ThrottledError

SESSION = "revar_session"  # cookie
OPEN_PATHS = ("/health", "/ready", "/login")  # and what lies under /static: they tell nothing
READING = ("GET", "HEAD")
RIGHT = "revar.right"  # of the caller, in the scope of a request
# As ASGI has them: bytes, names in lower case.
SECURITY = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' "
        b"'unsafe-inline'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
        b"frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether a host name or address leads to this machine alone."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """The host of a Host header, without its port."""
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.partition(":")[0]


class Gate:
    """Lets a request through, or answers it, and adds the security headers.

    Plain ASGI, so that it sees the body before anybody reads it.
    """

    def __init__(self, app: App, access: Access, metrics: Metrics, largest: int) -> None:
        self._app = app
        self._access = access
        self._metrics = metrics
        self._largest = largest
        self._limit = f"a request may have {largest:,} bytes at most"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def secured(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *SECURITY]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, secured)
            return
        read = 0

        async def receive_limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._largest:
                if started:  # nobody could be told, and what goes on would have no end
                    return {"type": "http.disconnect"}
                raise HTTPException(413, self._limit, {"Connection": "close"})
            return message

        await self._app(scope, receive_limited, secured)

    def _refusal(self, scope: MutableMapping[str, Any]) -> Response | None:
        headers = Headers(scope=scope)
        try:
            refusal = self._without_right(scope, headers)
        except ThrottledError as error:
            self._metrics.throttled.inc()
            return throttled_reply(error)
        if refusal is not None:
            return refusal
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._largest:
            return error_reply(413, "too-large", self._limit, {"Connection": "close"})
        return None

    def _without_right(self, scope: MutableMapping[str, Any], headers: Headers) -> Response | None:
        path, method = scope["path"], scope["method"]
        scope[RIGHT] = Right.WRITE
        refusal = None
        if not self._access.needed:
            if not is_loopback(host_name(headers.get("host", ""))):
                refusal = error_reply(403, "wrong-host", "without tokens only loopback is served")
            return refusal
        if path in OPEN_PATHS or path.startswith("/static/"):
            return None
        session = cookie_parser(headers.get("cookie", "")).get(SESSION)
        right = self._access.right_of(headers.get("authorization"), session, caller_of(scope))
        scope[RIGHT] = right
        if right is Right.NONE:
            if method in READING and not path.startswith(("/api/", "/metrics")):
                return RedirectResponse("/login", status_code=303)
            asked = {"WWW-Authenticate": "Bearer"}
            refusal = error_reply(401, "no-access", "a bearer token is needed", asked)
        elif right is Right.READ and method not in READING and path != "/logout":
            refusal = error_reply(403, "read-only", "this token allows to read, and nothing else")
        return refusal


def caller_of(scope: MutableMapping[str, Any]) -> str:
    """The address that a request came from."""
    client = scope.get("client")
    return client[0] if client else ""


def throttled_reply(error: ThrottledError) -> Response:
    """The reply to an address that sent many wrong tokens."""
    return error_reply(429, "throttled", str(error), retry_after(error.retry_after))
