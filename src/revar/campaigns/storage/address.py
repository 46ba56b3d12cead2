"""Addresses as people are shown them, without passwords, and hosts as the network knows them."""

import re

from revar.errors import InputError

# The password ends at the last @ before a space: it may hold anything else.
_PASSWORDS = (
    (re.compile(r"(//[^\s:/@]*):[^\s]*@"), r"\1:***@"),
    (re.compile(r"(?i)(password=)[^\s&]*"), r"\1***"),
)


def without_password(text: object) -> str:
    """The text with three stars in the place of every password of an address."""
    shown = str(text)
    for pattern, replacement in _PASSWORDS:
        shown = pattern.sub(replacement, shown)
    return shown


def host_in_ascii(host: str) -> str:
    """A host, perhaps with a port, as the network knows it; `InputError` where it is no name."""
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise InputError(f"{host!r:.80} is no name of a host: {error}") from None
