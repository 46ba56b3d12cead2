"""The errors that a service's answers stand for: those that a local campaign raises."""

from collections.abc import Callable

from revar.campaigns.rules import (
    BudgetReservedError,
    BudgetSpentError,
    CampaignError,
    UnknownCampaignError,
)
from revar.campaigns.service.messages import ErrorDetail
from revar.campaigns.storage import StorageError
from revar.campaigns.storage.interface import CopyError, NameTakenError
from revar.errors import InputError


class TooLargeError(InputError):
    """More than the service takes in one request."""


# By code, from the campaign's name and the detail.
ERRORS: dict[str, Callable[[str, ErrorDetail], Exception]] = {
    "unknown-campaign": lambda name, _: UnknownCampaignError(name),
    "unknown-episode": lambda _, detail: CampaignError(detail.code, detail.message),
    "budget-spent": lambda _, detail: BudgetSpentError(detail.code, detail.message),
    "budget-reserved": lambda _, detail: BudgetReservedError(
        detail.code, detail.message, detail.retry_after or 0.0
    ),
    "name-taken": lambda name, _: NameTakenError(name),
    "id-taken": lambda name, _: CopyError(name),
    "storage": lambda _, detail: StorageError(detail.message),
    "too-large": lambda _, detail: TooLargeError(detail.message),
}


def campaign_error(name: str, detail: ErrorDetail) -> Exception:
    """The error of a campaign with that name, with the service's sentence."""
    made = ERRORS.get(detail.code)
    return CampaignError(detail.code, detail.message) if made is None else made(name, detail)
