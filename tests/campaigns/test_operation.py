"""Running a campaign: batches, heartbeats, extensions, archives, and an end by precision."""

import random
from typing import Any

import numpy as np
import pytest

from revar.campaigns import (
    BudgetReservedError,
    BudgetSpentError,
    Campaign,
    CampaignError,
    MemoryStorage,
    StorageError,
)
from revar.campaigns.commands import ActionReply, EpisodeReply, Reply
from revar.campaigns.events import Extended, Released, Started
from revar.campaigns.merging import merge
from revar.campaigns.requests import ActRequest, RewardReport
from revar.collection.checkpoints import checkpoint_times, quantile
from revar.errors import InputError
from tests.campaigns.worlds import Clock

POLICY = {"s": [0.5, 0.5]}


def create(storage: MemoryStorage | None = None, **changes: Any) -> Campaign:
    given: dict[str, Any] = {"policy": POLICY, "horizon": 2, "seed": 1, "strategy": "on-policy"}
    if not changes.keys() & {"steps", "budget"}:
        given["episodes"] = 5
    return Campaign.create(storage or MemoryStorage(), "c", **{**given, **changes})


def play(campaign: Campaign, reward: float = 1.0, **told: Any) -> None:
    episode = campaign.start_episode()
    episode.act("s")
    episode.reward(reward, None, **told)


class Counting(MemoryStorage):
    """Counts commits."""

    appends = 0

    def append(self, *given: Any) -> Any:
        self.appends += 1
        return super().append(*given)


def test_batches_take_one_commit_each() -> None:
    storage = Counting()
    campaign = create(storage)
    episodes = campaign.start_episodes(3)
    actions = campaign.act_many([ActRequest(each.id, 0, "s") for each in episodes])
    assert all(isinstance(each, ActionReply) for each in actions)
    told = campaign.reward_many(
        [RewardReport(each.id, 0, float(place), None) for place, each in enumerate(episodes)]
    )
    assert storage.appends == 3
    assert [each.over for each in told if isinstance(each, EpisodeReply)] == [True] * 3
    assert campaign.dataset().rewards.tolist() == [0.0, 1.0, 2.0]
    again = campaign.act_many([ActRequest(each.id, 0, "s") for each in episodes])
    assert [each.action for each in again if isinstance(each, ActionReply)] == [
        each.action for each in actions if isinstance(each, ActionReply)
    ]
    assert storage.appends == 3


def test_one_wrong_request_does_not_touch_the_others() -> None:
    campaign = create()
    good = campaign.start_episode()
    replies = campaign.act_many(
        [
            ActRequest("nobody", 0, "s"),
            ActRequest(good.id, 0, float("nan")),
            ActRequest(good.id, 0, "s"),
            ActRequest(good.id, 7, "s"),
        ]
    )
    kinds = [type(each) for each in replies]
    assert kinds == [CampaignError, InputError, ActionReply, CampaignError]
    told = campaign.reward_many(
        [RewardReport(good.id, 0, float("inf"), None), RewardReport(good.id, 0, 1.0, None)]
    )
    assert [type(each) for each in told] == [InputError, EpisodeReply]


@pytest.mark.parametrize("step", [0.0, "0", None])
def test_steps_are_whole_numbers(step: Any) -> None:
    campaign = create()
    episode = campaign.start_episode()
    (refused,) = campaign.act_many([ActRequest(episode.id, step, "s")])
    assert isinstance(refused, InputError) and "must be a whole number" in str(refused)
    episode.act("s")
    (untold,) = campaign.reward_many([RewardReport(episode.id, step, 1.0, None)])
    assert isinstance(untold, InputError) and "must be a whole number" in str(untold)
    episode.reward(1.0, None)
    assert campaign.status().steps == 1 and campaign.status().unreadable == 0


@pytest.mark.parametrize("step", [np.int64(0), False])
def test_other_whole_numbers_are_stored_as_such(step: Any) -> None:
    storage = MemoryStorage()
    campaign = create(storage)
    episode = campaign.start_episode()
    campaign.act_many([ActRequest(episode.id, step, "s")])
    campaign.reward_many([RewardReport(episode.id, step, 1.0, None)])
    again = Campaign.open(storage, "c").status()
    assert again.steps == 1 and again.unreadable == 0


@pytest.mark.parametrize("reward", [None, "much", 10**400], ids=["none", "text", "huge"])
def test_rewards_are_numbers(reward: Any) -> None:
    episode = create().start_episode()
    episode.act("s")
    with pytest.raises(InputError, match="the reward is"):
        episode.reward(reward, None)


def test_no_more_episodes_are_started_than_there_are_places() -> None:
    campaign = create(episodes=2)
    assert len(campaign.start_episodes(10)) == 2
    assert len(list(campaign.events())) == 2
    with pytest.raises(BudgetReservedError):
        campaign.start_episodes(10)


def codes(replies: list[Reply]) -> list[str]:
    """Of each reply the code of its error, or whether it is a repeated one."""
    return [
        each.code if isinstance(each, CampaignError) else "again" if each.repeated else "new"
        for each in replies
        if each is not None
    ]


def test_starts_without_a_place_are_not_stored() -> None:
    clock = Clock()
    campaign = create(MemoryStorage(clock), episodes=3, lease=10.0)
    asked = [Started(each) for each in "abcada"]
    reserved = "budget-reserved"
    assert codes(campaign.execute(asked)) == ["new"] * 3 + ["again", reserved, "again"]
    assert codes(campaign.execute(asked)) == ["again"] * 4 + [reserved, "again"]
    assert [event for _, event in campaign.events()] == [Started(each) for each in "abc"]
    clock.time += 11.0
    late = campaign.execute([Started(each) for each in "defgd"])
    assert codes(late) == ["new"] * 3 + [reserved, "again"]
    released = [Released(each) for each in "abc"]
    stored = [event for _, event in campaign.events()]
    assert stored[3:] == [*released, *(Started(each) for each in "def")]


def test_a_start_takes_a_place_that_is_given_back_with_it() -> None:
    campaign = create(episodes=2)
    campaign.execute([Started("a")])
    replies = campaign.execute([Started("b"), Released("a", "abandoned"), Started("c")])
    assert codes(replies) == ["new"] * 3
    assert [type(event) for _, event in campaign.events()] == [Started, Started, Released, Started]


def test_a_heartbeat_renews_the_lease() -> None:
    clock = Clock()
    campaign = create(MemoryStorage(clock), episodes=1, lease=10)
    alive = campaign.start_episode()
    for _ in range(3):
        clock.time += 9
        alive.heartbeat()
    with pytest.raises(BudgetReservedError) as caught:
        campaign.start_episode()
    assert caught.value.retry_after == pytest.approx(10)
    clock.time += 11
    other = campaign.start_episode()
    with pytest.raises(CampaignError, match="lease"):
        alive.heartbeat()  # its place is gone
    campaign.release(other.id)
    alive.heartbeat()  # and free again
    assert [lease.episode for lease in campaign.status().leases] == [alive.id]


def test_a_released_place_goes_to_another_at_once() -> None:
    campaign = create(episodes=1)
    stuck = campaign.start_episode()
    assert not campaign.release(stuck.id).over
    play(campaign)
    assert campaign.status().episodes == 1


@pytest.mark.parametrize(
    ("unit", "amount", "told"),
    [("episodes", 2, {}), ("steps", 2, {}), ("budget", 2.0, {"cost": 1.0})],
)
def test_a_spent_budget_is_extended(unit: str, amount: Any, told: dict[str, Any]) -> None:
    campaign = create(**{unit: amount}, horizon=1)
    for _ in range(2):
        play(campaign, **told)
    with pytest.raises(BudgetSpentError):
        campaign.start_episode()
    campaign.extend(**{unit: amount}, extension_id="first")
    campaign.extend(**{unit: amount}, extension_id="first")  # the answer was lost
    assert campaign.status().budget == 2 * amount
    assert campaign.status().condition == "waiting"
    play(campaign, **told)
    assert Campaign.open(campaign.storage, "c").status().left == amount / 2
    other: dict[str, Any] = {"episodes": 5} if unit == "steps" else {"steps": 5}
    with pytest.raises(InputError, match="budget"):
        campaign.extend(**other)
    assert campaign.add([Extended("bad", -1)])[0].code == "invalid"


def test_an_extension_that_cannot_be_named_so() -> None:
    with pytest.raises(InputError, match="the id of an extension is 'a/b'"):
        create().extend(episodes=1, extension_id="a/b")


def test_extensions_are_merged_once() -> None:
    campaign, copy = create(), create()
    campaign.extend(episodes=10)
    for _ in range(2):
        merge(copy, campaign)
    assert copy.status().budget == 5 + 5 + 10


def test_closed_archived_and_reopened() -> None:
    storage = MemoryStorage()
    campaign = create(storage)
    late = campaign.start_episode()
    late.act("s")
    campaign.archive()
    assert (campaign.status().condition, campaign.status().closed) == ("archived", True)
    with pytest.raises(BudgetSpentError):
        campaign.start_episode()
    late.reward(1.0, None)  # what was done counts
    assert Campaign.open(storage, "c").status().archived
    campaign.reopen()
    campaign.reopen()
    assert campaign.status().condition == "waiting"
    play(campaign)
    assert campaign.status().episodes == 2


def test_only_what_is_archived_can_be_deleted() -> None:
    storage = MemoryStorage()
    campaign = create(storage)
    with pytest.raises(CampaignError, match="archive it first"):
        Campaign.delete(storage, "c")
    campaign.archive()
    Campaign.delete(storage, "c")
    assert storage.entries() == []
    with pytest.raises(StorageError):
        campaign.start_episode()
    assert create(storage).status().episodes == 0


def test_it_ends_when_the_interval_is_narrow() -> None:
    """At a look, by an interval that allows for all of them, as `revar.evaluate` has it."""
    draw = random.Random(3)
    campaign = create(episodes=1000, horizon=1, half_width=0.15)
    with pytest.raises(BudgetSpentError, match="as narrow as asked"):
        while True:
            play(campaign, draw.gauss(0.0, 1.0))
    status = campaign.status()
    z = quantile(0.95, checkpoint_times(1000))
    assert status.episodes in checkpoint_times(1000)[1:-1]
    assert status.precision is not None
    assert status.precision.reached
    assert status.estimate is not None
    assert status.precision.half_width == pytest.approx(z * status.estimate.standard_error)
    assert z * status.estimate.standard_error <= 0.15
    low, high = campaign.estimate().interval
    assert (high - low) / 2 == pytest.approx(status.precision.half_width)
    assert status.condition == "complete"
    assert Campaign.open(campaign.storage, "c").status().precision == status.precision
    campaign.reopen()
    play(campaign)
    assert campaign.status().condition == "waiting"


def test_a_half_width_that_is_not_reached_spends_the_budget() -> None:
    draw = random.Random(3)
    campaign = create(episodes=120, horizon=1, half_width=0.01)
    for episode in campaign.episodes():
        episode.act("s")
        episode.reward(draw.gauss(0.0, 1.0), None)
    assert campaign.status().episodes == 120
    campaign.extend(episodes=60)
    assert campaign.status().precision is not None
    looks = campaign.read(lambda state, _: state.precision.past)
    assert looks == [100.0, 120.0]


@pytest.mark.parametrize("confidence", [0.9999999999999999, 1.0, 0.0, float("nan"), "high"])
def test_a_confidence_that_no_interval_has(confidence: Any) -> None:
    """It is refused in one sentence, before the first step and after it."""
    one = create()
    several = create(policy=None, policies={"a": POLICY, "b": POLICY})
    for _ in range(2):
        for ask in (one.estimate, several.ranking):
            with pytest.raises(InputError, match=r"confidence is .*; it must"):
                ask(confidence)
        play(one)
        play(several)
    with pytest.raises(InputError, match=r"confidence is .*; it must"):
        create(half_width=0.1, confidence=confidence)


def test_what_a_half_width_must_be() -> None:
    with pytest.raises(InputError, match="half_width"):
        create(half_width=0.0)
    with pytest.raises(InputError, match="one policy's value"):
        create(policy=None, policies={"a": POLICY, "b": POLICY}, half_width=0.1)
