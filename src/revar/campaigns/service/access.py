"""Who may ask: bearer tokens, sessions of the dashboard, hosts, and the gate that checks them.

Without tokens the service answers on loopback only, and only to requests that name loopback as
their host: a page from elsewhere in somebody's browser must not reach it by a name of its own.
"""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import lru_cache
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from revar.campaigns.service.replies import error_reply
from revar.errors import InputError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

SHORTEST_TOKEN = 16  # characters
SESSION = "revar_session"  # cookie
SESSION_SECONDS = 12 * 3600
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


class Access:
    """Checks tokens in constant time; keeps their digests only."""

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        for token in tokens:
            if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
                raise InputError(
                    f"a token must be at least {SHORTEST_TOKEN} printable ASCII characters"
                )
        self._digests = [_digest(token) for token in tokens]
        # Sessions end with the service: nobody else knows this key.
        self._key = secrets.token_bytes(32)

    @property
    def needed(self) -> bool:
        """Whether a token is asked for."""
        return bool(self._digests)

    def knows(self, token: str) -> bool:
        """Whether it is one of the tokens; answered in the same time for every wrong token."""
        digest = _digest(token)
        found = False
        for known in self._digests:
            found |= hmac.compare_digest(known, digest)
        return found

    def allows(self, authorization: str | None, session: str | None) -> bool:
        """Whether a request with these headers has a valid token or session."""
        if not self.needed:
            return True
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and self.knows(token.strip()):
            return True
        return session is not None and self._is_session(session)

    def new_session(self) -> str:
        """What a browser shows instead of the token, for some hours."""
        ends = str(int(time.time()) + SESSION_SECONDS)
        return f"{ends}.{self._signature(ends)}"

    def _is_session(self, session: str) -> bool:
        ends, _, signature = session.partition(".")
        genuine = hmac.compare_digest(self._signature(ends).encode(), signature.encode())
        return genuine and ends.isdigit() and int(ends) > time.time()

    def _signature(self, ends: str) -> str:
        return hmac.new(self._key, ends.encode(), hashlib.sha256).hexdigest()


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


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class Gate:
    """Lets a request through, or answers it, and adds the security headers.

    Plain ASGI, so that it sees the body before anybody reads it.
    """

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
        secured = _add_headers(send)
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
                raise HTTPException(413, self._limit, {"Connection": "close"})
            return message

        await self._app(scope, receive_limited, secured)

    def _refusal(self, scope: MutableMapping[str, Any]) -> Response | None:
        headers = Headers(scope=scope)
        if not self._access.needed:
            if not is_loopback(host_name(headers.get("host", ""))):
                return error_reply(403, "wrong-host", "without tokens only loopback is served")
        elif not self._is_let_in(scope["path"], headers):
            if scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/"):
                return RedirectResponse("/login", status_code=303)
            asked = {"WWW-Authenticate": "Bearer"}
            return error_reply(401, "no-access", "a bearer token is needed", asked)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._largest:
            return error_reply(413, "too-large", self._limit, {"Connection": "close"})
        return None

    def _is_let_in(self, path: str, headers: Headers) -> bool:
        if path in OPEN_PATHS or path.startswith("/static/"):
            return True
        session = cookie_parser(headers.get("cookie", "")).get(SESSION)
        return self._access.allows(headers.get("authorization"), session)


def _add_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *SECURITY]
        await send(message)

    return send_with_headers
