"""How the service replies: records and errors as JSON."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import msgspec
from starlette.responses import Response

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
