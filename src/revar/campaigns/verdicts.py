"""Verdicts: what an event does."""

from dataclasses import dataclass
from enum import Enum


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


def refusal(code: str, reason: str) -> Verdict:
    """The verdict that the event changes nothing."""
    return Verdict(Effect.REFUSED, code, reason)
