"""Stores can be merged: episodes are told apart by their ids, and nothing is counted twice."""

from typing import Any

import numpy as np
import pytest

from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.merging import merge
from revar.errors import InputError
from tests.campaigns.worlds import World

QUESTION: dict[str, Any] = {"horizon": 2, "episodes": 3, "policy": {"s": [0.5, 0.5]}}


def campaign_with(rewards: list[float], **changes: Any) -> Campaign:
    campaign = Campaign.create(MemoryStorage(), "site", **{**QUESTION, **changes})
    for reward in rewards:
        episode = campaign.start_episode()
        for _ in range(2):
            episode.act("s")
            episode.reward(reward, "s")
    return campaign


def total(campaign: Campaign) -> tuple[float, int, int, float]:
    """Budget, finished episodes, steps, and the sum of all rewards."""
    status = campaign.status()
    statistics = campaign.read(lambda state, _: state.collection.statistics)
    rewards = float((statistics.visits * statistics.reward_mean).sum())
    return status.budget, status.episodes, status.steps, round(rewards, 9)


def test_two_sites_add_up() -> None:
    one, other = campaign_with([1.0, 2.0]), campaign_with([4.0, 8.0, 16.0])
    done = merge(one, other)
    assert done.episodes == 3
    assert total(one) == (6, 5, 10, 62.0)
    assert total(other) == (3, 3, 6, 56.0)
    assert one.status().free == 1  # the rest of its own budget
    assert len(one.dataset()) == 5


def test_merging_again_changes_nothing() -> None:
    one, other = campaign_with([1.0]), campaign_with([4.0])
    merge(one, other)
    before, length = total(one), len(list(one.events()))
    done = merge(one, other)
    assert (done.episodes, done.events) == (0, 0)
    assert total(one) == before
    assert len(list(one.events())) == length


def test_what_has_come_since_is_added() -> None:
    one, other = campaign_with([]), campaign_with([4.0])
    episode = other.start_episode()
    episode.act("s")
    episode.reward(1.0, "s")
    merge(one, other)
    assert one.status().steps == 3
    episode.act("s")
    episode.reward(1.0, "s")
    merge(one, other)
    assert total(one) == (6, 2, 4, 10.0)


def test_both_ways_and_over_a_third() -> None:
    one, other, third = campaign_with([1.0]), campaign_with([2.0]), campaign_with([4.0])
    merge(one, other)
    merge(third, one)
    merge(third, other)
    assert total(third) == (9, 3, 6, 14.0)
    merge(one, third)
    assert total(one) == total(third)


def test_a_copy_goes_on_elsewhere_and_comes_back() -> None:
    """The same campaign in two places keeps one budget; what was done in either is known."""
    one = campaign_with([1.0])
    copy = Campaign.copy_of(one, MemoryStorage(), "copy")
    merge(copy, one)
    assert total(copy) == total(one)
    episode = copy.start_episode()
    episode.act("s")
    episode.reward(8.0, None)
    merge(one, copy)
    assert total(one) == (3, 2, 3, 10.0)


def test_results_of_an_episode_without_a_place_are_merged() -> None:
    one = campaign_with([], episodes=1, lease=1e-6)
    lost = one.start_episode()
    copy = Campaign.copy_of(one, MemoryStorage(), "copy")
    merge(copy, one)
    one.start_episode()  # takes the place
    away = copy.episode(lost.id)
    away.act("s")
    away.reward(8.0, None)
    merge(one, copy)
    assert one.status().steps == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"horizon": 3},
        {"discount": 0.9},
        {"policy": {"s": [0.4, 0.6]}},
        {"policy": {"s": [0.5, 0.5], "t": [1.0, 0.0]}},
        {"policy": None, "actions": 2},
    ],
)
def test_another_question_is_refused(changes: dict[str, Any]) -> None:
    other = Campaign.create(MemoryStorage(), "other", **{**QUESTION, **changes})
    with pytest.raises(InputError, match="do not ask the same question"):
        merge(campaign_with([1.0]), other)


def test_a_merged_estimate_is_that_of_all_data() -> None:
    world = World.named("gridworld")
    campaigns = [
        Campaign.create(
            MemoryStorage(), "grid", policy=world.policy, horizon=world.horizon, episodes=60, seed=s
        )
        for s in (1, 2)
    ]
    for place, campaign in enumerate(campaigns):
        for episode in campaign.episodes():
            World(world.problem, seed=place).play(episode)
    statistics = [campaign.read(lambda state, _: state.collection) for campaign in campaigns]
    visits = np.zeros((16, 4))
    for collection in statistics:
        for number, key in enumerate(collection.states.keys):
            if number < collection.statistics.states:
                visits[int(key)] += collection.statistics.visits[number]  # type: ignore[call-overload]
    merge(*campaigns)
    merged = campaigns[0].read(lambda state, _: state.collection)
    for number, key in enumerate(merged.states.keys):
        row = merged.statistics.visits[number] if number < merged.statistics.states else 0
        assert np.array_equal(visits[int(key)], np.broadcast_to(row, 4))  # type: ignore[call-overload]
    assert campaigns[0].estimate().episodes == 120
