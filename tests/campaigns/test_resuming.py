"""A campaign that is opened anew at every step is the one that was never closed."""

import random
from pathlib import Path

import msgspec
import numpy as np
import pytest

from revar.campaigns import Campaign, MemoryStorage, SQLiteStorage, snapshots
from revar.campaigns.snapshots import restore, snapshot_of
from revar.campaigns.storage.interface import Snapshot
from revar.collection import Collection
from tests.campaigns.worlds import World

EPISODES = 30
STRATEGIES = ["on-policy", "uniform", "revar", "cb-var", "flow"]


def decisions_of_collection(world: World, strategy: str) -> tuple[list[list[int]], Collection]:
    """The same episodes without a campaign: the rules of `revar.collection` alone."""
    collection = Collection(
        strategy,
        horizon=world.horizon,
        actions=4,
        budget=EPISODES,
        seed=5,
        keep_episodes=False,  # campaigns estimate from statistics
    )
    decisions = []
    for number in range(EPISODES):
        episode = collection.start(number)
        state: int | None = world.first(number)
        while not episode.over:
            assert state is not None
            action, _ = episode.act(state, world.policy[state])
            reward, state = world.outcome(number, episode.steps, state, action)
            episode.observe(reward, state)
        episode.finish()
        decisions.append(episode.actions)
    return decisions, collection


def campaign_of(world: World, strategy: str, storage: MemoryStorage | SQLiteStorage) -> Campaign:
    return Campaign.create(
        storage,
        "campaign",
        policy=world.policy,
        horizon=world.horizon,
        episodes=EPISODES,
        strategy=strategy,
        seed=5,
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_worker_decides_like_a_collection(strategy: str) -> None:
    world = World.named("gridworld")
    campaign = campaign_of(world, strategy, MemoryStorage())
    decisions = [world.play(episode) for episode in campaign.episodes()]
    expected, collection = decisions_of_collection(world, strategy)
    assert decisions == expected
    assert campaign.estimate() == collection.estimate()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("with_snapshots", [True, False], ids=["snapshots", "whole log"])
def test_every_call_in_a_process_of_its_own(
    strategy: str, with_snapshots: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resuming repeats no random number and forgets nothing, wherever it happens."""
    if with_snapshots:  # one after every event
        monkeypatch.setattr(snapshots, "LEAST_EVENTS", 1)
        monkeypatch.setattr(snapshots, "SHARE", 0.0)
    world = World.named("gridworld")
    storage = MemoryStorage()
    campaign_of(world, strategy, storage)
    decisions = []
    few = 8  # episodes: opening takes as long as the log is
    for number in range(few):
        episode = Campaign.open(storage, "campaign").start_episode()
        state: int | None = world.first(number)
        taken = []
        while not episode.over:
            action = Campaign.open(storage, "campaign").episode(episode.id).act(state)
            assert state is not None
            reward, state = world.outcome(number, episode.steps, state, action)
            episode = Campaign.open(storage, "campaign").episode(episode.id)
            episode.reward(reward, state)
            taken.append(action)
        decisions.append(taken)
    assert decisions == decisions_of_collection(world, strategy)[0][:few]


def test_a_snapshot_restores_every_bit() -> None:
    world = World.named("gridworld")
    campaign = campaign_of(world, "flow", MemoryStorage())
    opened = [campaign.start_episode() for _ in range(4)]
    for episode in opened[:2]:
        world.play(episode)
    opened[2].act(world.first(2))
    state = campaign.read(lambda state, _: state)
    saved = snapshot_of(state)
    again = restore(campaign.definition, saved)
    assert again.position == state.position
    assert snapshot_of(again).body == saved.body


def test_a_snapshot_that_is_damaged_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with it, the log is read instead: no bit may be another one."""
    world = World.named("tree")
    campaign = Campaign.create(
        MemoryStorage(), "c", policy=world.policy, horizon=world.horizon, episodes=5, seed=1
    )
    for episode in campaign.episodes():
        world.play(episode)
    saved = snapshot_of(campaign.read(lambda state, _: state))
    assert restore(campaign.definition, saved).position == saved.position
    damaged = [b"", b"\x93", saved.body[:-1], saved.body + b"\x00"]
    draw = random.Random(7)
    for _ in range(150):
        flipped, bit = bytearray(saved.body), draw.randrange(8 * len(saved.body))
        flipped[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(flipped))
    for body in damaged:
        assert restore(campaign.definition, Snapshot(saved.position, body)).position == 0
    assert restore(campaign.definition, Snapshot(saved.position + 1, saved.body)).position == 0
    # Written whole, but by somebody who means something else.
    record = msgspec.msgpack.decode(saved.body[snapshots.DIGEST :])
    for field, other in (("leases", ["nobody"]), ("history", [1]), ("late", None)):
        data = msgspec.msgpack.encode({**record, field: other})
        body = snapshots._digest(saved.position, data) + data
        assert restore(campaign.definition, Snapshot(saved.position, body)).position == 0
    monkeypatch.setattr(snapshots, "FORMAT", snapshots.FORMAT + 1)
    assert restore(campaign.definition, saved).position == 0


def test_a_snapshot_that_cannot_be_used_is_replaced() -> None:
    storage = MemoryStorage()
    campaign = Campaign.create(
        storage, "c", policy={"a": [0.5, 0.5]}, horizon=1, episodes=9, seed=1
    )
    episode = campaign.start_episode()
    episode.act("a")
    end = campaign.read(lambda state, _: state.position)
    storage.save_snapshot(campaign.id, Snapshot(end, b"from another time"))
    opened = Campaign.open(storage, "c")
    kept = storage.load_snapshot(campaign.id)
    assert kept is not None
    assert restore(opened.definition, kept).position == kept.position == end


def test_a_snapshot_keeps_the_order_of_leases() -> None:
    """Those that run out are taken back in this order, whoever reads the log."""
    storage = MemoryStorage()
    campaign = Campaign.create(
        storage, "c", policy={"a": [0.5, 0.5]}, horizon=1, episodes=9, seed=1
    )
    first, second = campaign.start_episode("first"), campaign.start_episode("second")
    first.abandon()
    first.act("a")  # takes a place again, behind the other's
    snapshot = campaign.read(lambda state, _: snapshot_of(state))
    assert list(restore(campaign.definition, snapshot).leases) == [second.id, first.id]


def test_opening_reads_only_the_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "LEAST_EVENTS", 100)
    world = World.named("tree")
    storage = SQLiteStorage(tmp_path / "campaigns.db")
    campaign = Campaign.create(
        storage, "campaign", policy=world.policy, horizon=world.horizon, episodes=100, seed=1
    )
    for episode in campaign.episodes():
        world.play(episode)
    kept = storage.load_snapshot(campaign.id)
    assert kept is not None
    length = len(list(campaign.events()))
    assert length - kept.position < 100
    assert restore(campaign.definition, kept).position == kept.position
    assert Campaign.open(storage, "campaign").status().episodes == 100


def test_partial_episodes_count_with_their_complete_steps() -> None:
    """Statistics of a campaign are those of its complete steps, whoever left what unfinished."""
    campaign = Campaign.create(
        MemoryStorage(), "partial", policy={"s": [0.5, 0.5]}, horizon=4, episodes=9, seed=2
    )
    rewards = {0: [], 1: []}  # type: dict[int, list[float]]
    for left_after in (1, 2, 3):
        episode = campaign.start_episode()
        for step in range(left_after):
            reward = float(10 * left_after + step)
            rewards[episode.act("s")].append(reward)
            episode.reward(reward, "s")
        episode.act("s")  # what came of this is never told
        episode.abandon()
    statistics = campaign.read(lambda state, _: state.collection.statistics)
    assert statistics.visits.tolist() == [[len(rewards[0]), len(rewards[1])]]
    for action, seen in rewards.items():
        assert statistics.reward_mean[0, action] == pytest.approx(np.mean(seen))
    assert campaign.status().partial == 3
    assert len(campaign.dataset()) == 0
    assert [len(episode) for episode in campaign.dataset(partial=True)] == [1, 2, 3]
