"""The log of a campaign behind a service: read, added to, copied and merged as a local one is."""

import asyncio
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import revar
from revar.campaigns import Campaign, CampaignError, MemoryStorage
from revar.campaigns.commands import Act, ActionReply, EpisodeReply
from revar.campaigns.events import (
    Acted,
    Closed,
    Event,
    Extended,
    Merged,
    Rewarded,
    Started,
    encode_event,
)
from revar.campaigns.merging import MergeResult, merge
from revar.campaigns.service import events as event_routes
from revar.campaigns.status import status_of
from revar.campaigns.storage.interface import StorageError
from revar.campaigns.verdicts import Effect
from revar.client import ConnectedCampaign, Connection
from revar.errors import InputError
from tests.campaigns.serving import call
from tests.campaigns.worlds import Clock, World
from tests.client.services import running

WORLD = World.named("gridworld")
ASKED: dict[str, Any] = {
    "policy": WORLD.policy,
    "horizon": WORLD.horizon,
    "episodes": 4,
    "strategy": "on-policy",
    "seed": 3,
}
POLICY = {"a": [0.5, 0.5]}
STATE, NULL = msgspec.Raw(b'"a"'), msgspec.Raw(b"null")


@pytest.fixture(scope="module")
def storage() -> MemoryStorage:
    return MemoryStorage(Clock())


@pytest.fixture(scope="module")
def address(storage: MemoryStorage) -> Iterator[str]:
    with running(storage) as address:
        yield address


@pytest.fixture
def service(address: str) -> Iterator[Connection]:
    with revar.connect(address) as service:
        yield service


def played(service: Connection, name: str, episodes: int = 2) -> ConnectedCampaign:
    campaign = service.create(name, **ASKED)
    for _ in range(episodes):
        WORLD.play(campaign.start_episode())
    return campaign


def test_it_is_read_like_a_local_one(
    service: Connection, storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_routes, "LARGEST_PAGE", 500)  # several replies
    connected = played(service, "read")
    local = Campaign.open(storage, "read")

    def look(state: Any, now: float) -> object:
        return state.position, state.collection.statistics.visits.tolist(), now

    assert connected.peek(lambda state: state.position) == 0
    assert connected.read(look) == local.read(look)
    assert connected.peek(lambda state: state.position) == local.peek(lambda s: s.position) > 20
    assert list(connected.events()) == list(local.events())
    WORLD.play(connected.start_episode())
    assert connected.read(look) == local.read(look)
    copy = pickle.loads(pickle.dumps(connected))
    shown = copy.read(lambda state, now: status_of("read", copy.id, state, now))
    assert str(shown) == str(local.status())
    copy.connection.close()


def test_copies_and_merging(service: Connection) -> None:
    """In every direction between a storage and a service."""
    source = played(service, "source")
    here = Campaign.copy_of(source, MemoryStorage(), "copy")
    assert merge(here, source) == MergeResult(2, sum(1 for _ in here.events()))
    assert here.estimate().value == source.estimate().value
    with running(MemoryStorage()) as elsewhere, revar.connect(elsewhere) as other:
        there = other.copy_of(here, "copy")
        assert (there.id, there.definition) == (source.id, source.definition)
        assert merge(there, source).episodes == 2
        assert merge(there, here) == MergeResult(0, 0)
        assert there.estimate() == source.estimate()
        assert there.status().budget == 4  # a copy brings none along
    joined = service.create("joined", **ASKED)
    assert merge(joined, here).episodes == 2
    assert joined.status().budget == 8


def test_events_and_commands(service: Connection) -> None:
    campaign = service.create("commands", policy=POLICY, horizon=1, episodes=2, seed=1)
    state = bytes(STATE)
    replies = campaign.execute(
        [
            Started("one"),
            Act("one", 0, state),
            Act("two", 0, state),
            Extended("more", 3),
            Extended("more", 3),
            Merged("f" * 32, episodes=5),
        ]
    )
    assert isinstance(replies[0], EpisodeReply) and isinstance(replies[1], ActionReply)
    assert isinstance(replies[2], CampaignError) and replies[2].code == "unknown-episode"
    assert replies[3:] == [None] * 3
    assert campaign.status().budget == 10
    events: list[Event] = [
        Started("three", merged=True),
        Acted("three", 0, STATE, 1, merged=True),
        Rewarded("three", 0, 2.0, STATE),
        Started("three", merged=True),
        Rewarded("nobody", 0, 2.0, STATE),
        Closed(),
    ]
    effects = [verdict.effect for verdict in campaign.add(events)]
    taken, repeated, refused = Effect.TAKEN, Effect.REPEATED, Effect.REFUSED
    assert effects == [taken, taken, taken, repeated, refused, taken]
    assert campaign.status().closed
    assert campaign.add([]) == []


WRONG: dict[str, Event] = {
    "draws is -1": Acted("e", 0, STATE, 0, draws=-1),
    "propensity is 2.0": Acted("e", 0, STATE, 0, propensity=2.0),
    "put_plan_off": Acted("e", 0, STATE, 0, put_plan_off=True),
    "takes no probabilities": Acted("e", 0, STATE, 0, probabilities=[1.0, 0.0]),
    "state is null": Acted("e", 0, NULL, 0),
    "the id of an episode is 'a b'": Started("a b"),
    "the id of a campaign is 'x'": Merged("x", episodes=1),
    "episodes is -4": Merged("f" * 32, episodes=-4),
    "episodes is 0.5": Extended("half", 0.5),
    "the reward is": Rewarded("e", 0, 1e300, NULL),
    "cost": Rewarded("e", 0, 1.0, NULL, cost=1.0),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_events_that_no_campaign_writes(
    service: Connection, storage: MemoryStorage, sentence: str
) -> None:
    name = "wrong-" + str(list(WRONG).index(sentence))
    campaign = service.create(name, policy=POLICY, horizon=1, episodes=2, seed=1)
    with pytest.raises(CampaignError, match=rf"^events\[1\]: .*{sentence}"):
        campaign.add([Started("e"), WRONG[sentence]])
    assert storage.length(campaign.id) == 0


def test_states_are_added_in_one_form(service: Connection, address: str) -> None:
    campaign = service.create("forms", policy={"a": [1.0]}, horizon=1, episodes=2)
    body = {
        "events": [
            {"type": "started", "episode": "one", "merged": True},
            {"type": "acted", "episode": "one", "step": 0, "state": "a", "action": 0},
            {"type": "rewarded", "episode": "one", "step": 0, "reward": 1, "next_state": [1.0]},
        ]
    }
    status, answer = call(address, "/api/campaigns/forms/events", body)
    assert status == 200
    assert [each["effect"] for each in answer["verdicts"]] == ["taken"] * 3
    bodies = [encode_event(event) for _, event in campaign.events()]  # type: ignore[arg-type]
    assert bodies[2].endswith(b'"next_state":[1]}')


def test_there_must_be_room_for_added_states(service: Connection, storage: MemoryStorage) -> None:
    row = [1.0] + [0.0] * 499
    added: list[Event] = [Started("one", merged=True)]
    states = [msgspec.Raw(str(number).encode()) for number in range(200)]
    added += [Acted("one", 0, state, 0, probabilities=row) for state in states]
    large = service.create("large", actions=500, horizon=1000, episodes=2)
    for campaign in (large, Campaign.copy_of(large, MemoryStorage(), "copy")):
        with pytest.raises((CampaignError, InputError), match="the most that a campaign plans for"):
            campaign.add(added)
    assert storage.length(large.id) == 0


@pytest.mark.parametrize("after", ["-1", "x", "1" * 20, "9" * 16, "1.5"])
def test_positions_that_cannot_be(service: Connection, address: str, after: str) -> None:
    if "positions" not in service.names():
        service.create("positions", **ASKED)
    status, answer = call(address, f"/api/campaigns/positions/events?after={after}")
    assert (status, answer["error"]["code"]) == (422, "invalid")


def test_in_async_calls(address: str) -> None:
    async def use() -> None:
        async with revar.connect_async(address) as service:
            campaign = await service.create("async", policy=POLICY, horizon=1, episodes=9, seed=1)
            found = await asyncio.gather(*(campaign.read(lambda s, _: s.position) for _ in "abc"))
            assert found == [0, 0, 0]
            assert await campaign.add([Started("one", merged=True)])
            assert await campaign.execute([Closed()]) == [None]
            assert [event async for _, event in campaign.events()] == [
                Started("one", merged=True),
                Closed(),
            ]
            assert await campaign.read(lambda state, _: state.closed)
            assert await campaign.peek(lambda state: state.position) == 2
            async with revar.connect_async(address) as again:
                with pytest.raises(StorageError, match="would be a copy"):
                    await again.copy_of(campaign, "async-copy")

    asyncio.run(use())


# -- which campaign ------------------------------------------------------------------------


def test_another_campaign_of_the_same_name_is_refused(
    service: Connection, storage: MemoryStorage, address: str
) -> None:
    old = played(service, "reborn")
    episode = old.start_episode("mine")
    old.archive()
    service.delete("reborn")
    with pytest.raises((CampaignError, StorageError), match="there is no campaign 'reborn'"):
        old.status()
    new = service.create("reborn", **ASKED)
    calls: list[Callable[[], object]] = [
        old.status,
        old.estimate,
        old.dataset,
        old.start_episode,
        old.close,
        old.archive,
        lambda: list(old.events()),
        lambda: old.read(lambda state, _: state),
        lambda: old.add([Closed()]),
        lambda: episode.act("s"),
        lambda: old.start_episodes(2),
        lambda: old.extend(episodes=1),
        lambda: old.find_episode("mine"),
    ]
    for each in calls:
        with pytest.raises(CampaignError, match="that one was removed, and another has") as caught:
            each()
        assert caught.value.code == "another-campaign"
    assert storage.length(new.id) == 0
    assert service.open("reborn").id == new.id
    assert call(address, "/api/campaigns/reborn", headers=[("Revar-Campaign", "x")])[0] == 422


def test_another_that_other_processes_have_made(
    service: Connection, storage: MemoryStorage
) -> None:
    """The service has the old one open still; who means the new one gets it."""
    old = played(service, "replaced")
    storage.delete("replaced")
    made = Campaign.create(storage, "replaced", **ASKED)
    new = service.open("replaced")
    assert new.id == made.id
    assert new.status().steps == 0
    with pytest.raises(CampaignError, match="another has its name"):
        old.status()


def test_input_errors_of_a_handle_are_not_those_of_the_service() -> None:
    with running(MemoryStorage()) as address, revar.connect(address) as service:
        campaign = service.create("c", policy=POLICY, horizon=1, episodes=1)
        with pytest.raises(InputError, match="the id of an episode"):
            campaign.find_episode("a b")
