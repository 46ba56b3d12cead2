"""How the service replies: records and errors as JSON, and downloads that end where they end."""

import csv
import io
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from math import ceil
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from revar.campaigns.rules import BudgetReservedError, CampaignError
from revar.campaigns.service.messages import ErrorDetail, ErrorMessage
from revar.campaigns.storage.interface import (
    CopyError,
    MissingCampaignError,
    NameTakenError,
    StorageError,
)
from revar.errors import InputError

NOT_FOUND = ("unknown-campaign", "unknown-episode")
INVALID = ("invalid", "unknown-state", "forbidden-action")
_ENCODER = msgspec.json.Encoder()
_logger = logging.getLogger("revar.service")


class RequestError(Exception):
    """A request that cannot be read."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def reply(record: Any, status: int = 200) -> Response:
    """A record as JSON."""
    return Response(_ENCODER.encode(record), status, media_type="application/json")


def error_reply(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """An error as JSON."""
    response = reply(ErrorMessage(ErrorDetail(code, message)), status)
    response.headers.update(headers or {})
    return response


def reply_to_error(error: Exception) -> Response:
    """The reply to an error that a caller may meet; others are raised again."""
    status, detail = describe(error)
    response = reply(ErrorMessage(detail), status)
    if detail.retry_after is not None:
        response.headers.update(retry_after(detail.retry_after))
    return response


class Download(StreamingResponse):
    """Text in pieces, as it is made.

    Where that fails midway, a last line says why, and the reply is left without its end: every
    caller sees that the connection was closed too early, and nobody takes it for the whole.
    """

    def __init__(self, name: str, form: str, pieces: AsyncIterator[str]) -> None:
        self._name, self._form = name, form
        media = "application/x-ndjson" if form == "jsonl" else "text/csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
        super().__init__(pieces, media_type=media, headers=headers)

    async def stream_response(self, send: Send) -> None:
        """Send all pieces."""
        try:
            await super().stream_response(send)
        except (CampaignError, StorageError) as error:
            _logger.error("the download of campaign %s broke off: %s", self._name, error)
            line = _last_line(self._form, describe(error)[1])
            await send({"type": "http.response.body", "body": line, "more_body": True})


def _last_line(form: str, problem: ErrorDetail) -> bytes:
    """The line that ends a download which is not whole."""
    if form == "jsonl":
        return _ENCODER.encode(ErrorMessage(problem)) + b"\n"
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(["error", problem.message])
    return line.getvalue().encode()


def retry_after(seconds: float) -> dict[str, str]:
    """The header that asks a caller to wait so long; it has whole seconds."""
    return {"Retry-After": str(max(1, ceil(seconds)))}


def describe(error: Exception) -> tuple[int, ErrorDetail]:
    """Status and text of an error that a caller may meet; others are raised again."""
    if isinstance(error, RequestError):
        status, code = error.status, error.code
    elif isinstance(error, CampaignError):
        code = error.code
        status = 404 if code in NOT_FOUND else 422 if code in INVALID else 409
    elif isinstance(error, MissingCampaignError):
        status, code = 404, "unknown-campaign"
    elif isinstance(error, NameTakenError | CopyError):
        status, code = 409, "name-taken" if isinstance(error, NameTakenError) else "id-taken"
    elif isinstance(error, StorageError):
        status, code = 503, "storage"
    elif isinstance(error, InputError):
        status, code = 422, "invalid"
    else:
        raise error
    wait = error.retry_after if isinstance(error, BudgetReservedError) else None
    return status, ErrorDetail(code, str(error), wait)


async def from_first(first: str, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """The pieces of a download, of which the first was made already."""
    yield first
    async for piece in pieces:
        yield piece


def take_lines(lines: Iterator[str], wanted: int) -> tuple[str, float]:
    """So many characters of the next lines, or a few more, and how long that took."""
    began, taken, length = time.monotonic(), [], 0
    for line in lines:
        taken.append(line)
        length += len(line)
        if length >= wanted:
            break
    return "".join(taken), time.monotonic() - began
