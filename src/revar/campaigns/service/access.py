"""Who may ask: bearer tokens, sessions of the dashboard, and the hosts that may be named.

Without tokens the service answers on loopback only, and only to requests that name loopback as
their host: a page from elsewhere in somebody's browser must not reach it by a name of its own.
"""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Sequence
from functools import lru_cache

from revar.errors import InputError

SHORTEST_TOKEN = 16  # characters
SESSION = "revar_session"  # cookie
SESSION_SECONDS = 12 * 3600


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
        """Whether it is one of the tokens; takes as long for every wrong one."""
        digest = _digest(token)
        found = False
        for known in self._digests:
            found |= hmac.compare_digest(known, digest)
        return found

    def allows(self, authorization: str | None, session: str | None) -> bool:
        """Whether the headers of a request carry a token or a session that is valid now."""
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
