"""How the service replies: records and errors as JSON."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from revar.campaigns.rules import BudgetReservedError, CampaignError
from revar.campaigns.service.messages import ErrorDetail, ErrorMessage
from revar.campaigns.storage.interface import CopyError, NameTakenError, StorageError
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
    if isinstance(error, RequestError):
        return error_reply(error.status, error.code, str(error))
    if isinstance(error, BudgetReservedError):
        later = {"Retry-After": str(max(1, round(error.retry_after)))}
        return error_reply(409, error.code, str(error), later)
    if isinstance(error, CampaignError):
        status = 404 if error.code in NOT_FOUND else 422 if error.code in INVALID else 409
        return error_reply(status, error.code, str(error))
    if isinstance(error, NameTakenError | CopyError):
        code = "name-taken" if isinstance(error, NameTakenError) else "id-taken"
        return error_reply(409, code, str(error))
    if isinstance(error, StorageError):
        return error_reply(503, "storage", str(error))
    if isinstance(error, InputError):
        return error_reply(422, "invalid", str(error))
    raise error
