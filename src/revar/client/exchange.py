"""One call from the first try to its answer: when to try again, and what an answer stands for.

Nothing here sends or waits. An exchange yields what is to be tried next, is told what came of it,
and returns the answer, so that plain and async connections share it.
"""

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec

from revar.campaigns.service.messages import ErrorMessage
from revar.client.calls import Call
from revar.client.errors import ERRORS, campaign_error
from revar.client.service import Service, ServiceError
from revar.errors import InputError

TRANSIENT = (408, 429, 502, 503, 504)  # statuses that another try may change
FIRST_WAIT = 0.1  # seconds before the second try, doubled before every further one
LONGEST_WAIT = 5.0
LONGEST_ASKED = 60.0  # seconds that a service may ask to wait for between two tries

Answer = TypeVar("Answer")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Attempt:
    """Send the request of a call, after so many seconds."""

    call: Call[Any]
    after: float


@dataclass(frozen=True)
class Received:
    """An answer arrived, whatever it says."""

    status: int
    body: bytes
    retry_after: float | None = None  # seconds


@dataclass(frozen=True)
class Lost:
    """No answer arrived; nobody knows whether the service has acted."""

    reason: str
    hopeless: bool = False  # another try will fail as well


Outcome: TypeAlias = Received | Lost
Exchange: TypeAlias = Generator[Attempt, Outcome, Result]


def carry_out(
    service: Service,
    call: Call[Answer],
    after: float = 0.0,
    draw: Callable[[], float] = random.random,
) -> Exchange[Answer]:
    """Try until there is an answer that stands, or the tries are used up."""
    tries = 0
    while True:
        outcome = yield Attempt(call, after)
        tries += 1
        if isinstance(outcome, Received) and outcome.status not in TRANSIENT:
            if call.removes and tries > 1 and outcome.status == 404:
                return call.read(outcome.body)  # an earlier try has done it
            return _read(service, call, outcome)
        if tries > service.retries or (isinstance(outcome, Lost) and outcome.hopeless):
            raise _give_up(service, call, outcome, tries)
        after = waiting_time(tries, outcome, draw())


def waiting_time(tries: int, outcome: Outcome, draw: float) -> float:
    """Seconds to the next try: doubled each time, half of it drawn, after what was asked for."""
    backoff = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tries - 1))
    asked = (outcome.retry_after or 0.0) if isinstance(outcome, Received) else 0.0
    return min(LONGEST_ASKED, max(0.0, asked)) + backoff * (0.5 + 0.5 * draw)


def read_retry_after(header: str | None) -> float | None:
    """The seconds of a Retry-After header; a date counts as none."""
    return float(header) if header is not None and header.isdecimal() else None


def _read(service: Service, call: Call[Answer], received: Received) -> Answer:
    if not 200 <= received.status < 300:
        raise _error(service, call, received)
    try:
        return call.read(received.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(
            f"{service} gave an answer to {call.method} {call.path} that cannot be read: {error}"
        ) from None


def _give_up(service: Service, call: Call[Any], outcome: Outcome, tries: int) -> Exception:
    if isinstance(outcome, Received):
        return _error(service, call, outcome)
    times = "once" if tries == 1 else f"{tries} times"
    return ServiceError(f"{service} was asked {times} without an answer: {outcome.reason}")


def _error(service: Service, call: Call[Any], received: Received) -> Exception:
    """The error that a local campaign would have raised, with the service's sentence."""
    try:
        detail = msgspec.json.decode(received.body, type=ErrorMessage).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ServiceError(
            f"{service} answered {call.method} {call.path} with status {received.status}, and not "
            f"as a service of campaigns does"
        )
    if detail.code == "invalid" and not call.checked:
        return InputError(detail.message)
    if detail.code in ERRORS or received.status in (409, 422):
        return campaign_error(call.campaign, detail)
    return ServiceError(f"{service} refused {call.method} {call.path}: {detail.message}")
