"""Tokens, sessions of the dashboard, and what they allow; wrong tokens are throttled."""

import hashlib
import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from revar.errors import InputError

SHORTEST_TOKEN = 16  # characters
READ_ONLY = "read-only"  # behind a token in its line
SESSION_SECONDS = 12 * 3600
MOST_SESSIONS = 10_000
FILE_SECONDS = 1.0  # between two looks at the token file
MOST_WRONG = 10  # tokens from one address
WRONG_SECONDS = 60.0  # in that time
MOST_ADDRESSES = 10_000  # that are remembered

_logger = logging.getLogger("revar.access")


class Right(IntEnum):
    """What a caller may do."""

    NONE = 0
    READ = 1
    WRITE = 2


class ThrottledError(Exception):
    """Too many wrong tokens came from an address; it may ask again after so many seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__("too many wrong tokens came from this address")
        self.retry_after = retry_after


def parse_token(line: str) -> dict[bytes, Right]:
    """The digest of the token of a line with what it allows; nothing of an empty line or a comment.

    A comment begins with #. The error does not repeat the line, which may be a token nearly.
    """
    token, _, kind = line.strip().partition(" ")
    if not token or token.startswith("#"):
        return {}
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InputError(f"a token must be at least {SHORTEST_TOKEN} printable ASCII characters")
    if kind.strip() not in ("", READ_ONLY):
        raise InputError(f"a token is followed by nothing, or by a space and {READ_ONLY}")
    return {_digest(token): Right.READ if kind else Right.WRITE}


def read_tokens(path: Path) -> tuple[dict[bytes, Right], list[str]]:
    """The tokens of a file, and what is wrong with lines of it."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    tokens: dict[bytes, Right] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        try:
            tokens |= parse_token(line.decode("utf-8", "replace"))
        except InputError as error:
            problems.append(f"{path}, line {number}: {error}")
    return tokens, problems


@dataclass(frozen=True)
class Session:
    """Of a browser: when it ends, and whose token began it."""

    ends: float
    token: bytes  # its digest


class Access:
    """Checks tokens in constant time; keeps their digests only.

    A token file is read again when it changes. Sessions live as long as their token, and the
    service.
    """

    def __init__(self, tokens: Sequence[str] = (), file: Path | None = None) -> None:
        self._given: dict[bytes, Right] = {}
        for token in tokens:
            if not (found := parse_token(token)):
                raise InputError(
                    f"a token must be at least {SHORTEST_TOKEN} printable ASCII characters, and "
                    f"not begin with #"
                )
            self._given |= found
        self._file = None if file is None else _TokenFile(file)
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._throttle = _Throttle()

    @property
    def needed(self) -> bool:
        """Whether a token is asked for."""
        return bool(self._given) or self._file is not None

    def right_of(self, authorization: str | None, session: str | None, address: str) -> Right:
        """What a request with these headers may do; `ThrottledError` after many wrong tokens."""
        if not self.needed:
            return Right.WRITE
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            right = self.check(token.strip(), address)
            if right is not Right.NONE:
                return right
        return Right.NONE if session is None else self._right_of_session(session)

    def check(self, token: str, address: str) -> Right:
        """What a token allows; answered in the same time for every wrong token."""
        digest = _digest(token)
        self._throttle.admit(address, digest)
        right = Right.NONE
        for known, allowed in self._tokens().items():
            if hmac.compare_digest(known, digest):
                right = allowed
        self._throttle.note(address, digest, right is not Right.NONE)
        return right

    def new_session(self, token: str) -> str:
        """What a browser shows instead of the token, for some hours or until it logs out."""
        session = secrets.token_urlsafe(32)
        self._sessions[_digest(session)] = Session(time.time() + SESSION_SECONDS, _digest(token))
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def end_session(self, session: str) -> None:
        """The session is worth nothing from now on."""
        self._sessions.pop(_digest(session), None)

    def _right_of_session(self, session: str) -> Right:
        found = self._sessions.get(_digest(session))
        if found is None or found.ends <= time.time():
            return Right.NONE
        return self._tokens().get(found.token, Right.NONE)

    def _tokens(self) -> dict[bytes, Right]:
        return self._given if self._file is None else {**self._file.tokens(), **self._given}


class _TokenFile:
    """The tokens of a file as it stands, which must have one at first, and no line that is wrong.

    Later a line that is wrong is left out, so that tokens that were removed beside it are worth
    nothing. A file that cannot be read changes nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = self._look()
        self._known, problems = read_tokens(path)
        if problems:
            raise InputError(problems[0])
        if not self._known:
            raise InputError(f"{path} holds no token")
        self._next_look = time.monotonic() + FILE_SECONDS

    def tokens(self) -> dict[bytes, Right]:
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + FILE_SECONDS
            version = self._look()
            if version != self._version:
                self._version = version
                self._read_again()
        return self._known

    def _read_again(self) -> None:
        try:
            self._known, problems = read_tokens(self._path)
        except InputError as error:
            _logger.error("the tokens stay as they were: %s", error)
            return
        for problem in problems:
            _logger.error("a token was left out: %s", problem)
        _logger.info("%s was read again: %d tokens", self._path, len(self._known))

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class _Throttle:
    """Counts wrong tokens by address. Callers that were right before are not held up by others."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()  # since when, how many
        self._right: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def admit(self, address: str, digest: bytes) -> None:
        """Refuse to look at a token, right or wrong, from an address that guesses."""
        began, count = self._wrong.get(address, (0.0, 0))
        if count < MOST_WRONG or (address, digest) in self._right:
            return
        left = began + WRONG_SECONDS - time.monotonic()
        if left > 0:
            raise ThrottledError(left)
        del self._wrong[address]

    def note(self, address: str, digest: bytes, right: bool) -> None:
        """Remember what came of a token."""
        if right:
            self._right[address, digest] = None
            self._right.move_to_end((address, digest))
            while len(self._right) > MOST_ADDRESSES:
                self._right.popitem(last=False)
            return
        now = time.monotonic()
        began, count = self._wrong.get(address, (now, 0))
        if now - began >= WRONG_SECONDS:
            began, count = now, 0
        self._wrong[address] = began, count + 1
        while len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
