"""What requests do not wait for: plans, campaigns of others that are opened, and downloads."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from revar.campaigns import Campaign, MemoryStorage, Storage, StorageError
from revar.campaigns.service import threads
from revar.campaigns.service.app import make_app
from revar.strategies.strategy import make_plan
from tests.campaigns.test_service_operation import value

LOOPBACK = "http://127.0.0.1"
MANY = 60


def test_acts_do_not_wait_for_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("revar.campaigns.log.PLANNED_AT_ONCE", 0)
    planning, may_end = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        if threading.current_thread().name.startswith("plan"):
            planning.set()
            assert may_end.wait(20)
        return make_plan(*arguments)

    monkeypatch.setattr("revar.collection.plans.make_plan", slow)
    storage = MemoryStorage()
    policy = {"s": [0.5, 0.5]}
    Campaign.create(storage, "ads", policy=policy, horizon=1, episodes=500, seed=1)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:

        def play(number: int) -> None:
            path = f"/api/campaigns/ads/episodes/e{number}"
            client.post("/api/campaigns/ads/episodes", json={"episode": f"e{number}"})
            assert client.post(f"{path}/act", json={"step": 0, "state": "s"}).status_code == 200
            told = {"step": 0, "reward": number % 3, "next_state": None}
            assert client.post(f"{path}/reward", json=told).status_code == 200

        number = 0
        while not planning.is_set():
            assert number < 50
            play(number := number + 1)
            planning.wait(0.01)
        for _ in range(20):
            play(number := number + 1)
        assert value(client, "revar_plan_seconds_count") == 0
        may_end.set()
        while value(client, "revar_plan_seconds_count") == 0:
            time.sleep(0.01)
        before = Campaign.open(storage, "ads").read(lambda state, _: state.collection.plans_made)
        play(number := number + 1)
        after = Campaign.open(storage, "ads").read(lambda state, _: state.collection.plans_made)
        assert after == before + 1  # which is in force with the first act that finds it made


@pytest.fixture
def slow_opening(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Campaigns take a while to open; the names of those that were opened."""
    opened: list[str] = []
    open_campaign = Campaign.open

    def slow(storage: Storage, name: str) -> Campaign:
        time.sleep(0.1)
        if name == "broken":
            raise StorageError("event 3 cannot be read")
        opened.append(name)
        return open_campaign(storage, name)

    monkeypatch.setattr(Campaign, "open", slow)
    yield opened


def test_the_first_overview_of_many_campaigns(slow_opening: list[str]) -> None:
    """It shows what is open within a second, and the rest when it is, with few threads."""
    storage = MemoryStorage()
    for number in range(MANY):
        name = "broken" if number == MANY - 3 else f"campaign-{number}"
        Campaign.create(storage, name, actions=2, horizon=1, episodes=1)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        began = time.monotonic()
        page = client.get("/")
        assert time.monotonic() - began < 3.0
        assert 5 <= len(slow_opening) < MANY - 1
        assert page.text.count("opening…") >= MANY - 1 - len(slow_opening)
        assert "event 3 cannot be read" in page.text
        names = [each.name for each in threading.enumerate()]
        assert sum(name.startswith(("campaign", threads.POOL)) for name in names) < 20
        while "opening…" in client.get("/").text:
            assert time.monotonic() - began < 20
        assert len(slow_opening) == MANY - 1  # each of them once


def test_one_that_is_opened_does_not_hold_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    for name in ("slow", "quick"):
        Campaign.create(storage, name, actions=2, horizon=1, episodes=1)
    may_open = threading.Event()
    open_campaign = Campaign.open

    def wait(storage: Storage, name: str) -> Campaign:
        assert name == "quick" or may_open.wait(20)
        return open_campaign(storage, name)

    monkeypatch.setattr(Campaign, "open", wait)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        waiting = threading.Thread(target=lambda: client.get("/api/campaigns/slow"))
        waiting.start()
        try:
            assert client.get("/api/campaigns/quick").status_code == 200
        finally:
            may_open.set()
            waiting.join()


def test_a_download_is_made_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line leaves before the last is made."""
    made: list[int] = []

    def lines(*_: Any) -> Iterator[str]:
        for number in range(3 * threads.LINES):
            made.append(number)
            yield f"{number}\n"

    monkeypatch.setattr("revar.campaigns.service.api.export_text", lines)
    storage = MemoryStorage()
    Campaign.create(storage, "ads", actions=2, horizon=1, episodes=1)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        reply = client.get("/api/campaigns/ads/data")
        assert reply.text.splitlines() == [str(number) for number in range(3 * threads.LINES)]
    assert len(made) == 3 * threads.LINES
