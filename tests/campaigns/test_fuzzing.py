"""Whatever is sent to the API, valid or not: never a 5xx, and always as its document says."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.service.api import ROUTES, ApiRoute
from revar.campaigns.service.app import make_app
from revar.campaigns.service.messages import CAMPAIGN_HEADER, ActMessage, RewardMessage

EXAMPLES = 40  # of each operation, of valid and of invalid data
LOOPBACK = "http://127.0.0.1"
# What an act brings, by the campaign's name.
SENT: dict[str, Any] = {
    "sent": [0.5, 0.5],
    "several": {"old": [0.5, 0.5], "new": [0.1, 0.9]},
}
LIMITS = {"forbidden": [["t", 1]], "max_ratio": 2.0, "max_sums": {"unsafe": 1.0}}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture
def app() -> Any:
    """The application over four campaigns: an episode that may act, and one that waits."""
    storage = MemoryStorage()
    table = {"s": [0.5, 0.5], "t": [1.0, 0.0]}
    plain: dict[str, Any] = {"episodes": 10**6}
    asked: dict[str, dict[str, Any]] = {
        "table": {"policy": table, **plain},
        "sent": plain,
        "several": {"policies": ["old", "new"], **plain},
        "limited": {"steps": 10**9, "limits": LIMITS, "policy": table},
    }
    for name, question in asked.items():
        campaign = Campaign.create(
            storage, name, actions=2, horizon=3, seed=1, lease=1e6, **question
        )
        campaign.start_episode("starting")
        campaign.start_episode("waiting").act("s", SENT.get(name))
    return make_app(storage)


# Of an operation that takes nothing there is nothing to send wrong.
CASES = [
    pytest.param(route, mode, id=f"{route.endpoint.__name__}-{mode.value}")
    for route in ROUTES
    for mode in schemathesis.GenerationMode
    if mode.is_positive or route.takes is not None or "{" in route.path
]


@pytest.mark.parametrize(("route", "mode"), CASES)
def test_operation(app: Any, route: ApiRoute, mode: schemathesis.GenerationMode) -> None:
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app, headers={"Host": "127.0.0.1"})
    operation = schema[route.path][route.method]
    answers = []

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(
        case=operation.as_strategy(generation_mode=mode),
        place=st.fixed_dictionaries(
            {
                "name": st.sampled_from(["sent", "several", "table", "limited", "drawn"]),
                "episode": st.sampled_from(["starting", "starting", "waiting", "drawn"]),
            },
        ),
        fitting=st.sampled_from([True, True, False]),
    )
    def send(case: Any, place: dict[str, str], fitting: bool) -> None:
        """What is drawn, but often about something that exists and is due."""
        if fitting:
            (case.headers or {}).pop(CAMPAIGN_HEADER, None)
        for part in set(place) & set(case.path_parameters or {}):
            if place[part] != "drawn":
                case.path_parameters[part] = place[part]
        if fitting and mode.is_positive and isinstance(case.body, dict) and "step" in case.body:
            case.body["step"] = 0
            if route.takes is ActMessage and place["name"] in SENT:
                case.body["probabilities"] = SENT[place["name"]]
            if route.takes is RewardMessage and place["name"] == "limited":
                case.body["amounts"] = {"unsafe": 0.5}
        response = case.call(base_url=LOOPBACK)
        answers.append(response.status_code)
        case.validate_response(response, checks=CHECKS)

    send()
    # What is right was not all refused at the gate, and what is wrong not all let through.
    if mode.is_positive:
        assert any(status < 300 for status in answers) or route.conflicts
    else:
        assert any(400 <= status < 500 for status in answers)


# What fits as things stand then, in this order: endpoint, campaign, episode, body.
WALK: list[tuple[str, str, str, Any]] = [
    (
        *("create_campaign", "", ""),
        {"name": "new", "horizon": 2, "actions": 2, "budget": 9.5, "limits": LIMITS},
    ),
    ("start_episode", "new", "", {"episode": "first"}),
    ("heartbeat", "new", "first", {}),
    ("act", "new", "first", {"step": 0, "state": "s", "probabilities": [0.5, 0.5]}),
    (
        *("reward", "new", "first"),
        {"step": 0, "reward": 1.5, "next_state": None, "cost": 0.5, "amounts": {"unsafe": 0}},
    ),
    ("campaign_estimate", "new", "", None),
    ("extend_campaign", "new", "", {"budget": 0.5}),
    ("act", "limited", "starting", {"step": 0, "state": "t"}),
    (
        *("reward", "several", "waiting"),
        {"step": 0, "reward": -2, "next_state": None},
    ),
    ("campaign_ranking", "several", "", None),
    ("archive_campaign", "new", "", {}),
    ("delete_campaign", "new", "", None),
]


def test_what_may_be_refused_succeeds_where_it_fits(app: Any) -> None:
    """Draws alone may all be refused: so that no operation is refused always, each is done."""
    routes = {route.endpoint.__name__: route for route in ROUTES}
    assert {name for name, route in routes.items() if route.conflicts} <= {each[0] for each in WALK}
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app, headers={"Host": "127.0.0.1"})
    for endpoint, name, episode, body in WALK:
        route = routes[endpoint]
        places = {"name": name, "episode": episode}
        sent = {} if body is None else {"body": body, "media_type": "application/json"}
        case = schema[route.path][route.method].Case(
            path_parameters={part: found for part, found in places.items() if found}, **sent
        )
        response = case.call(base_url=LOOPBACK)
        assert response.status_code < 300, (endpoint, response.text)
        case.validate_response(response, checks=CHECKS)
