"""When a call is tried again, how long it waits, and which error an answer stands for."""

from typing import Any

import pytest

from revar.campaigns import BudgetReservedError, CampaignError, StorageError, UnknownCampaignError
from revar.client.calls import Call, ask_status, delete, describe, list_names
from revar.client.exchange import (
    LONGEST_ASKED,
    LONGEST_WAIT,
    Exchange,
    Lost,
    Outcome,
    Received,
    carry_out,
    read_retry_after,
    waiting_time,
)
from revar.client.service import Service, ServiceError
from revar.errors import InputError

SERVICE = Service("http://127.0.0.1:1", "a-token-that-is-a-secret", retries=3)
NAMES = b'{"campaigns":["a"]}'
BUSY = Received(503, b'{"error":{"code":"storage","message":"the storage is away"}}')
LOST = Lost("connection refused")


def follow(exchange: Exchange[Any], outcomes: list[Outcome]) -> tuple[object, list[float]]:
    """What the exchange returns, and how long it waited before each try."""
    waits = [next(exchange).after]
    for outcome in outcomes:
        try:
            waits.append(exchange.send(outcome).after)
        except StopIteration as done:
            return done.value, waits
    raise AssertionError(f"the exchange goes on after {waits}")


def names_after(outcomes: list[Outcome]) -> tuple[object, list[float]]:
    call: Call[Any] = list_names()
    return follow(carry_out(SERVICE, call, draw=lambda: 1.0), outcomes)


def test_an_answer_that_stands_ends_it() -> None:
    found, waits = names_after([Received(200, NAMES)])
    assert found is not None
    assert waits == [0.0]


def test_waits_double() -> None:
    _, waits = names_after([LOST, BUSY, LOST, Received(200, NAMES)])
    assert waits == pytest.approx([0.0, 0.1, 0.2, 0.4])


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_what_passes_is_tried_again(status: int) -> None:
    found, waits = names_after([Received(status, b"<html>"), Received(200, NAMES)])
    assert found is not None
    assert len(waits) == 2


def test_tries_are_bounded() -> None:
    with pytest.raises(
        ServiceError, match=r"^the service at http://127.0.0.1:1 was asked 4 times .*refused$"
    ):
        names_after([LOST] * 9)


def test_the_last_answer_is_the_error() -> None:
    with pytest.raises(StorageError, match=r"^the storage is away$"):
        names_after([LOST, BUSY, BUSY, BUSY])


def test_a_wrong_certificate_is_told_at_once() -> None:
    with pytest.raises(ServiceError, match="was asked once without an answer: bad certificate"):
        names_after([Lost("bad certificate", hopeless=True)])


@pytest.mark.parametrize("tries", range(1, 12))
@pytest.mark.parametrize("draw", [0.0, 0.5, 1.0])
def test_waits_are_drawn_and_bounded(tries: int, draw: float) -> None:
    full = min(LONGEST_WAIT, 0.1 * 2 ** (tries - 1))
    assert waiting_time(tries, LOST, draw) == pytest.approx(full * (0.5 + draw / 2))
    asked = Received(429, b"", retry_after=7.0)
    assert waiting_time(tries, asked, draw) == pytest.approx(7.0 + full * (0.5 + draw / 2))
    forever = Received(429, b"", retry_after=1e9)
    assert waiting_time(tries, forever, draw) <= LONGEST_ASKED + LONGEST_WAIT


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("-1", None),
        ("nan", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert read_retry_after(header) == seconds


def refused(status: int, code: str, call: Call[Any] | None = None) -> Exception:
    body = b'{"error":{"code":"%s","message":"a sentence","retry_after":2.5}}' % code.encode()
    with pytest.raises(Exception, match=r".") as caught:
        follow(carry_out(SERVICE, call or ask_status("ads")), [Received(status, body)] * 4)
    return caught.value


def test_errors_are_those_of_local_campaigns() -> None:
    assert type(refused(422, "invalid")) is InputError
    reserved = refused(409, "budget-reserved")
    assert isinstance(reserved, BudgetReservedError)
    assert reserved.retry_after == 2.5
    conflict = refused(409, "conflict")
    assert type(conflict) is CampaignError
    assert (conflict.code, str(conflict)) == ("conflict", "a sentence")
    unknown = refused(404, "unknown-campaign", describe("ads"))
    assert type(unknown) is UnknownCampaignError
    assert str(unknown) == "there is no campaign 'ads'"


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "no-access"), (403, "wrong-host"), (404, "not-found"), (500, "failure")],
)
def test_errors_of_the_service_name_its_address(status: int, code: str) -> None:
    error = refused(status, code)
    assert type(error) is ServiceError
    assert SERVICE.address in str(error)
    assert str(error).endswith("a sentence")


@pytest.mark.parametrize(
    "answer", [Received(200, b"<html>"), Received(303, b""), Received(418, b"[]")]
)
def test_other_servers_are_noticed(answer: Received) -> None:
    with pytest.raises(ServiceError, match=r"^the service at http://127.0.0.1:1 "):
        names_after([answer])


def test_the_default_gives_up_within_half_a_minute() -> None:
    exchange = carry_out(Service("http://localhost"), list_names(), draw=lambda: 1.0)
    total = next(exchange).after
    with pytest.raises(ServiceError):
        while True:
            total += exchange.send(LOST).after
    assert 10.0 < total < 30.0


def test_what_was_removed_by_an_earlier_try_is_gone() -> None:
    gone = Received(404, b'{"error":{"code":"unknown-campaign","message":"gone"}}')
    call: Call[Any] = delete("ads")
    assert follow(carry_out(SERVICE, call, draw=lambda: 0.0), [LOST, gone])[0] is None
    with pytest.raises(UnknownCampaignError):
        follow(carry_out(SERVICE, call), [gone])
