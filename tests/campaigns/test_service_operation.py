"""What somebody needs who runs a service: health, readiness, metrics, logs, a webhook."""

import gc
import http.server
import io
import json
import logging
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from revar.campaigns import Campaign, MemoryStorage, StorageError
from revar.campaigns.service import webhook
from revar.campaigns.service.app import READY_SECONDS, make_app
from revar.campaigns.service.logs import MOST_ALIKE, REQUESTS, WINDOW, JsonFormatter, RateLimit
from revar.campaigns.service.metrics import Metrics
from revar.campaigns.service.opening import Opener
from revar.campaigns.service.threads import CampaignThreads
from revar.campaigns.service.watching import WatchedStorage
from revar.campaigns.storage.interface import LockedError
from revar.errors import InputError
from tests.campaigns.serving import call, serving
from tests.campaigns.worlds import Clock

LOOPBACK = "http://127.0.0.1"
QUESTION = {"name": "ads", "actions": 2, "horizon": 1, "episodes": 2, "seed": 1, "lease": 30}


class Fragile(MemoryStorage):
    """A storage that fails when it is told to."""

    reading_fails = writing_fails = False

    def append(self, campaign_id: str, bodies: Any) -> Any:
        self._fail(self.writing_fails)
        return super().append(campaign_id, bodies)

    def read(self, campaign_id: str, after: int, limit: int) -> Any:
        self._fail(self.reading_fails)
        return super().read(campaign_id, after, limit)

    def check_writable(self) -> None:
        self._fail(self.writing_fails)

    def _fail(self, fails: bool) -> None:
        if fails:
            raise StorageError("the disk is full")


def value(client: TestClient, line: str) -> float:
    """A number of the metrics."""
    text = client.get("/metrics").text
    (found,) = [each.rpartition(" ")[2] for each in text.splitlines() if each.startswith(line)]
    return float(found)


def test_health_is_not_readiness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("revar.campaigns.service.app.READY_SECONDS", 0.0)
    storage = Fragile()
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        assert client.get("/ready").json() == {"status": "ready"}
        storage.writing_fails = True
        reply = client.get("/ready")
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "storage")
        assert client.get("/health").status_code == 200
        storage.writing_fails = False
        assert client.get("/ready").status_code == 200


def test_a_storage_that_fails_late_fills_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits any more when it fails."""
    monkeypatch.setattr("revar.campaigns.service.app.READY_PATIENCE", 0.05)
    monkeypatch.setattr("revar.campaigns.service.app.READY_SECONDS", 0.0)
    storage, may_fail = Fragile(), threading.Event()
    storage.writing_fails = True
    fail = storage.check_writable
    monkeypatch.setattr(storage, "check_writable", lambda: may_fail.wait(20) and fail())
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        assert client.get("/ready").status_code == 503
        may_fail.set()
        until(lambda: "the storage cannot be written" in caplog.text)
        time.sleep(0.05)
        assert client.get("/ready").status_code == 503
        gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_full_disk_is_not_ready(tmp_path: Path) -> None:
    """A service that may not write into files; what was collected can still be read."""
    with serving(f"sqlite:///{tmp_path}/full.db") as service:

        def may_write(size: int) -> None:
            _, hard = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
            limits = size if size >= 0 else hard, hard
            resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, limits)
            time.sleep(READY_SECONDS + 0.1)

        assert call(service.address, "/api/campaigns", QUESTION)[0] == 201
        assert call(service.address, "/ready")[0] == 200
        may_write(1)
        assert call(service.address, "/ready")[0] == 503
        assert call(service.address, "/health")[0] == 200
        assert call(service.address, "/api/campaigns/ads/episodes", {})[0] == 503
        assert call(service.address, "/api/campaigns/ads")[0] == 200
        may_write(-1)
        assert call(service.address, "/ready")[0] == 200
        assert call(service.address, "/api/campaigns/ads/episodes", {})[0] == 201


def test_postgres_says_whether_it_can_be_written(postgres_url: str) -> None:
    import psycopg
    from psycopg import sql

    from revar.campaigns.storage.postgres import PostgresStorage

    with PostgresStorage(postgres_url) as storage:
        storage.check_writable()
        with psycopg.connect(postgres_url, autocommit=True) as other:
            name = sql.Identifier(other.info.dbname)
            query = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on")
            other.execute(query.format(name))
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(StorageError, match="read-only"):
            storage.check_writable()


def test_metrics_count_what_happens() -> None:
    storage = Fragile()
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        client.post("/api/campaigns", json=QUESTION)
        client.post("/api/campaigns/ads/episodes", json={"episode": "e"})
        asked = {"step": 0, "state": "s", "probabilities": [0.5, 0.5]}
        client.post("/api/campaigns/ads/episodes/e/act", json=asked)
        client.get("/nothing")
        client.request("BREW", "/api/campaigns")
        assert (
            value(client, 'revar_requests_total{method="POST",operation="act",status="200"}') == 1
        )
        assert value(client, 'revar_request_seconds_count{operation="act"}') == 1
        assert (
            value(client, 'revar_requests_total{method="other",operation="none",status="404"}') == 1
        )
        assert value(client, "revar_open_leases") == 1
        assert value(client, "revar_open_campaigns") == 1
        assert value(client, "revar_plans") >= 1
        storage.writing_fails = True
        assert client.post("/api/campaigns/ads/episodes", json={}).status_code == 503
        assert value(client, 'revar_storage_errors_total{access="written"}') == 1
        assert value(client, 'revar_storage_up{access="written"}') == 0
        assert value(client, 'revar_storage_up{access="read"}') == 1
        assert "BREW" not in client.get("/metrics").text


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = Fragile()
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        client.post("/api/campaigns", json=QUESTION)
        storage.writing_fails = True
        for _ in range(5):
            assert client.post("/api/campaigns/ads/episodes", json={}).status_code == 503
            assert client.get("/api/campaigns/ads").status_code == 200
        storage.writing_fails = False
        for _ in range(2):
            client.post("/api/campaigns/ads/episodes", json={})
    lines = [each.getMessage() for each in caplog.records if each.name == "revar.storage"]
    assert len(lines) == 2
    assert lines[0] == "the storage cannot be written: the disk is full"
    assert "can be written again" in lines[1]
    assert "5 calls that failed" in lines[1]


def test_a_locked_campaign_is_no_outage(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = MemoryStorage()
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        client.post("/api/campaigns", json=QUESTION)
        monkeypatch.setattr(storage, "append", raise_locked)
        assert client.post("/api/campaigns/ads/episodes", json={}).status_code == 503
        assert value(client, 'revar_storage_errors_total{access="written"}') == 1
        assert value(client, 'revar_storage_up{access="written"}') == 1
    assert [each for each in caplog.records if each.name == "revar.storage"] == []


def raise_locked(*_: Any) -> Any:
    raise LockedError("others hold its row")


class Overlapping(Fragile):
    """Something else happens while it looks for a campaign."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], object]] = []

    def find(self, name: str) -> Any:
        fails = self.reading_fails
        self.meanwhile.pop()()
        self._fail(fails)
        return super().find(name)


def test_calls_that_outlast_a_change_do_not_undo_it(caplog: pytest.LogCaptureFixture) -> None:
    """Of many threads, one may have begun before an outage, or fail when it is over."""
    storage = Overlapping()
    storage.create("id", "c", b"{}")
    watched = WatchedStorage(storage, Metrics())

    def read(*, fails: bool) -> None:
        storage.reading_fails = fails
        with pytest.raises(StorageError) if fails else nullcontext():
            watched.read("id", 0, 1)

    storage.meanwhile.append(lambda: read(fails=True))
    watched.find("c")
    read(fails=True)
    storage.meanwhile.append(lambda: read(fails=False))
    with pytest.raises(StorageError):
        watched.find("c")
    read(fails=False)
    lines = [each.getMessage() for each in caplog.records if each.name == "revar.storage"]
    assert len(lines) == 2
    assert lines[0] == "the storage cannot be read: the disk is full"
    assert "can be read again" in lines[1] and "2 calls that failed" in lines[1]


def logged(record_of: Any, formatter: logging.Formatter) -> list[str]:
    """The lines that a logger writes with the service's filter."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    handler.addFilter(RateLimit())
    logger = logging.Logger("revar.test")
    logger.addHandler(handler)
    record_of(logger)
    return stream.getvalue().splitlines()


def test_lines_alike_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("revar.campaigns.service.logs.time.monotonic", lambda: now)

    def write(logger: logging.Logger) -> None:
        nonlocal now
        for number in range(1001):
            if number == 1000:
                now += WINDOW
            logger.error("number %d", number)
        logger.error("another")

    lines = logged(write, logging.Formatter())
    left_out = f"number 1000 ({1000 - MOST_ALIKE} lines like it left out)"
    assert lines == [*(f"number {i}" for i in range(MOST_ALIKE)), left_out, "another"]


def test_a_line_of_json_for_every_request(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/log.db", "--log-json") as service:
        for _ in range(MOST_ALIKE + 2):
            call(service.address, "/health")
        call(service.address, "/api/campaigns", QUESTION)
        service.process.terminate()
        service.process.wait(timeout=30)
        lines = [json.loads(line) for line in service.said().splitlines()]
        service.stop()
    assert len(lines) == MOST_ALIKE + 3
    assert {line["logger"] for line in lines} == {REQUESTS}
    assert {line["path"] for line in lines[:-1]} == {"/health"}
    last = lines[-1]
    assert (last["method"], last["operation"], last["status"]) == ("POST", "create_campaign", 201)
    assert last["milliseconds"] > 0
    assert abs(last["time"] - time.time()) < 60


def test_an_exception_stays_in_its_line() -> None:
    def write(logger: logging.Logger) -> None:
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logger.exception("it failed")

    (line,) = logged(write, JsonFormatter())
    assert "two\nlines" in json.loads(line)["exception"]


# -- the webhook -----------------------------------------------------------------------------


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what is sent; refuses the first message."""

    messages: list[dict[str, Any]]
    refusals: int

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind: Any = type(self)
        kind.refusals -= 1
        if kind.refusals < 0:
            kind.messages.append(body)
        self.send_response(200 if kind.refusals < 0 else 500)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    kind = type("Kept", (Receiver,), {"messages": [], "refusals": 1})
    server = http.server.HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/told", kind.messages  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def until(condition: Any) -> None:
    ends = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1",
        "ftp://host/",
        "http:///path",
        "http://u:p@host/",
        "http://h:x/",
        "http://\xe9..example/",
        "http://" + "\xe9" * 70 + ".example/",
        "http://a..example/",
        "http://host/\xe9",
        "http://host/a b",
        "http://host/?a\x00",
    ],
)
def test_addresses_that_a_webhook_cannot_have(address: str) -> None:
    with pytest.raises(InputError, match="the address of the webhook must"):
        webhook.check_webhook(address)


def test_addresses_of_webhooks_in_other_alphabets() -> None:
    found = webhook.check_webhook("https://b\xfccher.example:8443/told?by=us")
    assert found == "https://xn--bcher-kva.example:8443/told?by=us"
    assert webhook.check_webhook("http://127.0.0.1:80/told") == "http://127.0.0.1:80/told"
    assert webhook.check_webhook("http://[::1]:80") == "http://[::1]:80"


def test_one_bad_campaign_does_not_end_the_watch(
    receiver: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nor does a storage that fails in a way that nobody has thought of."""
    address, messages = receiver
    monkeypatch.setattr(webhook, "EVERY", 0.02)
    monkeypatch.setattr(webhook, "PAUSE", 0.02)
    storage = MemoryStorage()
    for name in ("bad", "good"):
        Campaign.create(storage, name, actions=2, horizon=1, episodes=1)
    read, entries, failures = Campaign.read, storage.entries, iter([True])

    def fail(campaign: Campaign, reader: Any) -> Any:
        if campaign.name == "bad":
            raise AssertionError("event 3 follows on event 7")
        return read(campaign, reader)

    def fail_once() -> Any:
        if next(failures, False):
            raise RuntimeError("once")
        return entries()

    monkeypatch.setattr(Campaign, "read", fail)
    monkeypatch.setattr(storage, "entries", fail_once)
    with TestClient(make_app(storage, webhook=address), base_url=LOOPBACK) as client:
        until(lambda: "campaign bad could not be looked at" in caplog.text)
        time.sleep(0.1)
        Campaign.open(storage, "good").close()
        until(lambda: len(messages) == 1)
        assert client.get("/health").status_code == 200
    assert messages[0]["campaign"] == "good"
    assert caplog.text.count("campaign bad could not be looked at") == 1
    assert "the campaigns could not be looked at" in caplog.text


def test_a_webhook_is_told_of_ends_and_stalls(
    receiver: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it fails at first; what had ended before the service began is not told."""
    address, messages = receiver
    monkeypatch.setattr(webhook, "EVERY", 0.05)
    monkeypatch.setattr(webhook, "PAUSE", 0.05)
    clock = Clock()
    storage = MemoryStorage(clock)
    Campaign.create(storage, "before", actions=2, horizon=1, episodes=1).close()
    with TestClient(make_app(storage, webhook=address), base_url=LOOPBACK) as client:
        client.post("/api/campaigns", json=QUESTION)
        client.post("/api/campaigns/ads/episodes", json={"episode": "e"})
        time.sleep(0.2)
        clock.time += 31
        until(lambda: len(messages) == 1)
        client.post("/api/campaigns/ads/close", json={})
        until(lambda: len(messages) == 2)
        time.sleep(0.2)
        assert value(client, 'revar_webhooks_total{result="sent"}') == 2
    told = [(each["event"], each["campaign"], each["condition"]) for each in messages]
    assert told == [("stalled", "ads", "stalled"), ("ended", "ads", "closed")]


def test_a_webhook_opens_no_more_than_it_must(
    receiver: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was archived, the others once; and it keeps what others add to."""
    address, messages = receiver
    monkeypatch.setattr(webhook, "EVERY", 0.02)
    monkeypatch.setattr(webhook, "PAUSE", 0.02)
    opened: list[str] = []
    open_it = Opener.open

    def note(opener: Opener, name: str, progress: Any) -> Campaign:
        opened.append(name)
        return open_it(opener, name, progress)

    def refuse(*_: Any) -> Any:
        raise AssertionError("this would slow openings and downloads down")

    monkeypatch.setattr(Opener, "open", note)
    monkeypatch.setattr(CampaignThreads, "find", refuse)
    storage = MemoryStorage()
    made = {
        name: Campaign.create(storage, name, actions=2, horizon=1, episodes=9)
        for name in ("archived", "resting", "busy")
    }
    made["archived"].archive()
    with TestClient(make_app(storage, webhook=address), base_url=LOOPBACK) as client:
        until(lambda: len(opened) == 2)
        time.sleep(0.1)
        assert value(client, "revar_open_campaigns") == 0
        for _ in range(3):  # a process beside the service
            made["busy"].start_episode()
            time.sleep(0.1)
        assert sorted(opened) == ["busy", "busy", "resting"]
        assert value(client, "revar_open_campaigns") == 1
        made["resting"].archive()
        until(lambda: len(messages) == 1)
        made["archived"].reopen()
        time.sleep(0.1)
        made["archived"].close()
        until(lambda: len(messages) == 2)
    told = [(each["campaign"], each["condition"]) for each in messages]
    assert told == [("resting", "archived"), ("archived", "closed")]


def test_a_slow_opening_holds_up_no_other_message(
    receiver: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what ends before its first look, but after the service began, is told."""
    address, messages = receiver
    monkeypatch.setattr(webhook, "EVERY", 0.02)
    monkeypatch.setattr(webhook, "PAUSE", 0.02)
    storage, may_open, began = MemoryStorage(), threading.Event(), threading.Event()
    slow, other = [
        Campaign.create(storage, name, actions=2, horizon=1, episodes=9)
        for name in ("slow", "other")
    ]
    open_it = Opener.open

    def wait(opener: Opener, name: str, progress: Any) -> Campaign:
        if name == "slow":
            began.set()
            may_open.wait(20)
        return open_it(opener, name, progress)

    monkeypatch.setattr(Opener, "open", wait)
    with TestClient(make_app(storage, webhook=address), base_url=LOOPBACK):
        assert began.wait(10)
        for campaign in (slow, other):
            campaign.close()
        try:
            until(lambda: len(messages) == 1)
        finally:
            may_open.set()
        until(lambda: len(messages) == 2)
    assert [each["campaign"] for each in messages] == ["other", "slow"]


def test_a_reply_that_trickles_in_holds_up_no_other_message(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A byte of the first replies comes from time to time, for as long as anybody listens."""
    for name, seconds in (("EVERY", 0.05), ("TIMEOUT", 0.5)):
        monkeypatch.setattr(webhook, name, seconds)
    monkeypatch.setattr(webhook, "TRIES", 1)
    names = [f"slow-{number}" for number in range(webhook.AT_ONCE)]
    storage = MemoryStorage()
    for name in (*names, "last"):
        Campaign.create(storage, name, actions=2, horizon=1, episodes=1)

    def trickle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            message = connection.recv(10_000)
            while b'"last"' not in message:
                connection.sendall(b"H")
                time.sleep(0.05)
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    def accept(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=trickle, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        with TestClient(make_app(storage, webhook=address), base_url=LOOPBACK) as client:
            time.sleep(0.2)
            for name in (*names, "last"):
                client.post(f"/api/campaigns/{name}/close", json={})
            began = time.monotonic()
            for line in ('"sent"} 1.0', f'"failed"}} {len(names)}.0'):
                until(lambda: f"revar_webhooks_total{{result={line}" in client.get("/metrics").text)  # noqa: B023
            assert time.monotonic() - began < 3.0
    assert caplog.text.count("could not be told") == len(names)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://host/", "http:///", "nothing"])
def test_only_http_is_told(address: str) -> None:
    with pytest.raises(InputError, match="http"):
        make_app(MemoryStorage(), webhook=address)
