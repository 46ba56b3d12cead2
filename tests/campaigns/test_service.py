"""The HTTP API: the same rules as in Python, strict about what it takes, closed without a token."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from revar.campaigns import Campaign, MemoryStorage, SQLiteStorage
from revar.campaigns.service.access import host_name, is_loopback
from revar.campaigns.service.api import ROUTES
from revar.campaigns.service.app import make_app
from revar.campaigns.service.openapi import openapi_document
from revar.campaigns.service.tokens import Access, Right
from revar.errors import InputError
from tests.campaigns.test_events import HOSTILE, nested
from tests.campaigns.worlds import Clock

TOKEN = "a-token-of-32-characters-or-more"  # made up
LOOPBACK = "http://127.0.0.1"
QUESTION = {"name": "ads", "actions": 2, "horizon": 3, "episodes": 4, "seed": 1}
EVEN = [0.5, 0.5]


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(MemoryStorage()), base_url=LOOPBACK) as client:
        yield client


@pytest.fixture
def guarded() -> Iterator[TestClient]:
    with TestClient(make_app(MemoryStorage(), [TOKEN]), base_url=LOOPBACK) as client:
        yield client


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def start(client: TestClient) -> str:
    """A campaign with one open episode; the episode's address."""
    assert client.post("/api/campaigns", json=QUESTION).status_code == 201
    reply = client.post("/api/campaigns/ads/episodes", json={"episode": "e1"})
    assert reply.status_code == 201
    return "/api/campaigns/ads/episodes/e1"


def test_an_episode_from_start_to_end(client: TestClient) -> None:
    episode = start(client)
    for step in range(3):
        state = {"page": step}
        asked = {"step": step, "state": state, "probabilities": EVEN}
        action = client.post(f"{episode}/act", json=asked).json()
        assert action["action"] in (0, 1)
        assert client.post(f"{episode}/act", json=asked).json() == {**action, "repeated": True}
        told = {"step": step, "reward": 1.5, "next_state": {"page": step + 1}}
        reply = client.post(f"{episode}/reward", json=told).json()
        assert (reply["steps"], reply["over"], reply["repeated"]) == (step + 1, step == 2, False)
        assert client.post(f"{episode}/reward", json=told).json()["repeated"]
    assert client.post(f"{episode}/finish", json={}).json()["repeated"]
    assert client.get(episode).json()["over"]
    status = client.get("/api/campaigns/ads").json()
    assert (status["episodes"], status["steps"], status["open"], status["free"]) == (1, 3, 0, 3)
    estimate = client.get("/api/campaigns/ads/estimate", params={"confidence": 0.9}).json()
    assert (estimate["confidence"], estimate["episodes"]) == (0.9, 1)
    assert client.get("/api/campaigns/ads/history").json()["points"][0]["episodes"] == 1
    assert client.get("/api/campaigns").json() == {"campaigns": ["ads"]}


def test_data_comes_as_json_lines_and_csv(client: TestClient) -> None:
    episode = start(client)
    client.post(f"{episode}/act", json={"step": 0, "state": 'a"b,c', "probabilities": EVEN})
    client.post(f"{episode}/reward", json={"step": 0, "reward": 2.0, "next_state": None})
    reply = client.get("/api/campaigns/ads/data")
    assert 'filename="ads.jsonl"' in reply.headers["content-disposition"]
    (line,) = reply.text.splitlines()
    record = json.loads(line)
    assert (record["episode"], record["complete"]) == ("e1", True)
    assert record["steps"][0]["state"] == 'a"b,c'
    reply = client.get("/api/campaigns/ads/data", params={"format": "csv"})
    assert len(reply.text.splitlines()) == 2
    assert code(client.get("/api/campaigns/ads/data?format=pickle")) == (422, "invalid")


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/api/campaigns", QUESTION, (409, "name-taken")),
        ("/api/campaigns", {**QUESTION, "name": "../etc"}, (422, "invalid")),
        ("/api/campaigns", {**QUESTION, "name": "x", "horizon": 0}, (422, "invalid")),
        ("/api/campaigns", {**QUESTION, "name": "x", "more": 1}, (422, "invalid")),
        ("/api/campaigns", {**QUESTION, "name": "x", "actions": None}, (422, "invalid")),
        ("/api/campaigns", {**QUESTION, "name": "x", "strategy": "flw"}, (422, "invalid")),
        ("/api/campaigns", {**QUESTION, "name": "x", "strategy": "oracle"}, (422, "invalid")),
        ("/api/campaigns", {**QUESTION, "name": "x", "discount": 1.5}, (422, "invalid")),
        ("/api/campaigns/none/episodes", {}, (404, "unknown-campaign")),
        ("/api/campaigns/ads/episodes", {"episode": "a/b"}, (422, "invalid")),
        ("/api/campaigns/ads/episodes/none/finish", {}, (404, "unknown-episode")),
        ("{e}/act", {"step": 0, "state": 1}, (422, "invalid")),
        ("{e}/act", {"step": 0, "state": None, "probabilities": EVEN}, (422, "invalid")),
        ("{e}/act", {"step": 1, "state": 1, "probabilities": EVEN}, (409, "out-of-order")),
        ("{e}/act", {"step": 0, "state": 1, "probabilities": [1, 1]}, (422, "invalid")),
        ("{e}/act", {"step": "0", "state": 1, "probabilities": EVEN}, (422, "invalid")),
        ("{e}/reward", {"step": 0, "reward": 1, "next_state": None}, (409, "out-of-order")),
        ("{e}/reward", {"step": 0, "reward": 1e300, "next_state": None}, (422, "invalid")),
        ("{e}/reward", {"step": 0, "reward": 1}, (422, "invalid")),
        ("{e}/nothing", {}, (404, "not-found")),
    ],
)
def test_refusals(client: TestClient, path: str, body: Any, expected: tuple[int, str]) -> None:
    episode = start(client)
    reply = client.post(path.replace("{e}", episode), json=body)
    assert code(reply) == expected
    assert "\n" not in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        (b"{", "application/json", (400, "not-json")),
        (b'{"step": 0, "state": "\xff"}', "application/json", (400, "not-json")),
        (b'{"step": NaN}', "application/json", (400, "not-json")),
        (
            b'{"state": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
            "application/json",
            (400, "not-json"),
        ),
        (b'{"step": 0, "state": "\\ud800", "probabilities": [0.5, 0.5]}', "application/json", None),
        (b'{"step": 0, "state": 1e999, "probabilities": [0.5, 0.5]}', "application/json", None),
        (b"{}", "text/plain", (415, "media-type")),
        (b"step=0", "application/x-www-form-urlencoded", (415, "media-type")),
        (b" " * (2**20 + 1), "application/json", (413, "too-large")),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value),
)
def test_bodies_that_cannot_be_read(
    client: TestClient, body: bytes, media: str, expected: tuple[int, str] | None
) -> None:
    episode = start(client)
    reply = client.post(f"{episode}/act", content=body, headers={"Content-Type": media})
    assert 400 <= reply.status_code < 500
    if expected is not None:
        assert code(reply) == expected
    assert client.get(episode).json()["steps"] == 0


def test_a_body_without_a_length_is_limited_too(client: TestClient) -> None:
    episode = start(client)

    def pieces() -> Iterator[bytes]:
        for _ in range(200):
            yield b" " * 10_000

    reply = client.post(
        f"{episode}/act", content=pieces(), headers={"Content-Type": "application/json"}
    )
    assert code(reply) == (413, "too-large")


@pytest.mark.parametrize("state", [*HOSTILE, nested(40), "x" * 20_000], ids=lambda s: repr(s)[:20])
def test_hostile_states_are_stored_or_refused(client: TestClient, state: Any) -> None:
    episode = start(client)
    reply = client.post(f"{episode}/act", json={"step": 0, "state": state, "probabilities": EVEN})
    assert reply.status_code in (200, 422)
    stored = reply.status_code == 200
    assert stored == (state in HOSTILE)
    reply = client.post(f"{episode}/reward", json={"step": 0, "reward": 1, "next_state": state})
    if stored:
        assert reply.status_code == 200
        page = client.get("/campaigns/ads")
        assert page.status_code == 200
        assert "<script>alert(1)" not in page.text
        assert json.loads(client.get("/api/campaigns/ads/data").text)["steps"][0]["state"] == state


def test_a_reserved_budget_says_when_to_come_back() -> None:
    clock = Clock()
    with TestClient(make_app(MemoryStorage(clock)), base_url=LOOPBACK) as client:
        question = {**QUESTION, "episodes": 1, "lease": 30}
        client.post("/api/campaigns", json=question)
        client.post("/api/campaigns/ads/episodes", json={})
        clock.time += 10
        reply = client.post("/api/campaigns/ads/episodes", json={})
        assert code(reply) == (409, "budget-reserved")
        assert reply.headers["retry-after"] == "20"
        clock.time += 21
        assert client.post("/api/campaigns/ads/episodes", json={}).status_code == 201
        client.post("/api/campaigns/ads/close", json={})
        reply = client.post("/api/campaigns/ads/episodes", json={})
        assert code(reply) == (409, "budget-spent")


def test_a_storage_that_fails_is_told(tmp_path: Path) -> None:
    storage = SQLiteStorage(tmp_path / "gone.db")
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        start(client)
        storage.close()
        assert code(client.post("/api/campaigns/ads/episodes", json={})) == (503, "storage")
        assert client.get("/").status_code == 503


# -- who may ask ----------------------------------------------------------------------------


def every_address() -> list[tuple[str, str]]:
    routes = [(route.method, route.path.format(name="ads", episode="e1")) for route in ROUTES]
    pages = [("GET", path) for path in ("/", "/new", "/campaigns/ads", "/api/openapi.json")]
    return [*routes, *pages, ("POST", "/logout")]


@pytest.mark.parametrize(("method", "path"), every_address(), ids=lambda value: value)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong-token-of-32-characters"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Cookie": "revar_session=99999999999.0"},
        {"Cookie": "revar_session=nonsense"},
    ],
    ids=lambda headers: str(*headers.values()) or "none",
)
def test_no_token_no_access(
    guarded: TestClient, method: str, path: str, headers: dict[str, str]
) -> None:
    reply = guarded.request(
        method, path, json={} if method == "POST" else None, headers=headers, follow_redirects=False
    )
    if path.startswith("/api/") or method == "POST":
        assert code(reply) == (401, "no-access")
        assert reply.headers["www-authenticate"] == "Bearer"
    else:
        assert (reply.status_code, reply.headers["location"]) == (303, "/login")


def test_with_a_token_there_is_access(guarded: TestClient) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/api/campaigns", headers=headers).status_code == 200
    assert guarded.post("/api/campaigns", json=QUESTION, headers=headers).status_code == 201
    assert guarded.get("/health").status_code == 200


def test_the_dashboard_takes_the_token_once(guarded: TestClient) -> None:
    assert "not valid" in guarded.post("/login", data={"token": "wrong"}).text
    reply = guarded.post("/login", data={"token": TOKEN}, follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert guarded.get("/").status_code == 200
    assert guarded.get("/api/campaigns").status_code == 200
    guarded.post("/logout")
    assert guarded.get("/api/campaigns").status_code == 401


def test_sessions_end(monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access([TOKEN])
    session = access.new_session(TOKEN)
    assert access.right_of(None, session, "a") is Right.WRITE
    assert Access([TOKEN]).right_of(None, session, "a") is Right.NONE  # of another process
    monkeypatch.setattr("time.time", lambda: 4e9)
    assert access.right_of(None, session, "a") is Right.NONE


@pytest.mark.parametrize("token", ["", "short", "ü" * 40, "a token with\na line of its own"])
def test_weak_tokens_are_refused(token: str) -> None:
    with pytest.raises(InputError, match="a token must be"):
        Access([token])


def test_without_tokens_only_loopback_is_served(client: TestClient) -> None:
    """A page elsewhere that has its name lead to 127.0.0.1 is not served."""
    for host in ("evil.example", "evil.example:80", "10.0.0.1", ""):
        assert code(client.get("/api/campaigns", headers={"Host": host})) == (403, "wrong-host")
    for host in ("localhost:8321", "127.0.0.1", "[::1]:8321", "127.8.8.8"):
        assert client.get("/api/campaigns", headers={"Host": host}).status_code == 200


def test_hosts() -> None:
    assert [host_name(host) for host in ("a:1", "[::1]:80", "a")] == ["a", "[::1]", "a"]
    assert not is_loopback("localhost.evil.example")
    assert not is_loopback("0.0.0.0")


def test_every_page_carries_the_security_headers(client: TestClient) -> None:
    for path in ("/", "/new", "/api/campaigns", "/static/style.css", "/nothing"):
        headers = client.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_the_document_describes_every_route(client: TestClient) -> None:
    served = client.get("/api/openapi.json").json()
    assert served == json.loads(json.dumps(openapi_document()))
    described = {
        (method.upper(), path) for path, item in served["paths"].items() for method in item
    }
    assert described == {(route.method, route.path) for route in ROUTES}


def test_methods_that_are_not_there(client: TestClient) -> None:
    assert code(client.delete("/api/campaigns")) == (405, "method")


def test_campaigns_made_in_python_are_served() -> None:
    storage = MemoryStorage()
    Campaign.create(storage, "made", policy={"s": EVEN}, horizon=1, episodes=1)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        assert client.get("/api/campaigns/made").json()["has_policy_table"]
        assert "made" in client.get("/").text
        assert client.get("/campaigns/none").status_code == 404
        assert client.get("/campaigns/..%2f..").status_code == 404
