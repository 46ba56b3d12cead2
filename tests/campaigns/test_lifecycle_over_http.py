"""Over HTTP: batches, heartbeats, extension, reopening, archiving, deleting, a half-width."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.service.app import make_app
from tests.campaigns.worlds import Clock

LOOPBACK = "http://127.0.0.1"
ADS = "/api/campaigns/ads"
TABLE = [{"state": "s", "probabilities": [0.5, 0.5]}]
QUESTION: dict[str, Any] = {
    "name": "ads",
    "policy": TABLE,
    "horizon": 1,
    "episodes": 4,
    "seed": 1,
    "lease": 30,
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> Iterator[TestClient]:
    with TestClient(make_app(MemoryStorage(clock)), base_url=LOOPBACK) as client:
        assert client.post("/api/campaigns", json=QUESTION).status_code == 201
        yield client


def post(client: TestClient, path: str, body: Any = None) -> Any:
    return client.post(ADS + path, json=body or {})


def codes(outcomes: Any) -> list[str | None]:
    """Of each outcome the code of its error, None where there is a reply."""
    assert all((each["reply"] is None) != (each["error"] is None) for each in outcomes)
    return [each["error"] and each["error"]["code"] for each in outcomes]


def test_many_at_once(client: TestClient) -> None:
    """Each has an outcome of its own, in order; sent again, nothing counts twice."""
    asked = {"episodes": ["a", "b", "c", "d", "e", "a"]}
    started = post(client, "/starts", asked).json()["outcomes"]
    assert codes(started) == [None] * 4 + ["budget-reserved", None]
    acts = [{"episode": name, "step": 0, "state": "s"} for name in "abz"]
    acts += [{"episode": "c", "step": 0, "state": "s", "probabilities": [0.5, 0.5]}]
    acts += [{"episode": "d", "step": 0, "state": "unknown"}]
    first = post(client, "/acts", {"acts": acts}).json()["outcomes"]
    assert codes(first) == [None, None, "unknown-episode", "invalid", "unknown-state"]
    again = post(client, "/acts", {"acts": acts}).json()["outcomes"]
    assert [each["reply"] and each["reply"]["action"] for each in again] == [
        each["reply"] and each["reply"]["action"] for each in first
    ]
    rewards = [{"episode": n, "step": 0, "reward": 1.0, "next_state": None} for n in "abc"]
    for repeated in (False, True):
        told = post(client, "/rewards", {"rewards": rewards}).json()["outcomes"]
        assert codes(told) == [None, None, "out-of-order"]
        assert [each["reply"]["repeated"] for each in told[:2]] == [repeated] * 2
    status = client.get(ADS).json()
    assert (status["episodes"], status["steps"], status["open"]) == (2, 2, 2)


def test_a_batch_is_asked_to_wait_as_one_is(client: TestClient, clock: Clock) -> None:
    post(client, "/starts", {"episodes": list("abcd")})
    clock.time += 10.5
    one = post(client, "/episodes", {"episode": "e"})
    several = post(client, "/starts", {"episodes": list("aefg")})
    assert one.json()["error"]["retry_after"] == pytest.approx(19.5)
    assert one.headers["Retry-After"] == several.headers["Retry-After"] == "20"
    outcomes = several.json()["outcomes"]
    assert [each["error"] for each in outcomes] == [None, *[one.json()["error"]] * 3]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/starts", {"episodes": []}),
        ("/starts", {"episodes": ["a"] * 1001}),
        ("/starts", {"episodes": ["a/b"]}),
        ("/acts", {"acts": [{"episode": "a", "step": 0}]}),
        ("/rewards", {"rewards": [{"episode": "a", "step": 0, "reward": "1", "next_state": None}]}),
    ],
)
def test_batches_that_cannot_be_read(client: TestClient, path: str, body: Any) -> None:
    reply = post(client, path, body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")


def test_a_heartbeat_renews_the_lease(client: TestClient, clock: Clock) -> None:
    post(client, "/episodes", {"episode": "a"})
    for _ in range(4):
        clock.time += 20
        assert post(client, "/episodes/a/heartbeat").status_code == 200
    assert not client.get(ADS).json()["leases"][0]["overdue"]
    clock.time += 31
    assert client.get(ADS).json()["leases"][0]["overdue"]
    assert post(client, "/episodes/none/heartbeat").status_code == 404


def test_a_lease_is_released(client: TestClient) -> None:
    for name in "abcd":
        post(client, "/episodes", {"episode": name})
    assert post(client, "/episodes").status_code == 409
    assert post(client, "/episodes/a/abandon").status_code == 200
    assert post(client, "/episodes").status_code == 201


def test_a_budget_is_extended_once(client: TestClient) -> None:
    for _ in range(2):
        reply = post(client, "/extend", {"episodes": 3, "extension": "one"})
        assert (reply.status_code, reply.json()["budget"]) == (200, 7)
    assert post(client, "/extend", {"steps": 3}).json()["error"]["code"] == "invalid"
    assert post(client, "/extend").json()["error"]["code"] == "invalid"


def test_from_close_to_deletion(client: TestClient) -> None:
    assert post(client, "/close").json()["closed"]
    assert post(client, "/episodes").status_code == 409
    assert not post(client, "/reopen").json()["closed"]
    assert post(client, "/episodes").status_code == 201
    reply = client.delete(ADS)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "not-archived")
    assert post(client, "/archive").json()["archived"]
    assert "ads" not in client.get("/").text.partition("<main")[2].replace("?archived", "")
    assert "ads" in client.get("/?archived=1").text
    assert client.delete(ADS).json() == {"deleted": "ads"}
    assert client.get(ADS).status_code == 404
    assert post(client, "/episodes").status_code == 404
    assert client.post("/api/campaigns", json=QUESTION).status_code == 201
    assert client.get(ADS).json()["open"] == 0


def test_an_interval_that_is_narrow_enough_ends_it(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the page shows may have to be compiled first.
    monkeypatch.setattr("revar.campaigns.service.pages.PATIENCE", 60.0)
    question = {**QUESTION, "name": "narrow", "episodes": 400, "half_width": 0.5}
    assert client.post("/api/campaigns", json=question).status_code == 201
    path = "/api/campaigns/narrow"
    for number in range(400):
        reply = client.post(f"{path}/episodes", json={})
        if reply.status_code == 409:
            break
        episode = f"{path}/episodes/{reply.json()['episode']}"
        client.post(f"{episode}/act", json={"step": 0, "state": "s"})
        told = {"step": 0, "reward": number % 2, "next_state": None}
        client.post(f"{episode}/reward", json=told)
    status = client.get(path).json()
    assert status["spent"]
    assert status["precision"]["reached"]
    assert status["episodes"] < 400
    assert "reached" in client.get("/campaigns/narrow").text


@pytest.mark.parametrize("confidence", ["0.9999999999999999", "1", "0", "-1", "nan", "inf", "x"])
def test_a_confidence_that_no_interval_has(client: TestClient, confidence: str) -> None:
    post(client, "/episodes", {"episode": "a"})
    post(client, "/episodes/a/act", {"step": 0, "state": "s"})
    post(client, "/episodes/a/reward", {"step": 0, "reward": 1.0, "next_state": None})
    reply = client.get(f"{ADS}/estimate", params={"confidence": confidence})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")


def test_a_campaign_that_others_removed(clock: Clock) -> None:
    storage = MemoryStorage(clock)
    with TestClient(make_app(storage), base_url=LOOPBACK) as client:
        for _ in range(2):
            assert client.post("/api/campaigns", json=QUESTION).status_code == 201
            assert post(client, "/episodes").status_code == 201
            storage.delete("ads")
            reply = post(client, "/episodes")
            assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown-campaign")
            assert client.get(ADS).status_code == 404
        assert client.post("/api/campaigns", json=QUESTION).status_code == 201
        assert post(client, "/episodes").status_code == 201
        storage.delete("ads")
        for path in (ADS, f"{ADS}/data"):
            assert client.get(path).status_code == 404
        Campaign.create(storage, "ads", actions=2, horizon=1, episodes=7)
        assert client.get(ADS).json()["budget"] == 7
