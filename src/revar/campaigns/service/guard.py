"""The gate in front of every page: who asks, for which host, with how much; and what is added.

Plain ASGI, so that it sees the body before anybody reads it.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from revar.campaigns.service.access import SESSION, Access, host_name, is_loopback
from revar.campaigns.service.replies import problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/health", "/login")  # and what lies under /static: they tell nothing
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


class Guard:
    """Lets a request through, or answers it."""

    def __init__(self, app: App, access: Access, largest: int) -> None:
        self._app = app
        self._access = access
        self._largest = largest
        self._limit = f"a request may have {largest:,} bytes at most"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secured = _secured(send)
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, secured)
            return
        read = 0

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._largest:
                raise HTTPException(413, self._limit, {"Connection": "close"})
            return message

        await self._app(scope, limited, secured)

    def _refusal(self, scope: MutableMapping[str, Any]) -> Response | None:
        headers = Headers(scope=scope)
        if not self._access.needed:
            if not is_loopback(host_name(headers.get("host", ""))):
                return problem(403, "wrong-host", "without tokens only loopback is served")
        elif not self._is_let_in(scope["path"], headers):
            if scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/"):
                return RedirectResponse("/login", status_code=303)
            asked = {"WWW-Authenticate": "Bearer"}
            return problem(401, "no-access", "a bearer token is needed", asked)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._largest:
            return problem(413, "too-large", self._limit, {"Connection": "close"})
        return None

    def _is_let_in(self, path: str, headers: Headers) -> bool:
        if path in OPEN_PATHS or path.startswith("/static/"):
            return True
        session = cookie_parser(headers.get("cookie", "")).get(SESSION)
        return self._access.allows(headers.get("authorization"), session)


def _secured(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *SECURITY]
        await send(message)

    return sending
