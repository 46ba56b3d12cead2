"""Replies: records as JSON, and errors with a sensible status."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from revar.campaigns.service.messages import ErrorMessage, Problem
from revar.campaigns.storage.interface import NameTakenError, StorageError
from revar.campaigns.verdicts import BudgetReservedError, CampaignError
from revar.errors import InputError

_ENCODER = msgspec.json.Encoder()
NOT_FOUND = ("unknown-campaign", "unknown-episode")
INVALID = ("invalid", "unknown-state")


def reply(record: Any, status: int = 200) -> Response:
    """A record as JSON."""
    return Response(_ENCODER.encode(record), status, media_type="application/json")


def problem(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """An error as JSON."""
    response = reply(ErrorMessage(Problem(code, message)), status)
    response.headers.update(headers or {})
    return response


def from_error(error: Exception) -> Response:
    """The reply to an error that a caller may meet; others are raised again."""
    if isinstance(error, BudgetReservedError):
        later = {"Retry-After": str(max(1, round(error.retry_after)))}
        return problem(409, error.code, str(error), later)
    if isinstance(error, CampaignError):
        status = 404 if error.code in NOT_FOUND else 422 if error.code in INVALID else 409
        return problem(status, error.code, str(error))
    if isinstance(error, NameTakenError):
        return problem(409, "name-taken", str(error))
    if isinstance(error, StorageError):
        return problem(503, "storage", str(error))
    if isinstance(error, InputError):
        return problem(422, "invalid", str(error))
    raise error
