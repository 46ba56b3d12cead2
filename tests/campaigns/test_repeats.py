"""Calls that are made again, out of order, or in contradiction to what is known."""

from typing import Any

import pytest

from revar.campaigns import Campaign, CampaignError, MemoryStorage
from revar.campaigns.commands import Act, propose, tell_reward
from revar.campaigns.defining import define
from revar.campaigns.events import Finished, Rewarded, Started
from revar.campaigns.leases import LeaseClock
from revar.errors import InputError

QUESTION: dict[str, Any] = {
    "policy": {"a": [0.5, 0.5], "b": [0.5, 0.5]},
    "horizon": 3,
    "episodes": 5,
    "seed": 1,
    "strategy": "on-policy",
}
ASKED = define(**QUESTION)


@pytest.fixture
def campaign() -> Campaign:
    return Campaign.create(MemoryStorage(), "repeats", **QUESTION)


def log_length(campaign: Campaign) -> int:
    return len(list(campaign.events()))


def test_start_with_the_same_id_is_the_same_episode(campaign: Campaign) -> None:
    first, again = campaign.start_episode("mine"), campaign.start_episode("mine")
    assert (first.id, first.number) == (again.id, again.number) == ("mine", 0)
    assert campaign.status().open == 1


def test_act_again_gives_the_same_action_and_draws_nothing(campaign: Campaign) -> None:
    episode = campaign.start_episode()
    action = episode.act("a")
    assert [episode.act("a") for _ in range(20)] == [action] * 20
    assert log_length(campaign) == 2


def test_reward_again_counts_once(campaign: Campaign) -> None:
    episode = campaign.start_episode()
    episode.act("a")
    command = tell_reward(ASKED, episode.id, 0, 2.0, "b")
    replies = [campaign.execute_one(command) for _ in range(5)]
    assert [reply.repeated for reply in replies] == [False] + [True] * 4
    assert campaign.status().steps == 1
    # The first one counts, also where a later one says something else.
    assert campaign.execute_one(tell_reward(ASKED, episode.id, 0, 9.0, None)).repeated
    episode = campaign.episode(episode.id)
    episode.act("b")
    assert campaign.read(lambda state, _: state.collection.statistics.visits.sum()) == 1


def test_results_again_after_the_end_count_once(campaign: Campaign) -> None:
    episode = campaign.start_episode()
    episode.act("a")
    episode.reward(1.0, None)
    for _ in range(3):
        assert campaign.execute_one(Finished(episode.id)).repeated
        assert campaign.execute_one(tell_reward(ASKED, episode.id, 0, 1.0, None)).repeated
    assert (campaign.status().episodes, campaign.status().steps) == (1, 1)


def test_repeats_in_one_batch_take_effect_once(campaign: Campaign) -> None:
    replies = campaign.execute([Started("x"), Started("x"), Started("y")])
    assert [getattr(reply, "repeated", None) for reply in replies] == [False, True, False]
    replies = campaign.execute([Act("x", 0, b'"a"'), Act("x", 0, b'"a"')])
    first, second = replies
    assert getattr(first, "action", None) == getattr(second, "action", 0)
    campaign.execute(
        [tell_reward(ASKED, "x", 0, 1.0, "b"), tell_reward(ASKED, "x", 0, 1.0, "b"), Finished("x")]
    )
    assert (campaign.status().steps, campaign.status().episodes) == (1, 1)


def test_an_act_repeated_beside_the_end_of_its_episode(campaign: Campaign) -> None:
    """Both in one commit: the act is answered by what was known when it was asked."""
    episode = campaign.start_episode("x")
    action = episode.act("a")
    again, ended, start = campaign.execute(
        [Act("x", 0, b'"a"'), tell_reward(ASKED, "x", 0, 1.0, None), Started("y")]
    )
    assert getattr(again, "action", None) == action
    assert getattr(ended, "over", None) is True
    assert getattr(start, "repeated", None) is False


def test_the_reward_of_the_last_action_is_taken_after_finish(campaign: Campaign) -> None:
    episode = campaign.start_episode()
    episode.act("a")
    episode.finish()
    assert campaign.status().free == 5  # nothing is known of it yet
    episode.reward(3.0, None)
    assert (campaign.status().episodes, campaign.status().steps) == (1, 1)


@pytest.mark.parametrize(
    ("commands", "code"),
    [
        ([tell_reward(ASKED, "e", 0, 1.0, None)], "out-of-order"),
        ([Act("e", 1, b'"a"')], "out-of-order"),
        ([Act("e", 0, b'"a"'), Act("e", 1, b'"a"')], "out-of-order"),
        ([Act("e", 0, b'"a"'), Act("e", 0, b'"b"')], "conflict"),
        (
            [Act("e", 0, b'"a"'), tell_reward(ASKED, "e", 0, 1.0, "b"), Act("e", 1, b'"a"')],
            "conflict",
        ),
        (
            [Act("e", 0, b'"a"'), tell_reward(ASKED, "e", 0, 1.0, None), Act("e", 1, b'"a"')],
            "episode-over",
        ),
        ([Act("e", 0, b'"elsewhere"')], "unknown-state"),
        ([Act("other", 0, b'"a"')], "unknown-episode"),
        ([Finished("other")], "unknown-episode"),
        ([Act("e", -1, b'"a"')], "out-of-order"),
        ([tell_reward(ASKED, "e", -1, 1.0, None)], "out-of-order"),
    ],
)
def test_refusals(campaign: Campaign, commands: list[Act | Rewarded | Finished], code: str) -> None:
    campaign.start_episode("e")
    for command in commands[:-1]:
        campaign.execute_one(command)
    before = log_length(campaign)
    with pytest.raises(CampaignError) as caught:
        campaign.execute_one(commands[-1])
    assert caught.value.code == code
    assert "\n" not in str(caught.value)
    assert log_length(campaign) == before  # what is refused at once is not stored


def test_a_policy_that_changes_is_refused() -> None:
    campaign = Campaign.create(MemoryStorage(), "sent", actions=2, horizon=2, episodes=5, seed=1)
    episode = campaign.start_episode()
    episode.act({"page": 1}, [0.25, 0.75])
    episode.reward(1.0, {"page": 1})
    with pytest.raises(CampaignError, match="must not change") as caught:
        episode.act({"page": 1}, [0.5, 0.5])
    assert caught.value.code == "conflict"
    episode.act({"page": 1.0}, [0.25, 0.75])


@pytest.mark.parametrize(
    "probabilities", [[0.5, 0.4], [0.5, 0.5, 0.0], [1.5, -0.5], [0.5, float("nan")]]
)
def test_wrong_probabilities_are_refused(probabilities: list[float]) -> None:
    campaign = Campaign.create(MemoryStorage(), "sent", actions=2, horizon=2, episodes=5, seed=1)
    with pytest.raises(InputError, match="the target policy in this state"):
        campaign.start_episode().act("s", probabilities)


def test_two_processes_that_tell_different_policies(campaign: Campaign) -> None:
    """The log decides: the first row counts, and the process that lost the race goes on."""
    storage = MemoryStorage()
    one = Campaign.create(storage, "sent", actions=2, horizon=2, episodes=5, seed=1)
    other = Campaign.open(storage, "sent")
    mine, yours = one.start_episode(), other.start_episode()
    command = Act(yours.id, 0, b'"s"', [0.1, 0.9])
    events, _ = other.read(lambda state, _: propose(state, command, LeaseClock(storage), set()))
    assert len(events) == 1  # not yet appended
    mine.act("s", [0.5, 0.5])
    assert yours.act("s", [0.5, 0.5]) in (0, 1)
    assert other.read(lambda state, _: state.collection.states.policies.tolist()) == [[[0.5, 0.5]]]


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), 1e300])
def test_impossible_rewards_are_refused(campaign: Campaign, reward: float) -> None:
    episode = campaign.start_episode()
    episode.act("a")
    with pytest.raises(InputError, match="the reward is"):
        episode.reward(reward, None)
