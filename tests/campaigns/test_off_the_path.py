"""What requests do not wait for: plans, campaigns of others that are opened, and downloads."""

import asyncio
import json
import sqlite3
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from revar.campaigns import Campaign, MemoryStorage, Storage, StorageError
from revar.campaigns.export import FORMATS, export_text, read_json_lines
from revar.campaigns.log import Progress
from revar.campaigns.service import opening, threads
from revar.campaigns.service.app import make_app
from revar.campaigns.service.messages import CAMPAIGN_HEADER
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.service.opening import Opener
from revar.campaigns.state import CampaignState
from revar.campaigns.storage import SQLiteStorage
from revar.campaigns.storage.interface import Entry, StoredEvent
from revar.strategies.strategy import make_plan
from tests.campaigns.test_service import code
from tests.campaigns.test_service_operation import value
from tests.client.services import running

LOOPBACK = "http://127.0.0.1"
MANY = 60


def test_acts_do_not_wait_for_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("revar.campaigns.log.PLANNED_AT_ONCE", 0)
    planning, may_end = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        if threading.current_thread().name.startswith("revar-plan"):
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


@pytest.fixture(autouse=True)
def patient_pages() -> None:
    """Here pages wait as long as they do for users."""


@pytest.fixture
def slow_opening(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Campaigns take a while to open; the names of those that were opened."""
    opened: list[str] = []
    open_campaign = Opener.open

    def slow(opener: Opener, name: str, progress: Progress) -> Campaign:
        time.sleep(0.1)
        if name == "broken":
            raise StorageError("event 3 cannot be read")
        opened.append(name)
        return open_campaign(opener, name, progress)

    monkeypatch.setattr(Opener, "open", slow)
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


def test_one_that_fails_leaves_the_others_on_the_overview(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a way that nobody has thought of."""
    storage = MemoryStorage()
    for name in ("failing", "sound"):
        Campaign.create(storage, name, actions=2, horizon=1, episodes=1)
    status = Campaign.status

    def fail(campaign: Campaign) -> Any:
        if campaign.name == "failing":
            raise LookupError("nobody has thought of this")
        return status(campaign)

    monkeypatch.setattr(Campaign, "status", fail)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        page = client.get("/")
    assert page.status_code == 200
    assert "its log says why" in page.text and "/campaigns/sound" in page.text
    assert "campaign failing could not be shown" in caplog.text
    assert "LookupError: nobody has thought of this" in caplog.text


def test_one_that_is_opened_does_not_hold_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    for name in ("slow", "quick"):
        Campaign.create(storage, name, actions=2, horizon=1, episodes=1)
    opens, may_open = threading.Event(), threading.Event()
    open_campaign = Opener.open

    def wait(opener: Opener, name: str, progress: Progress) -> Campaign:
        if name == "slow":
            progress(30, 40)
            opens.set()
            may_open.wait(20)
        return open_campaign(opener, name, progress)

    monkeypatch.setattr(Opener, "open", wait)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        waiting = threading.Thread(target=lambda: client.get("/api/campaigns/slow"))
        waiting.start()
        try:
            assert opens.wait(20)
            assert client.get("/api/campaigns/quick").status_code == 200
            page = client.get("/campaigns/slow")
            assert (page.status_code, "75% of its log" in page.text) == (202, True)
            assert "opening… 75%" in client.get("/").text
        finally:
            may_open.set()
            waiting.join()


def test_opening_rests_while_others_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    for name in ("slow", "quick"):
        Campaign.create(storage, name, actions=2, horizon=1, episodes=1)
    read, may_go_on = threading.Event(), threading.Event()
    took: list[float] = []

    def read_pages(
        storage: Storage, entry: Entry, progress: Progress, state: CampaignState | None
    ) -> Campaign:
        if entry.name == "slow":
            for page in range(3):
                if page == 1:  # while which others ask
                    read.set()
                    assert may_go_on.wait(20)
                time.sleep(0.2)
                began = time.monotonic()
                progress(page, 3)
                took.append(time.monotonic() - began)
        return Campaign(storage, entry, progress, state)

    monkeypatch.setattr(opening, "Campaign", read_pages)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        waiting = threading.Thread(target=lambda: client.get("/api/campaigns/slow"))
        waiting.start()
        assert read.wait(20)
        assert client.get("/api/campaigns/quick").status_code == 200
        may_go_on.set()
        waiting.join()
    assert took[1] > 0.2 * opening.REST > max(took[0], took[2])


class HeldUp(MemoryStorage):
    """Gives a download the first page of a log, and the next only once its caller has read that."""

    def __init__(self) -> None:
        super().__init__()
        self.was_read = threading.Event()

    def read(self, campaign_id: str, after: int, limit: int) -> list[StoredEvent]:
        if after > 0 and threading.current_thread().name.startswith("revar-download"):
            assert self.was_read.wait(20), "nothing has reached the caller"
        return super().read(campaign_id, after, limit)


@pytest.mark.parametrize(("form", "above"), [("jsonl", 0), ("csv", 1)])
def test_a_download_is_made_piece_by_piece(
    form: str, above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first lines have left, and are read, before the log is."""
    monkeypatch.setattr("revar.campaigns.log.PAGE", 30)
    monkeypatch.setattr(threads, "FIRST_PIECE", 100)
    monkeypatch.setattr(threads, "PIECE", 200)
    storage = HeldUp()
    policy = {"s": [0.5, 0.5]}
    campaign = Campaign.create(
        storage, "ads", policy=policy, horizon=1, episodes=40, strategy="on-policy", seed=1
    )
    for number, episode in enumerate(campaign.episodes()):
        episode.act("s")
        episode.reward(number, None)
    with (
        running(storage) as address,
        urllib.request.urlopen(f"{address}/api/campaigns/ads/data?format={form}") as reply,
    ):
        first = reply.readline()
        storage.was_read.set()
        lines = [first, *reply]
    assert b"".join(lines).decode() == "".join(
        export_text(campaign.definition, campaign.events(), form)
    )
    assert len(lines) == 40 + above


def test_a_download_rests_while_others_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    rested: list[float] = []
    sleep = asyncio.sleep

    async def rest(seconds: float) -> None:
        rested.append(seconds)
        await sleep(0)

    monkeypatch.setattr("revar.campaigns.service.threads.asyncio.sleep", rest)
    for name in ("FIRST_PIECE", "PIECE"):
        monkeypatch.setattr(threads, name, 1)
    storage = MemoryStorage()
    Campaign.create(storage, "ads", actions=2, horizon=1, episodes=1)

    def lines(campaign: object) -> Iterator[str]:
        for number in range(6):
            time.sleep(0.05)
            yield f"{number}\n"

    async def run() -> None:
        campaigns = threads.CampaignThreads(storage, Metrics())
        got = []
        async for piece in await campaigns.download("ads", lines):
            got.append(piece)
            if piece in ("1\n", "4\n"):
                await campaigns.find("ads")
        assert got == [f"{number}\n" for number in range(6)]
        assert len(rested) == 2
        assert min(rested) >= 0.05 * threads.REST
        await campaigns.stop()

    asyncio.run(run())


def _played(storage: Storage) -> Campaign:
    policy = {"s": [0.5, 0.5]}
    campaign = Campaign.create(
        storage, "ads", policy=policy, horizon=1, episodes=9, strategy="on-policy", seed=1
    )
    for number, episode in enumerate(campaign.episodes()):
        episode.act("s")
        episode.reward(number, None)
    return campaign


@pytest.mark.parametrize("form", FORMATS)
def test_a_download_does_not_open_the_campaign(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    campaign = _played(storage)
    whole = "".join(export_text(campaign.definition, campaign.events(), form))

    def refuse(*_: object) -> None:
        raise AssertionError("it is opened")

    monkeypatch.setattr(Campaign, "_open", refuse)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        path = f"/api/campaigns/ads/data?format={form}"
        assert client.get(path, headers={CAMPAIGN_HEADER: campaign.id}).text == whole
        assert value(client, "revar_open_campaigns") == 0
        refused = client.get(path, headers={CAMPAIGN_HEADER: "f" * 32})
        assert code(refused) == (409, "another-campaign")
        assert code(client.get("/api/campaigns/none/data")) == (404, "unknown-campaign")


def test_a_download_that_cannot_begin_is_an_error(tmp_path: Path) -> None:
    """A log that nobody can replay, and a storage that does not answer."""
    with SQLiteStorage(tmp_path / "c.db") as storage:
        campaign = Campaign.create(
            storage, "ads", actions=2, horizon=1, episodes=5, strategy="on-policy", seed=1
        )
        episode = campaign.start_episode()
        episode.act("s", [0.5, 0.5])
        episode.reward(1.0, None)
        with sqlite3.connect(tmp_path / "c.db") as connection:
            changed = "replace(body, '\"probabilities\":[0.5', '\"probabilities\":[0.7')"
            connection.execute(f"UPDATE revar_events SET body = {changed}")
        connection.close()
        with TestClient(make_app(storage), base_url=LOOPBACK) as client:
            refused = client.get("/api/campaigns/ads/data")
            assert code(refused) == (409, "unreadable")
            assert "the log of campaign 'ads' cannot be read" in refused.text
            storage.close()
            assert code(client.get("/api/campaigns/ads/data")) == (503, "storage")


@pytest.mark.parametrize("form", FORMATS)
def test_a_download_that_breaks_off_says_so(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A log that is damaged further in: a last line says why, and the reply has no end."""
    monkeypatch.setattr(threads, "FIRST_PIECE", 1)
    monkeypatch.setattr(threads, "PIECE", 1)
    monkeypatch.setattr("revar.campaigns.log.PAGE", 6)
    with SQLiteStorage(tmp_path / "c.db") as storage:
        campaign = Campaign.create(
            storage, "ads", actions=2, horizon=1, episodes=9, strategy="on-policy", seed=1
        )
        for state in "abc":
            episode = campaign.start_episode()
            episode.act(state, [0.5, 0.5])
            episode.reward(1.0, None)
        with sqlite3.connect(tmp_path / "c.db") as connection:
            changed = "replace(body, '\"probabilities\":[0.5', '\"probabilities\":[0.7')"
            connection.execute(f"UPDATE revar_events SET body = {changed} WHERE position > 6")
        connection.close()
        reason = "the log of campaign 'ads' cannot be read"
        with (
            running(storage) as address,
            urllib.request.urlopen(f"{address}/api/campaigns/ads/data?format={form}") as reply,
            pytest.raises(IncompleteRead) as broken,
        ):
            reply.read()
    *whole, last = broken.value.partial.decode().splitlines()
    assert len(whole) == 2 + (form == "csv")
    if form == "csv":
        assert last.startswith(f'error,"{reason}')
    else:
        assert json.loads(last)["error"]["message"].startswith(reason)
        with pytest.raises(msgspec.ValidationError):
            read_json_lines(broken.value.partial)
    assert f"the download of campaign ads broke off: {reason}" in caplog.text
    assert "Traceback" not in caplog.text
