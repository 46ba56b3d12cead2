"""A service as its callers know it: the address, the token, and how long to try."""

import math
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from revar.campaigns.storage import StorageError
from revar.campaigns.storage.address import host_in_ascii
from revar.errors import InputError

TIMEOUT = 30.0  # seconds to wait for a connection, or for the next piece of an answer
RETRIES = 8  # after the first try: some 15 seconds in all


class ServiceError(StorageError):
    """The service cannot be reached, lets nobody in, or does not answer as it should."""


@dataclass(frozen=True)
class Service:
    """Where a service is, and how it is called; checked, and without its token when printed."""

    address: str
    token: str | None = field(default=None, repr=False)
    timeout: float = TIMEOUT
    retries: int = RETRIES

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", _check_address(self.address))
        if self.token is not None:
            _check_token(self.token)
        if not 0.0 < self.timeout < math.inf:
            raise InputError(f"timeout is {self.timeout!r} seconds; it must be above 0")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise InputError(f"retries is {self.retries!r}; it must be a whole number from 0")

    def __str__(self) -> str:
        return f"the service at {self.address}"

    @property
    def headers(self) -> dict[str, str]:
        """What every request says."""
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


def _check_address(address: Any) -> str:
    """The address without a slash at its end."""
    rule = "it must be like http://127.0.0.1:8321 or https://host/path"
    if not isinstance(address, str) or not address.isprintable() or " " in address:
        raise InputError(f"the address of a service is {address!r}; {rule}")
    try:
        parts = urlsplit(address)
        _ = parts.port, host_in_ascii(parts.netloc.rpartition("@")[2])
    except ValueError as error:
        raise InputError(f"the address of a service cannot be used: {error}; {rule}") from None
    if parts.username is not None or parts.password is not None:
        raise InputError(
            f"the address of the service at {parts.hostname} names a user; give a token instead"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(f"the address of a service is {address!r}; {rule}")
    return address.rstrip("/")


def _check_token(token: Any) -> None:
    """Headers are printable ASCII; the token itself is never printed."""
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
        raise InputError("the token must be a text of printable ASCII characters")
