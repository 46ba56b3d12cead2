"""Campaigns that compare several target policies: as those of one, and who leads."""

from pathlib import Path
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np
import pytest

import revar
from revar.campaigns import Campaign, CampaignEpisode, CampaignError, MemoryStorage, snapshots
from revar.campaigns.commands import Act, propose
from revar.campaigns.events import Acted, Sent, decode_event, encode_event
from revar.campaigns.leases import LeaseClock
from revar.campaigns.merging import merge
from revar.campaigns.snapshots import restore, snapshot_of
from revar.campaigns.status_messages import StatusMessage
from revar.collection import Collection
from revar.errors import InputError
from revar.model.question import combinations_of
from tests.campaigns.worlds import World, policy_of

EPISODES = 30
WORLD = World.named("gridworld")
# The policies of docs/theory, and in between: actions to the left, right, down and up.
POLICIES = {
    "careful": policy_of([0.05, 0.45, 0.45, 0.05]),
    "bold": policy_of([0.15, 0.35, 0.35, 0.15]),
    "uniform": policy_of([0.25, 0.25, 0.25, 0.25]),
}
NAMES = tuple(POLICIES)
SENT: dict[str, Any] = {"policies": NAMES, "actions": 4}  # acts bring the rows
SHOP = {"old": [0.5, 0.5], "new": [0.2, 0.8]}


def campaign_of(storage: MemoryStorage | None = None, **changes: Any) -> Campaign:
    question: dict[str, Any] = {"policies": POLICIES, "horizon": WORLD.horizon, "seed": 5}
    return Campaign.create(
        storage or MemoryStorage(), "grid", **{**question, "episodes": EPISODES, **changes}
    )


def shop(**changes: Any) -> Campaign:
    question: dict[str, Any] = {"policies": ["old", "new"], "actions": 2, "horizon": 2, "seed": 1}
    return Campaign.create(MemoryStorage(), "shop", **{**question, "episodes": 50, **changes})


def play(campaign: Campaign, *, sends: bool = False) -> list[list[int]]:
    """Play what is left of the budget; the actions of each episode."""
    return [play_one(episode, sends=sends) for episode in campaign.episodes()]


def play_one(episode: CampaignEpisode, *, sends: bool) -> list[int]:
    state: int | None = WORLD.first(episode.number)
    actions = []
    while not episode.over:
        assert state is not None
        rows = {name: table[state].tolist() for name, table in POLICIES.items()}
        action = episode.act(state, rows if sends else None)
        reward, state = WORLD.outcome(episode.number, episode.steps, state, action)
        episode.reward(reward, state)
        actions.append(action)
    return actions


def collection_of(strategy: str, question: str) -> tuple[list[list[int]], Collection]:
    """The same episodes without a campaign."""
    collection = Collection(
        strategy,
        horizon=WORLD.horizon,
        actions=4,
        budget=EPISODES,
        seed=5,
        names=NAMES,
        combinations=combinations_of(question, len(NAMES)),
    )
    decisions = []
    for number in range(EPISODES):
        episode = collection.start(number)
        state: int | None = WORLD.first(number)
        while not episode.over:
            assert state is not None
            rows = [table[state] for table in POLICIES.values()]
            action, _ = episode.act(state, rows)
            reward, state = WORLD.outcome(number, episode.steps, state, action)
            episode.observe(reward, state)
        episode.finish()
        decisions.append(episode.actions)
    return decisions, collection


@pytest.mark.parametrize("question", ["best", "values"])
@pytest.mark.parametrize("strategy", ["flow", "on-policy", "uniform", "revar"])
def test_it_decides_like_a_collection(strategy: str, question: str) -> None:
    """With tables, and with rows that acts bring."""
    expected, collection = collection_of(strategy, question)
    joint = collection.joint_estimate()
    changes: dict[str, Any]
    for changes in ({}, SENT):
        campaign = campaign_of(strategy=strategy, question=question, **changes)
        assert play(campaign, sends=bool(changes)) == expected
        found = campaign.ranking().joint
        assert np.array_equal(found.values, joint.values)
        assert np.array_equal(found.covariance, joint.covariance)


@pytest.mark.parametrize("sends", [False, True], ids=["tables", "sent"])
@pytest.mark.parametrize("with_snapshots", [True, False], ids=["snapshots", "whole log"])
def test_every_episode_in_a_process_of_its_own(
    sends: bool, with_snapshots: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if with_snapshots:  # one after every event
        monkeypatch.setattr(snapshots, "LEAST_EVENTS", 1)
        monkeypatch.setattr(snapshots, "SHARE", 0.0)
    storage = MemoryStorage()
    campaign_of(storage, **(SENT if sends else {}))
    few = 8  # episodes: opening takes as long as the log is
    decisions = [
        play_one(Campaign.open(storage, "grid").start_episode(), sends=sends) for _ in range(few)
    ]
    assert decisions == collection_of("flow", "best")[0][:few]


@pytest.mark.parametrize("sends", [False, True], ids=["tables", "sent"])
def test_a_snapshot_restores_every_bit(sends: bool) -> None:
    campaign = campaign_of(**(SENT if sends else {}))
    opened = [campaign.start_episode() for _ in range(4)]
    for episode in opened[:3]:
        play_one(episode, sends=sends)
    state = campaign.read(lambda state, _: state)
    saved = snapshot_of(state)
    again = restore(campaign.definition, saved)
    assert snapshot_of(again).body == saved.body
    assert again.policy == state.policy
    assert again.history.points == state.history.points
    assert again.history.points[-1].values is not None


# -- what an act brings ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (None, "act needs the probabilities"),
        ([0.5, 0.5], "must come by name, for each of the target policies 'old', 'new'"),
        (0.5, "must come by name"),
        ({}, "probabilities are for no policy; the target policies are 'old', 'new'"),
        ({"old": [0.5, 0.5]}, "probabilities are for 'old'; the target policies are 'old', 'new'"),
        ({**SHOP, "newer": [1, 0]}, "are for 'old', 'new', 'newer'; the target policies"),
        ({**SHOP, "new": [0.2, 0.7]}, "target policy 'new' in this state gives probabilities"),
        ({**SHOP, "new": [0.2, 0.8, 0]}, "'new' in this state has 3 probabilities; there are 2"),
        ({**SHOP, "new": 1.0}, "target policy 'new' in this state is 1.0; it must be a list"),
        ({**SHOP, "new": "ab"}, "target policy 'new' in this state is 'ab'; it must be a list"),
    ],
)
def test_probabilities_that_are_refused(sent: Any, message: str) -> None:
    campaign = shop()
    episode = campaign.start_episode()
    with pytest.raises(InputError, match=message) as caught:
        episode.act("cart", sent)
    assert "\n" not in str(caught.value)
    assert len(list(campaign.events())) == 1  # nothing of it is stored
    assert episode.act("cart", SHOP) in (0, 1)


def test_one_policy_takes_no_names() -> None:
    campaign = Campaign.create(MemoryStorage(), "one", actions=2, horizon=2, episodes=5)
    with pytest.raises(InputError, match="this campaign has one target policy"):
        campaign.start_episode().act("cart", {"old": [0.5, 0.5]})


def test_the_order_of_names_does_not_matter_and_repeats_give_the_same_action() -> None:
    campaign = shop()
    episode = campaign.start_episode()
    action = episode.act("cart", SHOP)
    assert episode.act("cart", dict(reversed(SHOP.items()))) == action
    assert len(list(campaign.events())) == 2
    (told,) = campaign.read(lambda state, _: list(state.policy.values()))
    assert told == ((0.5, 0.5), (0.2, 0.8))


def test_a_policy_that_changes_is_named() -> None:
    campaign = shop()
    campaign.start_episode().act("cart", SHOP)
    with pytest.raises(CampaignError, match=r"target policy 'new' had probabilities \[0.2, 0.8\]"):
        campaign.start_episode().act("cart", {**SHOP, "new": [0.3, 0.7]})
    assert campaign.start_episode().act("cart", {**SHOP, "new": [0.2 + 1e-12, 0.8]}) in (0, 1)


@pytest.mark.parametrize(
    "sent", [None, [0.5, 0.5], {"old": [0.5, 0.5]}, {"old": [1.0], "new": [1.0]}, {}]
)
@pytest.mark.parametrize("several", [True, False])
def test_events_that_do_not_fit_have_no_effect(sent: Sent | None, several: bool) -> None:
    """Whoever wrote them: the rules judge the log, not those who append to it."""
    campaign = shop() if several else shop(policies=None)
    fits = not several and isinstance(sent, list)
    episode = campaign.start_episode()
    event = Acted(episode.id, 0, msgspec.Raw(b'"cart"'), 0, probabilities=sent)
    assert decode_event(encode_event(event)) == event
    (verdict,) = campaign.add([event])
    assert verdict.effect.value == ("taken" if fits else "refused")
    assert (verdict.code, "\n" in verdict.reason) == ("" if fits else "invalid", False)
    assert campaign.read(lambda state, _: len(state.policy)) == int(fits)


def test_events_carry_names_where_there_are_several() -> None:
    campaign = shop()
    episode = campaign.start_episode()
    command = Act(episode.id, 0, b'"cart"', SHOP)
    (event,), _ = campaign.read(
        lambda state, _: propose(state, command, LeaseClock(campaign.storage), set())
    )
    assert msgspec.json.decode(encode_event(event))["probabilities"] == SHOP


def test_a_table_that_lacks_a_state() -> None:
    campaign = campaign_of()
    with pytest.raises(CampaignError, match="the target policy has no state 99"):
        campaign.start_episode().act(99)
    with pytest.raises(InputError, match="act takes no probabilities"):
        campaign.start_episode().act(0, {name: [0.25] * 4 for name in NAMES})


# -- who leads ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played() -> Campaign:
    campaign = campaign_of(episodes=120)
    play(campaign)
    return campaign


def test_the_status_is_a_ranking(played: Campaign) -> None:
    joint = played.read(lambda state, _: state.collection.joint_estimate())
    status = played.status()
    assert status.estimate is None
    ranking = status.ranking
    assert ranking is not None
    leader = int(joint.values.argmax())
    assert ranking.leader == leader
    assert ranking.names == NAMES
    assert ranking.quantile == NormalDist().inv_cdf(0.975)
    assert ranking.quantile_of_differences == NormalDist().inv_cdf(1 - 0.05 / 4)
    for number, name in enumerate(NAMES):
        assert ranking.values[name] == joint.value_of(number, ranking.quantile)
        if number != leader:
            row = np.eye(3)[leader] - np.eye(3)[number]
            error = float(np.sqrt(row @ joint.covariance @ row))
            difference = ranking.differences[name]
            assert difference.standard_error == pytest.approx(error)
            low, high = difference.interval
            expected = ranking.quantile_of_differences * error
            assert (high - low) / 2 == pytest.approx(expected)
    assert sum(ranking.chances_of_best.values()) == pytest.approx(1.0)


def test_two_policies_have_one_difference() -> None:
    campaign = shop(question="difference")
    episode = campaign.start_episode()
    episode.act("cart", SHOP)
    episode.reward(1.0, None)
    ranking = campaign.ranking(confidence=0.9)
    assert ranking.quantile_of_differences == NormalDist().inv_cdf(0.95)
    assert ranking.joint.confidence == 0.9
    assert not ranking.verdict().decided  # one visit says nothing about errors


def test_what_is_asked_of_one_and_of_several() -> None:
    several, one = shop(), shop(policies=None)
    with pytest.raises(CampaignError, match="there are several target policies: rank them"):
        several.estimate()
    with pytest.raises(CampaignError, match="there is one target policy: estimate its value"):
        one.ranking()
    assert one.status().ranking is None
    assert several.status().ranking is None  # no step is complete


def test_the_status_in_words(played: Campaign) -> None:
    lines = str(played.status()).splitlines()
    ranking = played.ranking()
    headings = "policy value 95% interval best minus it 95% interval chance of best"
    assert " ".join(lines[2].split()) == headings
    values = {name: estimate.value for name, estimate in ranking.values.items()}
    assert [line.split()[0] for line in lines[3:6]] == sorted(NAMES, key=lambda n: -values[n])
    assert "leads" in lines[3]
    assert lines[6] == str(ranking.verdict())
    assert len({len(line) for line in lines[2:6]}) == 1  # columns are straight
    assert "no estimate yet" in str(shop().status())


def test_the_message_holds_what_the_ranking_says(played: Campaign) -> None:
    message = StatusMessage.of(played.status())
    found = msgspec.json.decode(msgspec.json.encode(message))
    assert (found["policies"], found["question"]) == (list(NAMES), "best")
    assert found["estimate"] is None
    ranking = played.ranking()
    leader, *others = found["ranking"]["policies"]
    assert leader["name"] == found["ranking"]["leader"] == NAMES[ranking.leader]
    assert leader["difference"] is None
    for policy in others:
        difference = ranking.differences[policy["name"]]
        assert policy["difference"]["value"] == difference.value
        assert [policy["difference"][end] for end in ("low", "high")] == list(difference.interval)
        assert policy["chance_of_best"] == ranking.chances_of_best[policy["name"]]
    one = msgspec.json.decode(msgspec.json.encode(StatusMessage.of(shop(policies=None).status())))
    assert (one["policies"], one["question"], one["ranking"]) == (None, None, None)


def test_the_history_holds_the_covariance_of_all_values(played: Campaign) -> None:
    point = played.read(lambda state, _: state.history.points[-1])
    again = campaign_of(episodes=120)
    for episode in again.episodes():
        play_one(episode, sends=False)
        if again.status().episodes == point.episodes:
            break
    joint = again.ranking().joint
    assert point.values == joint.values.tolist()
    assert point.covariance == [row[: j + 1] for j, row in enumerate(joint.covariance.tolist())]
    assert point.value == joint.values.max()


# -- merging and export ---------------------------------------------------------------------


def test_sites_are_merged() -> None:
    """Acts carry the names, so that the order in which two sites name the policies is free."""
    one = campaign_of(**SENT, episodes=4)
    other = campaign_of(policies=NAMES[::-1], actions=4, episodes=6, seed=6)
    play(one, sends=True)
    play(other, sends=True)
    assert merge(one, other).episodes == 6
    assert (one.status().episodes, one.status().budget) == (10, 10)
    assert merge(one, other).events == 0
    tables = one.read(lambda state, _: state.policy)
    expected = tuple(map(tuple, (table[0].tolist() for table in POLICIES.values())))
    assert set(tables.values()) == {expected}
    copy = Campaign.copy_of(one, MemoryStorage(), "copy")
    merge(copy, one)
    assert copy.ranking().joint.values.tolist() == one.ranking().joint.values.tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"policies": {**POLICIES, "bold": POLICIES["uniform"]}},
        {"policies": {name: POLICIES[name] for name in NAMES[:2]}},
        {"policies": {**{f"{name}!": table for name, table in POLICIES.items()}}},
        SENT,
        {"policies": None, "policy": POLICIES["bold"]},
    ],
)
def test_other_questions_are_not_merged(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="do not ask the same question"):
        merge(campaign_of(), campaign_of(**changes))


def test_export_has_every_step(played: Campaign, tmp_path: Path) -> None:
    data = played.dataset()
    assert len(data) == 120
    assert data.action_count == 4
    revar.save_dataset(data, tmp_path / "grid.npz")
    assert revar.load_dataset(tmp_path / "grid.npz").actions.tolist() == data.actions.tolist()


def test_on_policy_episodes_carry_the_probability_of_their_policy() -> None:
    campaign = campaign_of(strategy="on-policy", episodes=6)
    play(campaign)
    for number, trajectory in enumerate(campaign.dataset()):
        row = POLICIES[NAMES[number % 3]][0]
        assert trajectory.propensities.tolist() == row[trajectory.actions].tolist()
