"""Requests of the usual form, read and answered without the bookkeeping of h11.

That is a POST which arrives whole while nothing else is under way on its connection: what acts and
rewards are. Whatever is odd about a request leaves it to h11. What is read here h11 would have
read alike; tests hold the two against each other.
"""

import re
from typing import Any, NamedTuple

import h11

LONGEST = 16_384  # bytes of such a request
LINE = re.compile(rb"POST (/[!-~]*) HTTP/1\.1")
FIELD = re.compile(rb"([0-9A-Za-z-]+): ([!-~](?:[ -~]*[!-~])?)")
LENGTH = re.compile(rb"[0-9]{1,5}")
ONCE = (b"host", b"content-length")  # each of them stands there once
# They change how a request is read, or what becomes of its connection.
UNUSUAL = {b"connection", b"expect", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
KEPT = (b"connection", b"keep-alive")  # what a connection is anyway


class UsualRequest(NamedTuple):
    """What was read: names of headers are in lower case."""

    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


def read_usual(data: bytes) -> UsualRequest | None:
    """The request that the data is, no less and no more; None where it is not a usual one."""
    head, end, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    line = LINE.fullmatch(first)
    if line is None or not end or len(data) > LONGEST:
        return None
    headers = []
    for each in lines:
        field = FIELD.fullmatch(each)
        if field is None:
            return None
        headers.append((field[1].lower(), field[2]))
    names = [name for name, _ in headers]
    odd = not UNUSUAL.isdisjoint(names) and any(
        each != KEPT for each in headers if each[0] in UNUSUAL
    )
    if odd or any(names.count(name) != 1 for name in ONCE):
        return None
    length = headers[names.index(b"content-length")][1]
    if LENGTH.fullmatch(length) is None or int(length) != len(body):
        return None
    return UsualRequest(line[1], headers, body)


class UsualReply:
    """Stands in for h11's connection while such a request is answered: writes the reply."""

    they_are_waiting_for_100_continue = False

    def __init__(self) -> None:
        self.our_state: Any = h11.SEND_RESPONSE
        self._head = b""

    def send(self, event: h11.Event) -> bytes:
        """What is to be sent now: the head waits for what follows it."""
        if isinstance(event, h11.Response):
            fields = event.headers.raw_items()
            known = {name.lower(): value for name, value in fields}
            if b"content-length" not in known:  # then its end is that of the connection
                known[b"connection"] = b"close"
                fields.append((b"connection", b"close"))
            if known.get(b"connection") == b"close":
                self.our_state = h11.MUST_CLOSE
            lines = [b"HTTP/1.1 %d %s" % (event.status_code, event.reason)]
            lines += [b"%s: %s" % field for field in fields]
            self._head = b"\r\n".join((*lines, b"", b""))
        elif isinstance(event, h11.Data):
            self._head, data = b"", self._head + event.data
            return data
        return b""
