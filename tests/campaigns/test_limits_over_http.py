"""Budgets of steps or cost, and limits, over HTTP and on the dashboard's pages."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from revar.campaigns import MemoryStorage
from revar.campaigns.service.app import make_app

CAMPAIGN = "/api/campaigns/robot"
LIMITS = {
    "forbidden": [["dock", 1], [{"x": 1.0}, 0]],
    "max_ratio": 2,
    "min_return": "90%",
    "max_sums": {"unsafe": 0.25},
    "confidence": 0.9,
}
ASKED: dict[str, Any] = {"name": "robot", "actions": 2, "horizon": 2, "seed": 1, "budget": 10}


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(MemoryStorage()), base_url="http://127.0.0.1") as client:
        yield client


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def told(cost: Any = 1.5, **changes: Any) -> dict[str, Any]:
    message = {"step": 0, "reward": 1, "next_state": None, "cost": cost, "amounts": {"unsafe": 0}}
    return {**message, **changes}


def test_a_campaign_with_a_cost_and_limits(client: TestClient) -> None:
    made = client.post("/api/campaigns", json={**ASKED, "limits": LIMITS}).json()
    assert (made["budget"], made["unit"], made["used"], made["left"]) == (10, "cost", 0, 10)
    assert made["limits"] == {**LIMITS, "forbidden": [["dock", 1], [{"x": 1}, 0]]}
    assert [(each["name"], each["mean"]) for each in made["realised"]] == [
        *(("return", None), ("unsafe", None))
    ]
    page = client.get("/campaigns/robot").text
    assert "no episode yet" in page
    assert "dock" in page
    for number in range(4):
        episode = client.post(f"{CAMPAIGN}/episodes", json={}).json()["episode"]
        path = f"{CAMPAIGN}/episodes/{episode}"
        act = {"step": 0, "state": "dock", "probabilities": [0.5, 0.5]}
        if number == 0:
            reply = client.post(f"{path}/act", json=act)
            assert code(reply) == (422, "forbidden-action")
            assert 'limits forbid action 1 in state "dock"' in reply.json()["error"]["message"]
        reply = client.post(f"{path}/act", json={**act, "probabilities": [1, 0]})
        assert reply.json()["action"] == 0
        message = told(reward=number, amounts={"unsafe": number % 2})
        reply = client.post(f"{path}/reward", json=message)
        assert reply.json()["over"]
    status = client.get(CAMPAIGN).json()
    assert (status["used"], status["left"], status["episodes"]) == (6.0, 4.0, 4)
    floor, unsafe = status["realised"]
    assert (floor["least"], floor["mean"], floor["most"]) == (pytest.approx(0.9 * 1.5), 1.5, None)
    assert (unsafe["mean"], unsafe["most"], unsafe["broken"]) == (0.5, 0.25, False)
    assert unsafe["standard_error"] == pytest.approx((0.25 / 3) ** 0.5)
    lines = client.get(f"{CAMPAIGN}/data").text.splitlines()
    assert json.loads(lines[1])["steps"][0]["cost"] == 1.5
    assert json.loads(lines[1])["steps"][0]["amounts"] == {"unsafe": 1.0}
    page = client.get("/campaigns/robot").text
    for text in ("Cost spent", "4 left", "return while collecting", "at most 0.25", "kept"):
        assert text in page
    assert "6 of a cost of 10" in client.get("/").text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cost": None}, "a reward needs the cost of its step"),
        ({"cost": -1}, "Expected `float` >= 0"),
        ({"cost": "much"}, "Expected `float"),
        ({"amounts": None}, "a reward needs the amounts 'unsafe'; it has none"),
        ({"amounts": {"safe": 1}}, "a reward needs the amounts 'unsafe'; it has 'safe'"),
        ({"amounts": {"unsafe": True}}, "Expected `float`"),
    ],
)
def test_rewards_that_are_refused(
    client: TestClient, changes: dict[str, Any], message: str
) -> None:
    client.post("/api/campaigns", json={**ASKED, "limits": {"max_sums": {"unsafe": 1}}})
    client.post(f"{CAMPAIGN}/episodes", json={"episode": "e"})
    path = f"{CAMPAIGN}/episodes/e"
    client.post(f"{path}/act", json={"step": 0, "state": 1, "probabilities": [0.5, 0.5]})
    reply = client.post(f"{path}/reward", json=told(**changes))
    assert code(reply) == (422, "invalid")
    assert message in reply.json()["error"]["message"]
    assert client.get(CAMPAIGN).json()["steps"] == 0
    assert client.post(f"{path}/reward", json=told()).status_code == 200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes": 5}, "got episodes and budget"),
        ({"budget": None}, "got none"),
        ({"budget": 0}, "Expected `float` > 0"),
        ({"budget": None, "steps": 0}, "Expected `int` >= 1"),
        ({"limits": {"most": 1}}, "Object contains unknown field `most`"),
        ({"limits": {"forbidden": [["dock"]]}}, "Expected `array` of length >= 2"),
        ({"limits": {"forbidden": [["dock", "left"]]}}, "forbidden has ['dock', 'left']"),
        ({"limits": {"forbidden": [1, ["dock", 0]]}}, "forbidden has actions and pairs"),
        ({"limits": {"max_ratio": 0.5}}, "Expected `float` >= 1"),
        ({"limits": {"min_return": "all"}}, "min_return is 'all'"),
        ({"limits": {"max_sums": {"cost": 1}}}, "max_sums names 'cost'"),
        ({"limits": {"max_ratio": 2}, "strategy": "revar"}, "knows no limits"),
    ],
)
def test_definitions_that_are_refused(
    client: TestClient, changes: dict[str, Any], message: str
) -> None:
    reply = client.post("/api/campaigns", json={**ASKED, **changes})
    assert code(reply) == (422, "invalid")
    assert message in reply.json()["error"]["message"]
    assert client.get("/api/campaigns").json()["campaigns"] == []


def test_the_document_knows_costs_and_limits(client: TestClient) -> None:
    schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    assert {"cost", "amounts"} <= set(schemas["RewardMessage"]["properties"])
    assert {"episodes", "steps", "budget", "limits"} <= set(schemas["CreateCampaign"]["properties"])
    assert schemas["CreateCampaign"]["required"] == ["name", "horizon"]
    assert {"unit", "used", "left", "realised"} <= set(schemas["StatusMessage"]["properties"])
    assert "forbidden" in schemas["LimitsMessage"]["properties"]


def test_a_budget_of_steps_is_spent(client: TestClient) -> None:
    client.post("/api/campaigns", json={**ASKED, "budget": None, "steps": 1})
    client.post(f"{CAMPAIGN}/episodes", json={"episode": "e"})
    reply = client.post(f"{CAMPAIGN}/episodes", json={})
    assert code(reply) == (409, "budget-reserved")
    assert "what is left, 1 step, is reserved" in reply.json()["error"]["message"]
    path = f"{CAMPAIGN}/episodes/e"
    client.post(f"{path}/act", json={"step": 0, "state": 1, "probabilities": [0.5, 0.5]})
    client.post(f"{path}/reward", json={"step": 0, "reward": 1, "next_state": None})
    reply = client.post(f"{CAMPAIGN}/episodes", json={})
    assert code(reply) == (409, "budget-spent")
    assert "the budget, 1 step, is spent" in reply.json()["error"]["message"]
