"""Campaigns over HTTP are those of Python: the same calls, records, errors and decisions."""

import inspect
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any, assert_type

import numpy as np
import pytest

import revar
from revar.campaigns import (
    BudgetReservedError,
    BudgetSpentError,
    Campaign,
    CampaignEpisode,
    CampaignError,
    MemoryStorage,
    Status,
)
from revar.campaigns.commands import ActionReply
from revar.campaigns.requests import ActRequest, RewardReport
from revar.campaigns.storage.interface import CopyError, NameTakenError
from revar.client import (
    AsyncCampaign,
    AsyncConnection,
    AsyncEpisode,
    ConnectedCampaign,
    Connection,
    ServiceError,
    operations,
)
from revar.client.operations import CampaignQuestion
from revar.errors import InputError, MissingExtraError
from revar.estimators.estimator import Estimate
from revar.estimators.ranking import Ranking
from revar.model.trajectory import Dataset
from tests.campaigns.worlds import Clock, World
from tests.client.services import losing, running

TOKEN = "a-token-of-32-characters-or-more"  # made up
POLICY = {"a": [0.7, 0.3], "b": [0.2, 0.8]}
WORLD = World.named("gridworld")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(MemoryStorage()) as address:
        yield address


@pytest.fixture
def service(address: str) -> Iterator[Connection]:
    with revar.connect(address) as service:
        yield service


def both(service: Connection, name: str, **question: Any) -> tuple[Campaign, ConnectedCampaign]:
    """The same campaign in this process and behind the service."""
    return Campaign.create(MemoryStorage(), name, **question), service.create(name, **question)


def assert_same_status(one: Status, other: Status) -> None:
    timed = ("id", "first_event", "last_event", "now", "steps_per_second", "ranking")
    fields = [name for name in vars(one) if name not in timed]
    assert [getattr(one, name) for name in fields] == [getattr(other, name) for name in fields]
    assert str(one).splitlines()[2:] == str(other).splitlines()[2:]
    assert type(one.now) is type(other.now) is float


def assert_same_dataset(one: Dataset, other: Dataset) -> None:
    for name, value in vars(one).items():
        theirs = getattr(other, name)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, theirs)
        elif isinstance(value, dict):
            assert value.keys() == theirs.keys()
            for key, column in value.items():
                np.testing.assert_array_equal(column, theirs[key])
        else:
            assert value == theirs


def test_it_decides_and_reports_like_a_local_one(service: Connection) -> None:
    question = {"policy": WORLD.policy, "horizon": WORLD.horizon, "episodes": 12, "seed": 5}
    local, connected = both(service, "alike", **question)
    assert connected.definition == local.definition
    for here, there in zip(local.episodes(), connected.episodes(), strict=True):
        assert isinstance(there, CampaignEpisode)
        assert WORLD.play(here) == WORLD.play(there)
        assert here.propensity == there.propensity
    assert connected.estimate() == local.estimate()
    assert connected.estimate(0.8) == local.estimate(confidence=0.8)
    assert_same_status(local.status(), connected.status())
    assert_same_dataset(local.dataset(), connected.dataset())
    again = service.open("alike")
    assert (again.id, again.created) == (connected.id, connected.created)
    assert again.status().spent


def test_several_policies_with_costs_and_limits(service: Connection) -> None:
    """From the first step on, where errors are not known yet."""
    rows = np.asarray(WORLD.policy)
    question = {
        "policies": {"old": rows, "new": 0.5 * rows + 0.5 / rows.shape[1]},
        "question": "difference",
        "horizon": WORLD.horizon,
        "budget": 60.0,
        "limits": revar.Limits(max_ratio=4, max_sums=[("bumps", 3.0)]),
        "strategy": "on-policy",
        "seed": 2,
    }
    local, connected = both(service, "several", **question)
    for here, there in zip(local.episodes(), connected.episodes(), strict=True):
        WORLD.play_paid(here, ("bumps",))
        WORLD.play_paid(there, ("bumps",))
        one, other = local.ranking(), connected.ranking()
        np.testing.assert_array_equal(one.joint.values, other.joint.values)
        np.testing.assert_array_equal(one.joint.covariance, other.joint.covariance)
        assert one.table() == other.table()
        assert one.verdict() == other.verdict()
    assert_same_status(local.status(), connected.status())
    assert_same_dataset(local.dataset(partial=True), connected.dataset(partial=True))


def test_probabilities_with_every_act_and_partial_episodes(service: Connection) -> None:
    question = {"policies": ["x", "y"], "actions": 2, "horizon": 3, "episodes": 4, "seed": 1}
    local, connected = both(service, "named", **question)
    for campaign in (local, connected):
        episode = campaign.start_episode("first")
        state = {"page": np.int64(1), "seen": (1.0, 2.5)}
        episode.act(state, {"y": np.array([0.5, 0.5]), "x": [0.1, 0.9]})
        episode.reward(np.float64(2.0), "elsewhere")
        assert (episode.steps, episode.over) == (1, False)
        assert campaign.find_episode("first").steps == 1
        campaign.episode("first").finish()
        campaign.start_episode().abandon()
    assert connected.status().free == local.status().free == 3
    assert_same_dataset(local.dataset(partial=True), connected.dataset(partial=True))
    assert connected.dataset().states.size == 0
    connected.close()
    assert connected.status().closed


def shown(answer: object) -> object:
    """An answer of one of several requests, as it can be compared."""
    if isinstance(answer, Exception):
        return type(answer), str(answer), getattr(answer, "code", None)
    return answer


def test_many_requests_at_once(service: Connection) -> None:
    found = []
    for campaign in both(service, "many", policy=POLICY, horizon=2, episodes=3, seed=4):
        with pytest.raises(InputError, match="count is 0"):
            campaign.start_episodes(0)
        one = campaign.start_episode("one")
        assert len(campaign.start_episodes(7)) == 2
        asked = [
            ActRequest("one", 0, "a"),
            ActRequest("one", 0, "a", [0.5, 0.5]),
            ActRequest("one", 1, "a"),
            ActRequest("two", 0, "a"),
            ActRequest("one", 0, None),
        ]
        told = [
            RewardReport("one", 0, 1.0, "b"),
            RewardReport("one", 0, float("nan"), "b"),
            RewardReport("one", 5, 1.0, "b"),
        ]
        answers = [*campaign.act_many(asked), *campaign.reward_many(told)]
        found.append([shown(answer) for answer in answers])
        with pytest.raises(BudgetReservedError) as caught:
            campaign.start_episodes(2)
        assert 800 < caught.value.retry_after <= 900
        one.heartbeat()
        assert campaign.heartbeat("one").steps == campaign.release("one").steps == 1
        assert campaign.act_many([]) == campaign.reward_many([]) == []
    assert found[0] == found[1]


def test_more_requests_than_the_service_takes_at_once(
    service: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MOST_IN_BATCH", 4)
    campaign = service.create("more", policy=POLICY, horizon=1, episodes=10, seed=4)
    started = campaign.start_episodes(30)
    assert [episode.number for episode in started] == list(range(10))
    acts = campaign.act_many([ActRequest(episode.id, 0, "a") for episode in started])
    assert [act.episode for act in acts if isinstance(act, ActionReply)] == [e.id for e in started]
    campaign.reward_many([RewardReport(episode.id, 0, 1.0, None) for episode in started])
    assert campaign.status().episodes == 10


@pytest.mark.parametrize("limit", [2**20, 20_000])
def test_more_bytes_than_the_service_takes_at_once(limit: int) -> None:
    """Split where that is known before, and where the service says so; one that is too long alone
    is refused alone."""
    states = [str(number) + "x" * 12_000 for number in range(150 if limit == 2**20 else 6)]
    states[2] += "y" * 4_000 if limit < 2**20 else ""
    storage = MemoryStorage()
    with (
        running(storage, largest_request=limit) as address,
        losing(address, []) as proxy,
        revar.connect(proxy.address) as service,
    ):
        count = len(states)
        campaign = service.create("bytes", actions=2, horizon=2, episodes=count, seed=4)
        started = campaign.start_episodes(count)
        asked = [
            ActRequest(episode.id, 0, state, [0.5, 0.5])
            for episode, state in zip(started, states, strict=True)
        ]
        acts = campaign.act_many(asked)
        assert [act.episode for act in acts if isinstance(act, ActionReply)] == [
            episode.id for episode in started
        ]
        proxy.acted.clear()
        answers = campaign.reward_many(
            [
                RewardReport(episode.id, 0, 1.0, state + "z" * 300, None)
                for episode, state in zip(started, states, strict=True)
            ]
        )
        assert len(answers) == count
        assert not any(isinstance(answer, Exception) for answer in answers)
        if limit == 2**20:
            assert len(proxy.acted) == 2  # none of which was refused
        assert campaign.status().steps == count


def test_one_that_is_too_long_by_itself() -> None:
    with running(MemoryStorage(), largest_request=9_000) as address:
        with revar.connect(address) as service:
            campaign = service.create("long", actions=2, horizon=2, episodes=3, seed=4)
            started = campaign.start_episodes(3)
            acts = campaign.act_many(
                ActRequest(episode.id, 0, "x" * length, [0.5, 0.5])
                for episode, length in zip(started, (10, 10_000, 20), strict=True)
            )
        assert isinstance(acts[0], ActionReply) and isinstance(acts[2], ActionReply)
        assert isinstance(acts[1], InputError)
        assert "9,000 bytes" in str(acts[1]) or "9000" in str(acts[1])


def test_malformed_requests_touch_no_others(service: Connection) -> None:
    """Whatever is wrong with them: what is right beside them is carried out."""
    bad_acts: list[Any] = [
        (),
        ("one",),
        7,
        None,
        ("one", 0, "a", None, "more"),
        ActRequest(5, 0, "a"),  # type: ignore[arg-type]
        ActRequest(["one"], 0, "a"),  # type: ignore[arg-type]
        ActRequest("not an id", 0, "a"),
        ActRequest("one", "0", "a"),  # type: ignore[arg-type]
        ActRequest("one", -1, "a"),
        ActRequest("one", 2**70, "a"),
        ActRequest("one", 0, {1: 2}),
        ActRequest("one", 0, {2}),
        ActRequest("one", 0, "\ud800"),
        ActRequest("one", 0, "a", [2.0, -1.0]),
        ActRequest("one", 0, "a", "text"),
    ]
    bad_rewards: list[Any] = [
        (),
        ("one", 0, 1.0),
        RewardReport("one", 0, "text", None),  # type: ignore[arg-type]
        RewardReport("one", 0, 1e300, None),
        RewardReport("one", -1, 1.0, None),
        RewardReport("one", 2**70, 1.0, None),
        RewardReport("one", 0, 1.0, float("inf")),
        RewardReport("one", 0, 1.0, None, cost=1.0),
        RewardReport("one", 0, 1.0, None, amounts={"x": 1.0}),
        RewardReport("one", 0, 1.0, None, amounts="x"),  # type: ignore[arg-type]
    ]
    for campaign in both(service, "malformed", policy=POLICY, horizon=2, episodes=3, seed=4):
        campaign.start_episode("one")
        acts = campaign.act_many([*bad_acts, ActRequest("one", 0, "a"), *bad_acts])
        good = acts.pop(len(bad_acts))
        assert isinstance(good, ActionReply)
        told = campaign.reward_many([*bad_rewards, RewardReport("one", 0, 1.0, None), *bad_rewards])
        assert getattr(told.pop(len(bad_rewards)), "over", None) is True
        for refused in (*acts, *told):
            assert isinstance(refused, InputError | CampaignError)
            assert "\n" not in str(refused)
        assert campaign.status().episodes == 1


def test_its_end_and_after(service: Connection) -> None:
    question = {"policy": POLICY, "horizon": 1, "episodes": 400, "seed": 4, "half_width": 10.0}
    local, connected = both(service, "ends", **question)
    for campaign in (local, connected):
        for episode in campaign.episodes():
            episode.act("a")
            episode.reward(float(episode.number % 3), None)
        with pytest.raises(InputError, match="the budget is in episodes"):
            campaign.extend(steps=5)
        campaign.extend(episodes=5, extension_id="more")
        campaign.extend(episodes=5, extension_id="more")
    assert connected.estimate() == local.estimate()
    assert connected.estimate().quantile is not None
    assert_same_status(local.status(), connected.status())
    assert connected.status().budget == 405
    with pytest.raises(CampaignError, match="archive it first") as caught:
        service.delete("ends")
    assert caught.value.code == "not-archived"
    connected.archive()
    connected.reopen()
    assert not connected.status().closed
    connected.archive()
    service.delete("ends")
    with pytest.raises(CampaignError, match="there is no campaign 'ends'"):
        service.delete("ends")


WRONG: dict[str, Callable[[Any], object]] = {
    "unknown episode": lambda campaign: campaign.episode("nobody"),
    "id": lambda campaign: campaign.start_episode("not an id"),
    "unknown state": lambda campaign: campaign.start_episode().act("c"),
    "no state": lambda campaign: campaign.start_episode().act(None),
    "probabilities": lambda campaign: campaign.start_episode().act("a", [0.5, 0.5]),
    "reward first": lambda campaign: campaign.start_episode("one").reward(1.0, None),
    "not finite": lambda campaign: campaign.start_episode().reward(float("nan"), None),
    "cost": lambda campaign: campaign.start_episode().reward(1.0, None, cost=2.0),
    "ranking": lambda campaign: campaign.ranking(),
    "no step": lambda campaign: campaign.estimate(),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=list(WRONG))
def test_errors_are_the_same(
    service: Connection, call: Callable[[Any], object], request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id.replace(" ", "-")
    errors = []
    for campaign in both(service, name, policy=POLICY, horizon=2, episodes=2, seed=1):
        with pytest.raises((InputError, CampaignError)) as caught:
            call(campaign)
        errors.append((caught.type, str(caught.value), getattr(caught.value, "code", None)))
    assert errors[0] == errors[1]


def test_creating_is_refused_alike(service: Connection) -> None:
    storage = MemoryStorage()
    asked: CampaignQuestion = {"policy": POLICY, "horizon": 2, "episodes": 2, "seed": 1}
    wrong: list[tuple[str, Any]] = [
        ("bad/name", {}),
        ("n", {"horizon": 0}),
        ("n", {"strategy": "none"}),
        ("n", {"campaign_id": "x"}),
        ("n", {"limits": {"max_ratio": 0.5}}),
    ]
    for name, change in wrong:
        sentences = []
        for create in (lambda n, **q: Campaign.create(storage, n, **q), service.create):
            with pytest.raises(InputError) as caught:
                create(name, **{**asked, **change})
            sentences.append(str(caught.value))
        assert sentences[0] == sentences[1]
    first = service.create("taken", **asked)
    with pytest.raises(NameTakenError, match="there is a campaign 'taken' already"):
        service.create("taken", **asked)
    asked["campaign_id"] = first.id
    assert service.create("taken", **asked).id == first.id
    with pytest.raises(CopyError):
        service.create("other", **asked)
    assert service.names().count("taken") == 1
    with pytest.raises(CampaignError, match="there is no campaign 'nobody'"):
        service.open("nobody")


def test_places_that_others_hold() -> None:
    clock = Clock()
    with running(MemoryStorage(clock)) as address, revar.connect(address) as service:
        campaign = service.create("held", policy=POLICY, horizon=1, episodes=1, lease=60.0)
        campaign.start_episode()
        with pytest.raises(BudgetReservedError) as caught:
            campaign.start_episode()
        assert caught.value.retry_after == 60.0
        later = threading.Timer(0.2, setattr, (clock, "time", clock.time + 61.0))
        later.start()
        played = [play_episode(episode) for episode in campaign.episodes(poll=0.05)]
        later.join()
        assert len(played) == 1
        with pytest.raises(BudgetSpentError, match="all 1 episodes are finished"):
            campaign.start_episode()


def test_tokens_and_paths() -> None:
    with (
        running(MemoryStorage(), [TOKEN]) as address,
        losing(address, [], "/below/here") as proxy,
        revar.connect(f"{proxy.address}/", TOKEN) as service,
    ):
        assert service.names() == []
        campaign = service.create("guarded", policy=POLICY, horizon=1, episodes=1)
        assert campaign.status().free == 1
        for shown in (repr(service), repr(service.service), str(service.service), repr(campaign)):
            assert TOKEN not in shown
            assert proxy.address in shown
        wrong = TOKEN.upper()
        with (
            revar.connect(proxy.address, wrong) as stranger,
            pytest.raises(ServiceError) as caught,
        ):
            stranger.names()
        assert "a bearer token is needed" in str(caught.value)
        assert proxy.address in str(caught.value)
        assert wrong not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:8321",
        "ftp://host",
        "http://",
        "http://host?x=1",
        "http://a b",
        "http://h:port",
        "http://\xe9..example/",
        "http://a..b/",
        8,
    ],
)
def test_addresses_that_cannot_be_used(address: Any) -> None:
    with pytest.raises(InputError, match="the address of a service"):
        revar.connect(address)


def test_secrets_are_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        revar.connect("http://user:hidden@host")
    assert "hidden" not in str(caught.value)
    with pytest.raises(InputError) as caught:
        revar.connect("http://host", "two\r\nlines")
    assert "lines" not in str(caught.value)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"retries": -1}, {"retries": 1.5}])
def test_options_that_cannot_be_used(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        revar.connect("http://host", **options)


def test_nobody_is_there_or_it_was_closed(address: str) -> None:
    with revar.connect("http://127.0.0.1:9", retries=1) as nobody, pytest.raises(ServiceError) as e:
        nobody.names()
    assert str(e.value).startswith("the service at http://127.0.0.1:9 was asked 2 times")
    service = revar.connect(address)
    service.close()
    service.close()
    with pytest.raises(
        ServiceError, match=f"the connection to the service at {address} was closed"
    ):
        service.names()


def test_without_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'revar-rl\[client\]'"):
        revar.connect("http://host")


def play_episode(episode: CampaignEpisode) -> str:
    episode.act("a")
    episode.reward(1.0, None)
    return episode.id


def play_one(campaign: ConnectedCampaign) -> str:
    return play_episode(campaign.start_episode())


def fail(campaign: ConnectedCampaign) -> None:
    campaign.episode("nobody")


def test_campaigns_and_episodes_go_to_workers(service: Connection) -> None:
    campaign = service.create("workers", policy=POLICY, horizon=1, episodes=4)
    copy = pickle.loads(pickle.dumps(campaign))
    episode = pickle.loads(pickle.dumps(copy.start_episode()))
    play_episode(episode)
    copy.connection.close()
    episode._campaign.connection.close()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert len(pool.apply(play_one, (campaign,))) == 32
        with pytest.raises(CampaignError, match="there is no episode 'nobody'") as caught:
            pool.apply(fail, (campaign,))
    assert caught.value.code == "unknown-episode"
    assert campaign.status().episodes == 2


def test_a_fork_does_not_share_connections(service: Connection) -> None:
    campaign = service.create("forked", policy=POLICY, horizon=1, episodes=40)
    play_one(campaign)  # a connection stays open
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for _ in range(10):
                    play_one(campaign)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    for _ in range(10):
        play_one(campaign)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert campaign.status().episodes == 31


def methods(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def parameters(signature: inspect.Signature) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


@pytest.mark.parametrize("kind", [ConnectedCampaign, AsyncCampaign])
def test_there_are_the_methods_of_a_campaign(kind: type) -> None:
    found, expected = methods(kind), methods(Campaign)
    del expected["after_fork"]  # which Python calls
    del expected["snapshot"]  # which a process that opens a campaign hands to the service
    found.pop("after_fork", None)
    assert {name: parameters(each) for name, each in found.items()} == {
        name: parameters(each) for name, each in expected.items()
    }


def test_there_are_the_methods_of_an_episode() -> None:
    expected = {name: parameters(found) for name, found in methods(CampaignEpisode).items()}
    assert {name: parameters(found) for name, found in methods(AsyncEpisode).items()} == expected


def test_a_connection_does_what_a_storage_is_asked_for() -> None:
    of_class = {name for name, member in vars(Campaign).items() if isinstance(member, classmethod)}
    for kind in (Connection, AsyncConnection):
        assert set(methods(kind)) - {"close", "names", "run"} == of_class


def test_creating_takes_the_arguments_of_a_campaign() -> None:
    taken = inspect.signature(Campaign.create).parameters
    assert set(taken) == {"storage", "name", *CampaignQuestion.__annotations__}
    required = {name for name, found in taken.items() if found.default is inspect.Parameter.empty}
    assert required == {"storage", "name", *CampaignQuestion.__required_keys__}


def typed_use(service: Connection) -> None:
    """Never called: mypy checks what callers see."""
    campaign = service.create("typed", policy=POLICY, horizon=2, episodes=10)
    assert_type(campaign, ConnectedCampaign)
    for episode in campaign.episodes():
        assert_type(episode, CampaignEpisode)
        assert_type(episode.act("a"), int)
        episode.reward(1.0, None)
    assert_type(campaign.status(), Status)
    assert_type(campaign.estimate(), Estimate)
    assert_type(campaign.ranking(), Ranking)
    assert_type(campaign.dataset(), Dataset)
    assert_type(service.names(), list[str])


async def typed_async_use() -> None:
    """Never called: mypy checks what callers see."""
    async with revar.connect_async("http://127.0.0.1:8321") as service:
        campaign = await service.open("typed")
        assert_type(campaign, AsyncCampaign)
        async for episode in campaign.episodes():
            assert_type(episode, AsyncEpisode)
            assert_type(await episode.act("a"), int)
            await episode.reward(1.0, None)
        assert_type(await campaign.status(), Status)
        assert_type(await campaign.estimate(), Estimate)
