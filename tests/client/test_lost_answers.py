"""Requests and answers get lost after the service has acted; nothing counts twice."""

import asyncio
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import revar
from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.commands import ActionReply
from revar.campaigns.events import (
    Acted,
    Archived,
    Closed,
    Extended,
    Reopened,
    Rewarded,
    Started,
)
from revar.campaigns.requests import ActRequest, RewardReport
from revar.client import AsyncConnection, ConnectedCampaign, ServiceError, exchange
from tests.campaigns.worlds import World
from tests.client.services import Proxy, drawn_losses, losing, running

POLICY = {"a": [0.7, 0.3], "b": [0.2, 0.8]}
WORLD = World.named("gridworld")


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(exchange, "LONGEST_WAIT", 0.01)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def address(storage: MemoryStorage) -> Iterator[str]:
    with running(storage) as address:
        yield address


def events(storage: MemoryStorage, name: str) -> list[object]:
    return [event for _, event in Campaign.open(storage, name).events()]


def repeats(proxy: Proxy) -> int:
    """How often a request reached the service again."""
    return len(proxy.acted) - len(set(proxy.acted))


@pytest.mark.parametrize("loss", Proxy.KINDS)
def test_every_call_survives_the_loss(loss: str, address: str, storage: MemoryStorage) -> None:
    """The first message of each call meets with the loss, the second one passes."""
    losses = [loss, "fine"] * 60
    with losing(address, losses) as proxy, revar.connect(proxy.address) as service:
        campaign = service.create(
            "ads", policies={"x": POLICY, "y": POLICY}, horizon=2, episodes=3, seed=1
        )
        assert service.open("ads").id == campaign.id
        assert service.names() == ["ads"]
        episode = campaign.start_episode()
        episode.heartbeat()
        episode.act("a")
        episode.reward(1.0, "b")
        episode.finish()
        first, second = campaign.start_episodes(5)
        acts = campaign.act_many([ActRequest(first.id, 0, "a"), ActRequest(second.id, 0, "b")])
        assert all(isinstance(reply, ActionReply) for reply in acts)
        campaign.reward_many([RewardReport(first.id, 0, 2.0, None)])
        second.abandon()
        assert campaign.find_episode(first.id).over
        assert campaign.ranking().joint.episodes == 2
        assert campaign.dataset(partial=True).states.size == 2
        campaign.close()
        campaign.reopen()
        campaign.extend(episodes=4)
        campaign.archive()
        status = campaign.status()
        found = Counter(type(event) for event in events(storage, "ads"))
        started = Campaign.open(storage, "ads").read(lambda state, _: len(state.records))
        service.delete("ads")
        lost_answers = repeats(proxy)
    assert (status.budget, status.steps, status.episodes, status.open) == (7, 2, 2, 0)
    assert (started, found[Started], found[Acted], found[Rewarded]) == (3, 3, 3, 2)
    assert (found[Closed], found[Reopened], found[Extended], found[Archived]) == (1, 1, 1, 1)
    assert storage.entries() == []
    # Where answers are lost, the service did see calls again: otherwise this would show nothing.
    assert (lost_answers >= 15) == (loss in ("answer", "half"))


def test_a_campaign_goes_as_if_nothing_had_been_lost(address: str, storage: MemoryStorage) -> None:
    question = {"policy": WORLD.policy, "horizon": WORLD.horizon, "episodes": 10, "seed": 3}
    local = Campaign.create(MemoryStorage(), "calm", **question)
    expected = [WORLD.play(episode) for episode in local.episodes()]
    losses = drawn_losses(7, 2_000)
    with losing(address, losses) as proxy, revar.connect(proxy.address, retries=30) as service:
        campaign = service.create("stormy", **question)
        assert [WORLD.play(episode) for episode in campaign.episodes()] == expected
        assert campaign.estimate() == local.estimate()
        assert repeats(proxy) > 20
    taken = [e for e in events(storage, "stormy") if isinstance(e, Acted | Rewarded | Started)]
    assert Counter(type(event) for event in taken) == Counter(
        type(event) for _, event in local.events() if isinstance(event, Acted | Rewarded | Started)
    )


def outcome(episode: str, step: int, action: int) -> tuple[float, str | None]:
    draw = random.Random(f"{episode}/{step}/{action}")
    return draw.gauss(action, 1.0), draw.choice(["a", "b", None])


def play(campaign: ConnectedCampaign) -> dict[tuple[str, int], float]:
    told = {}
    for episode in campaign.episodes(poll=0.01):
        state: str | None = "a"
        while not episode.over:
            step = episode.steps
            reward, state = outcome(episode.id, step, episode.act(state))
            episode.reward(reward, state)
            told[episode.id, step] = reward
    return told


async def play_async(address: str) -> dict[tuple[str, int], float]:
    told: dict[tuple[str, int], float] = {}

    async def work(name: str) -> None:
        campaign = await service.open(name)
        async for episode in campaign.episodes(poll=0.01):
            state: str | None = "a"
            while not episode.over:
                step = episode.steps
                reward, state = outcome(episode.id, step, await episode.act(state))
                await episode.reward(reward, state)
                told[episode.id, step] = reward

    async with revar.connect_async(address, retries=30) as service:
        campaign = await service.create("crowd", policy=POLICY, horizon=3, episodes=40, seed=1)
        await asyncio.gather(*(work(campaign.name) for _ in range(4)))
        status = await campaign.status()
        assert (status.episodes, status.open, status.late) == (40, 0, 0)
        assert (await campaign.estimate()).episodes == 40
        assert await service.names() == ["crowd"]
    return told


def assert_counted_once(storage: MemoryStorage, told: dict[tuple[str, int], float]) -> None:
    """The log has what the callers told, and nothing else."""
    log = events(storage, "crowd")
    rewarded = [(e.episode, e.step, e.reward) for e in log if isinstance(e, Rewarded)]
    assert sorted(rewarded) == sorted((*key, reward) for key, reward in told.items())
    assert len([e for e in log if isinstance(e, Acted)]) == len(told)
    assert len([e for e in log if isinstance(e, Started)]) == len({key[0] for key in told}) == 40


def test_threads(address: str, storage: MemoryStorage) -> None:
    with (
        losing(address, drawn_losses(1, 5_000)) as proxy,
        revar.connect(proxy.address, retries=30) as service,
        ThreadPoolExecutor(4) as pool,
    ):
        campaign = service.create("crowd", policy=POLICY, horizon=3, episodes=40, seed=1)
        found = list(pool.map(play, [campaign] * 4))
        assert repeats(proxy) > 20
    assert_counted_once(storage, {key: reward for part in found for key, reward in part.items()})


def test_async_calls(address: str, storage: MemoryStorage) -> None:
    with losing(address, drawn_losses(2, 5_000)) as proxy:
        told = asyncio.run(play_async(proxy.address))
        assert repeats(proxy) > 20
    assert_counted_once(storage, told)


def test_an_async_connection_belongs_to_one_loop(address: str) -> None:
    async def use() -> AsyncConnection:
        async with revar.connect_async(address) as service:
            assert await service.names() == []
            copy = pickle.loads(pickle.dumps(service))
            assert await copy.names() == []
            await copy.close()
            await copy.close()
            with pytest.raises(ServiceError, match="was closed"):
                await copy.names()
            with ThreadPoolExecutor(1) as pool:
                elsewhere = pool.submit(asyncio.run, service.names())
            with pytest.raises(ServiceError, match="belongs to another event loop"):
                elsewhere.result()
        return service

    service = asyncio.run(use())
    assert repr(service) == f"AsyncConnection({address!r})"
