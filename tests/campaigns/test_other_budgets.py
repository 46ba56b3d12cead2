"""Budgets of steps or cost: what is begun, what is spent, and what survives."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from revar.campaigns import (
    BudgetReservedError,
    BudgetSpentError,
    Campaign,
    CampaignError,
    MemoryStorage,
)
from revar.campaigns.defining import define
from revar.campaigns.episode import CampaignEpisode
from revar.collection import Collection
from revar.model.budget import Budget
from tests.campaigns.worlds import Clock, World

POLICY = {"s": [0.5, 0.5]}


def create(clock: Clock | None = None, **asked: Any) -> Campaign:
    """A campaign of one state whose episodes have at most four steps."""
    question = {"policy": POLICY, "horizon": 4, "seed": 3, "lease": 10, **asked}
    return Campaign.create(MemoryStorage(clock or Clock()), "c", **question)


def play(episode: CampaignEpisode, steps: int, cost: float | None = None) -> None:
    """Take so many steps; the horizon may end the episode."""
    for _ in range(steps):
        episode.act("s")
        episode.reward(1.0, "s", cost=cost)


def test_the_last_episode_may_exceed_the_budget() -> None:
    campaign = create(steps=10)
    for episode in campaign.episodes():
        play(episode, 4)
    status = campaign.status()
    assert (status.budget, status.unit, status.used, status.left) == (10, "steps", 12, 0)
    assert (status.episodes, status.steps, status.spent, status.condition) == (
        3,
        12,
        True,
        "complete",
    )
    assert str(status).startswith("c: 12 of 10 steps spent, 3 episodes finished, 0 open")
    with pytest.raises(BudgetSpentError, match="the budget, 10 steps, is spent"):
        campaign.start_episode()


def test_only_as_many_side_by_side_as_surely_fit() -> None:
    campaign = create(steps=11)
    first, second = campaign.start_episode(), campaign.start_episode()
    assert campaign.status().free == 0
    with pytest.raises(BudgetReservedError, match="what is left, 11 steps, is reserved for"):
        campaign.start_episode()
    play(first, 1)
    first.finish()
    assert (campaign.status().left, campaign.status().free) == (10, 1)
    play(second, 4)
    assert (campaign.status().left, campaign.status().free) == (6, 1)
    last = campaign.start_episode()
    with pytest.raises(BudgetReservedError, match="what is left, 6 steps"):
        campaign.start_episode()
    play(last, 4)
    play(campaign.start_episode(), 4)  # of the two steps that are left, alone
    assert (campaign.status().used, campaign.status().spent) == (13, True)


def test_a_lease_that_ran_out_frees_its_place() -> None:
    clock = Clock()
    campaign = create(clock, steps=8)
    silent = campaign.start_episode()
    play(silent, 1)
    other = campaign.start_episode() if campaign.status().free else None
    assert other is None  # seven steps are left, and four of them are reserved
    clock.time += 11
    replacement = campaign.start_episode()
    assert [lease.episode for lease in campaign.status().leases] == [replacement.id]
    with pytest.raises(CampaignError, match="its place in the budget is gone"):
        silent.act("s")
    play(replacement, 4)
    assert campaign.status().left == 3
    play(silent, 1)  # takes the place that is free again
    assert campaign.status().open == 1


def test_a_lease_that_ran_out_may_not_be_enough() -> None:
    """Steps that were taken since leave less room than there are episodes under way."""
    clock = Clock()
    campaign = create(clock, steps=12)
    silent, *others = (campaign.start_episode() for _ in range(3))
    for other in others:
        play(other, 2)
    clock.time += 11
    play(others[0], 1)
    play(others[1], 1)  # six steps are left, for at most two more of these, and four of the silent
    with pytest.raises(BudgetReservedError, match="what is left, 6 steps, is reserved"):
        campaign.start_episode()
    assert silent.id not in {lease.episode for lease in campaign.status().leases}
    for other in others:
        play(other, 1)
    play(silent, 4)  # alone with what is left
    assert (campaign.status().used, campaign.status().spent) == (12, True)


def test_what_a_late_result_spends_is_spent() -> None:
    clock = Clock()
    campaign = create(clock, steps=4)
    late = campaign.start_episode()
    late.act("s")
    clock.time += 11
    replacement = campaign.start_episode()
    late.reward(1.0, None)
    status = campaign.status()
    assert (status.used, status.late, status.episodes) == (1, 1, 1)
    play(replacement, 4)
    assert campaign.status().used == 5


def test_steps_of_an_abandoned_episode_are_spent() -> None:
    campaign = create(steps=8)
    episode = campaign.start_episode()
    play(episode, 3)
    episode.abandon()
    status = campaign.status()
    assert (status.used, status.left, status.episodes, status.partial, status.free) == (
        3,
        5,
        0,
        1,
        1,
    )


def test_cost_is_what_rewards_tell() -> None:
    campaign = create(budget=10.0)
    first = campaign.start_episode()
    with pytest.raises(BudgetReservedError, match="what is left, a cost of 10, is reserved"):
        campaign.start_episode()  # nobody knows yet what an episode costs
    play(first, 2, cost=1.25)
    first.finish()
    status = campaign.status()
    assert (status.used, status.left, status.unit, status.free) == (2.5, 7.5, "cost", 1)
    for _ in range(2):
        play(campaign.start_episode(), 4, cost=1.0)
    assert "10.5 of a cost of 10 spent, 3 episodes" in str(campaign.status())
    with pytest.raises(BudgetSpentError, match="the budget, a cost of 10, is spent"):
        campaign.start_episode()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [{"steps": 61}, {"budget": 30.0}])
def test_never_more_than_one_episode_over(budget: dict[str, Any], seed: int) -> None:
    """Workers side by side whose episodes end when they please."""
    draw = random.Random(seed)
    campaign = create(**budget, strategy="on-policy")
    paid = "budget" in budget
    opened: list[CampaignEpisode] = []
    while not (campaign.status().spent and not opened):
        if draw.random() < 0.4:
            try:
                opened.append(campaign.start_episode())
            except CampaignError:
                assert campaign.status().free == 0
        elif opened:
            episode = draw.choice(opened)
            episode.act("s")
            following = "s" if draw.random() < 0.7 else None
            episode.reward(1.0, following, cost=0.5 if paid else None)
            opened = [each for each in opened if not each.over]
    status = campaign.status()
    assert 0 <= status.used - status.budget < (4 * 0.5 if paid else 4)


def test_decisions_are_those_of_a_collection() -> None:
    """The strategy plans for what is left of the budget in its unit."""
    world = World.named("gridworld")
    collection = Collection("flow", horizon=12, actions=4, budget=Budget(300, "steps"), seed=5)
    expected = []
    while collection.affordable():
        episode = collection.start(collection.finished)
        state: int | None = world.first(episode.number)
        actions = []
        while not episode.over:
            assert state is not None
            action, _ = episode.act(state, tuple(world.policy[state].tolist()))
            reward, following = world.outcome(episode.number, episode.steps, state, action)
            episode.observe(reward, following)
            actions.append(action)
            state = following
        episode.finish()
        expected.append(actions)
    campaign = Campaign.create(
        MemoryStorage(), "grid", policy=world.policy, horizon=12, steps=300, seed=5
    )
    assert [world.play(episode) for episode in campaign.episodes()] == expected
    assert 300 <= campaign.status().used < 312


def test_a_closed_campaign_starts_nothing() -> None:
    campaign = create(steps=10)
    episode = campaign.start_episode()
    campaign.close()
    with pytest.raises(BudgetSpentError, match="the campaign is closed"):
        campaign.start_episode()
    play(episode, 4)
    assert (campaign.status().condition, campaign.status().left) == ("closed", 6)


def test_two_processes_share_one_budget(tmp_path: Path) -> None:
    """Two views of one SQLite file, turn by turn."""
    address = f"sqlite:///{tmp_path}/campaigns.db"
    first = Campaign.create(address, "c", policy=POLICY, horizon=4, steps=12, seed=1)
    second = Campaign.open(address, "c")
    episodes = [first.start_episode(), second.start_episode(), first.start_episode()]
    for worker in (first, second):
        with pytest.raises(BudgetReservedError, match="12 steps"):
            worker.start_episode()
    for episode in episodes:
        play(episode, 4)
    for worker in (first, second):
        assert worker.status().used == 12
        with pytest.raises(BudgetSpentError):
            worker.start_episode()


def test_a_budget_of_episodes_is_stored_as_ever() -> None:
    question: dict[str, Any] = {"policy": POLICY, "horizon": 4, "seed": 3}
    stored = msgspec.json.encode(define(**question, episodes=5, limits={}))
    assert stored == (
        b'{"horizon":4,"discount":1.0,"episodes":5,"actions":2,"strategy":{"id":"flow",'
        b'"parameters":{}},"seed":3,"lease":900.0,"policy":[{"state":"s",'
        b'"probabilities":[0.5,0.5]}]}'
    )
    with_steps = msgspec.json.decode(msgspec.json.encode(define(**question, steps=5)))
    assert (with_steps["episodes"], with_steps["steps"]) == (None, 5)
    assert "limits" not in with_steps
