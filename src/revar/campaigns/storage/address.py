"""Addresses of storages in messages: without the passwords that they may hold."""

import re

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
