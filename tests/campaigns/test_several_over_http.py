"""Campaigns of several target policies over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from revar.campaigns import MemoryStorage
from revar.campaigns.service.app import make_app

SHOP = {"old": [0.5, 0.5], "new": [0.2, 0.8]}


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(MemoryStorage()), base_url="http://127.0.0.1") as client:
        yield client


ASKED: dict[str, Any] = {"name": "shop", "horizon": 1, "episodes": 40, "seed": 1}
ROWS = [{"state": "cart", "probabilities": [0.5, 0.5]}]


@pytest.mark.parametrize(
    "policies", [["old", "new"], {"old": ROWS, "new": [{**ROWS[0], "probabilities": [0.2, 0.8]}]}]
)
def test_a_comparison_over_http(client: TestClient, policies: Any) -> None:
    sends = isinstance(policies, list)
    asked = {**ASKED, "policies": policies, **({"actions": 2} if sends else {})}
    made = client.post("/api/campaigns", json=asked)
    assert made.status_code == 201
    assert (made.json()["policies"], made.json()["question"]) == (["old", "new"], "best")
    assert made.json()["has_policy_table"] is not sends
    path = "/api/campaigns/shop"
    assert client.get(f"{path}/ranking").json()["error"]["code"] == "no-estimate"
    for number in range(40):
        episode = client.post(f"{path}/episodes", json={}).json()["episode"]
        act = {"step": 0, "state": "cart", **({"probabilities": SHOP} if sends else {})}
        reply = client.post(f"{path}/episodes/{episode}/act", json=act).json()
        again = client.post(f"{path}/episodes/{episode}/act", json=act).json()
        assert again == {**reply, "repeated": True}
        told = {"step": 0, "reward": reply["action"] + 0.1 * (number % 3), "next_state": None}
        assert client.post(f"{path}/episodes/{episode}/reward", json=told).json()["over"]
    ranking = client.get(f"{path}/ranking", params={"confidence": 0.9}).json()
    assert (ranking["leader"], ranking["decided"], ranking["confidence"]) == ("new", True, 0.9)
    assert ranking["verdict"] == "new is the best (90% confidence)"
    assert client.get(path).json()["ranking"]["policies"][1]["name"] == "old"
    refused = client.get(f"{path}/estimate")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "several-policies")
    points = client.get(f"{path}/history").json()["points"]
    assert len(points[-1]["values"]) == 2
    assert [len(row) for row in points[-1]["covariance"]] == [1, 2]
    assert client.get("/campaigns/shop").status_code == 200
    assert len(client.get(f"{path}/data").text.splitlines()) == 40


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policies": ["old"]}, "policies names 1"),
        ({"policies": ["old", "old"]}, "two policies have the name 'old'"),
        ({"policies": ["old", ""]}, "the name of a policy is ''"),
        ({"policies": {"old": ROWS}}, "policies names 1"),
        (
            {"policies": {"old": ROWS, "new": [{"state": "cart", "probabilities": [1.0]}]}},
            "have the same actions",
        ),
        ({"policies": {"old": ROWS, "new": []}}, "length >= 1"),
        ({"policies": ["old", "new"], "question": "worst"}, "question is 'worst'"),
        ({"policies": ["a", "b", "c"], "question": "difference"}, "between two policies"),
        ({"policies": ["old", "new"], "policy": ROWS}, "both are given"),
        ({"question": "best"}, "which is asked of several policies"),
    ],
)
def test_refusals_over_http(client: TestClient, changes: dict[str, Any], message: str) -> None:
    reply = client.post("/api/campaigns", json={**ASKED, "actions": 2, **changes})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (422, "invalid")
    assert message in error["message"]
    assert "\n" not in error["message"]


@pytest.mark.parametrize("sent", [None, [0.5, 0.5], {"old": [0.5, 0.5]}, {"old": 1, "new": 2}])
def test_acts_that_are_refused_over_http(client: TestClient, sent: Any) -> None:
    asked = {**ASKED, "actions": 2, "policies": ["old", "new"]}
    assert client.post("/api/campaigns", json=asked).status_code == 201
    client.post("/api/campaigns/shop/episodes", json={"episode": "e"})
    body = {"step": 0, "state": 1, "probabilities": sent}
    reply = client.post("/api/campaigns/shop/episodes/e/act", json=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")


def test_one_policy_has_no_ranking(client: TestClient) -> None:
    client.post("/api/campaigns", json={**ASKED, "actions": 2})
    client.post("/api/campaigns/shop/episodes", json={"episode": "e"})
    path = "/api/campaigns/shop/episodes/e"
    client.post(f"{path}/act", json={"step": 0, "state": 1, "probabilities": [0.5, 0.5]})
    client.post(f"{path}/reward", json={"step": 0, "reward": 1.0, "next_state": None})
    reply = client.get("/api/campaigns/shop/ranking")
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "one-policy")
    points = client.get("/api/campaigns/shop/history").json()["points"]
    assert set(points[0]) == {
        *("time", "episodes", "steps", "value", "standard_error", "unvisited_probability")
    }
