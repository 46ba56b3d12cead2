"""Whether an event takes effect, and the errors a caller meets where it does not."""

from dataclasses import dataclass
from enum import Enum

from revar.errors import RefusedError


class Effect(Enum):
    """What an event does."""

    TAKEN = "taken"
    REPEATED = "repeated"  # it had taken effect before
    REFUSED = "refused"


@dataclass(frozen=True)
class Verdict:
    """An effect; a refusal says why, by a code for programs and a sentence for people."""

    effect: Effect
    code: str = ""
    reason: str = ""


TAKEN = Verdict(Effect.TAKEN)
REPEATED = Verdict(Effect.REPEATED)


def refused(code: str, reason: str) -> Verdict:
    """The event changes nothing."""
    return Verdict(Effect.REFUSED, code, reason)


class CampaignError(RefusedError):
    """A campaign does not do what was asked; `code` says why."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class UnknownCampaignError(CampaignError):
    """There is no campaign of that name."""

    def __init__(self, name: str) -> None:
        super().__init__("unknown-campaign", f"there is no campaign {name!r}")


class BudgetSpentError(CampaignError):
    """Every episode is finished, or the campaign was closed: there is nothing left to do."""


class BudgetReservedError(CampaignError):
    """Every episode that is left is with some worker; one may come free after `retry_after`."""

    def __init__(self, code: str, reason: str, retry_after: float) -> None:
        super().__init__(code, reason)
        self.retry_after = retry_after
