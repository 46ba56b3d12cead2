"""The quick way through a log, and the rules that it stands for, to the last bit."""

import random
from typing import Any

import numpy as np
import pytest

from revar.campaigns import Campaign, CampaignError, MemoryStorage, definition
from revar.campaigns import folding as folding_module
from revar.campaigns.commands import Act, Command, tell_reward
from revar.campaigns.events import (
    Archived,
    Extended,
    Finished,
    Released,
    Renewed,
    Started,
    Unreadable,
)
from revar.campaigns.export import export_text
from revar.campaigns.folding import fold
from revar.campaigns.requests import ActRequest, RewardReport
from revar.campaigns.rules import replay
from revar.campaigns.snapshots import snapshot_of
from revar.campaigns.state import CampaignState
from revar.campaigns.storage.interface import Snapshot
from revar.errors import InputError
from tests.campaigns.worlds import Clock

POLICY = {"a": [0.5, 0.5], "b": [0.3, 0.7]}
QUESTIONS: dict[str, dict[str, Any]] = {
    "table": {"policy": POLICY, "episodes": 60},
    "sent": {"actions": 2, "episodes": 60},
    "drawn": {"policy": POLICY, "steps": 150, "strategy": "on-policy"},
    "paid": {"policy": POLICY, "budget": 80.0, "strategy": "revar"},
    "half-width": {"policy": POLICY, "episodes": 110, "half_width": 0.9},
    "several": {"policies": {"x": POLICY, "y": POLICY}, "episodes": 40, "strategy": "uniform"},
}


def commands(campaign: Campaign, draw: random.Random, turn: int) -> list[Command]:
    """What workers may ask, most of it fitting, some of it late, repeated or wrong."""
    given = campaign.definition
    rows = None if given.has_table else [0.5, 0.5]
    asked: list[Command] = [Started(f"e{turn}")]
    records = campaign.read(lambda state, _: list(state.records.values())[-6:])
    for record in records:
        step = record.steps + (draw.random() < 0.05)
        following = draw.choice(["a", "b", "b", None])
        cost = 0.5 if given.budget is not None else None
        asked += [
            Act(record.id, step, draw.choice([b'"a"', b'"b"']), rows),
            Act(record.id, step, b'"a"', rows),
        ]
        if draw.random() < 0.8:
            asked.append(tell_reward(given, record.id, step, draw.gauss(0, 1), following, cost))
        if draw.random() < 0.06:
            asked.append(Finished(record.id) if draw.random() < 0.5 else Renewed(record.id))
            asked.append(Released(record.id, "abandoned"))
    if turn == 30:
        asked += [Extended("more", 7)] if given.budget is None else [Archived()]
    return asked


def log_of(question: dict[str, Any]) -> Campaign:
    draw, clock = random.Random(5), Clock()
    storage = MemoryStorage(clock)
    campaign = Campaign.create(storage, "c", horizon=3, seed=2, lease=40, **question)
    for turn in range(60):
        for command in commands(campaign, draw, turn):
            clock.time += draw.choice([0.0, 0.1, 0.6, -0.2])
            campaign.execute([command])
        seen = [event for _, event in campaign.events() if not isinstance(event, Unreadable)]
        campaign.add(draw.choices(seen[-20:], k=3))  # as processes do that lose a race
        if turn % 20 == 7:
            storage.append(campaign.id, [b'{"type":"rewarded","episode":', b"\xff\xfe"])
    return campaign


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_ways_through_a_log_agree_to_the_last_bit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = log_of(QUESTIONS[name])
    quick, plain = CampaignState(campaign.definition), CampaignState(campaign.definition)
    page = campaign.storage.read(campaign.id, 0, 10**6)
    fold(quick, page)
    for stored, (_, event) in zip(page, campaign.events(), strict=True):
        replay(plain, stored.position, stored.time, event)
    assert snapshot_of(quick) == snapshot_of(plain)
    assert campaign.read(lambda state, _: snapshot_of(state)) == snapshot_of(plain)
    assert plain.unreadable == 6
    whole = list(export_text(campaign.definition, campaign.events(), "csv"))
    monkeypatch.setattr(folding_module, "_USUAL", {})
    assert list(export_text(campaign.definition, campaign.events(), "csv")) == whole


def test_rebuilding_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = log_of(QUESTIONS["drawn"])
    length = campaign.storage.length(campaign.id)
    monkeypatch.setattr("revar.campaigns.log.PAGE", 100)
    told: list[tuple[int, int]] = []
    Campaign.open(campaign.storage, "c", progress=lambda *given: told.append(given))
    assert told == [(position, length) for position in range(100, length + 1, 100)]


def test_an_event_that_cannot_be_read_has_no_effect_on_others() -> None:
    storage = MemoryStorage()
    for name in ("one", "two"):
        campaign = Campaign.create(storage, name, policy=POLICY, horizon=1, episodes=5, seed=1)
        campaign.start_episode("e").act("a")
    storage.append(storage.entries()[0].id, [b"\x00 damaged"])
    found = [Campaign(storage, entry).status() for entry in storage.entries()]
    assert [(each.unreadable, each.open) for each in found] == [(1, 1), (0, 1)]
    assert "1 event of the log cannot be read" in str(found[0])
    damaged = Campaign.open(storage, "one")
    damaged.episode("e").reward(1.0, None)
    assert damaged.status().episodes == 1
    assert Campaign.open(storage, "one").status().unreadable == 1


def test_a_definition_that_cannot_be_read_is_told() -> None:
    storage = MemoryStorage()
    storage.create("id", "bad", b"{")
    with pytest.raises(CampaignError, match="the definition of campaign 'bad' cannot be read"):
        Campaign.open(storage, "bad")


def test_the_export_begins_before_the_log_is_read() -> None:
    """An episode is given out when nothing more can come of it; only open ones are kept."""
    campaign = Campaign.create(
        MemoryStorage(), "c", policy=POLICY, horizon=1, episodes=50, strategy="on-policy", seed=1
    )
    left = campaign.start_episode()
    left.act("a")
    left.reward(0.5, "b")
    for _ in range(20):
        episode = campaign.start_episode()
        episode.act("a")
        episode.reward(1.0, None)
    seen = 0

    def counted() -> Any:
        nonlocal seen
        for each in campaign.events():
            seen += 1
            yield each

    lines = export_text(campaign.definition, counted(), "jsonl")
    next(lines)
    assert seen == 3
    assert len(list(lines)) == 20


def test_a_campaign_that_is_full_goes_on_in_states_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rewards that name new states fill it up; acts that add nothing are not refused."""
    monkeypatch.setattr(definition, "MOST_CELLS", 2 * 5 * 4)  # room for four states
    campaign = Campaign.create(
        MemoryStorage(), "c", actions=2, horizon=5, episodes=9, strategy="on-policy", seed=1
    )
    episode = campaign.start_episode()
    for number in range(3):
        episode.act(number, [0.5, 0.5])
        episode.reward(1.0, number + 1)
    episode.act(3, [0.5, 0.5])
    with pytest.raises(CampaignError, match="next_state 4 is new, and horizon 5, 2 actions and 5"):
        episode.reward(1.0, 4)
    episode.reward(1.0, 0)
    episode.act(0, [0.5, 0.5])
    episode.reward(1.0, None)
    other = campaign.start_episode()
    with pytest.raises(CampaignError, match="the state 9 is new"):
        other.act(9, [0.5, 0.5])
    other.act(2, [0.5, 0.5])
    assert campaign.status().steps == 5


@pytest.mark.parametrize("of_acts", [True, False])
def test_new_states_of_one_commit_must_fit_together(
    of_acts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definition, "MOST_CELLS", 2 * 5 * 4)  # room for four states
    campaign = Campaign.create(
        MemoryStorage(), "c", actions=2, horizon=5, episodes=9, strategy="on-policy", seed=1
    )
    row, names = [0.5, 0.5], [0, 1, 2, 2, 3, 4, 5]
    ids = [episode.id for episode in campaign.start_episodes(len(names))]
    found: list[Any]
    if of_acts:
        asked = zip(ids, [0] * 7, names, strict=True)
        found = [*campaign.act_many(ActRequest(*each, row) for each in asked)]
    else:
        campaign.act_many(ActRequest(each, 0, 0, row) for each in ids)
        told = zip(ids, [0] * 7, [1.0] * 7, names, strict=True)
        found = [*campaign.reward_many(RewardReport(*each) for each in told)]
    assert [isinstance(each, CampaignError) for each in found] == [False] * 5 + [True] * 2
    assert "5 is new, and horizon 5, 2 actions and 5 states" in str(found[-1])
    assert campaign.read(lambda state, _: len(state.collection.states)) == 4


def test_an_act_repeated_after_the_end_gives_the_same_action() -> None:
    campaign = Campaign.create(
        MemoryStorage(), "c", policy=POLICY, horizon=2, episodes=9, strategy="on-policy", seed=1
    )
    episode = campaign.start_episode()
    taken = []
    for state, following in (("a", "b"), ("b", None)):
        taken.append((episode.act(state), episode.propensity))
        episode.reward(1.0, following)
    saved = campaign.read(lambda state, _: snapshot_of(state))
    campaign.storage.save_snapshot(campaign.id, Snapshot(saved.position, saved.body))
    for reader in (campaign, Campaign.open(campaign.storage, "c")):
        again = [
            reader.execute_one(Act(episode.id, step, f'"{state}"'.encode()))
            for step, state in enumerate("ab")
        ]
        assert [(each.action, each.propensity) for each in again] == taken
        assert all(each.repeated for each in again)
        with pytest.raises(CampaignError, match="was taken in state"):
            reader.execute_one(Act(episode.id, 0, b'"b"'))
        with pytest.raises(CampaignError, match="is over"):
            reader.execute_one(Act(episode.id, 2, b'"b"'))


def test_texts_of_numpy_are_states() -> None:
    campaign = Campaign.create(
        MemoryStorage(), "c", policy=POLICY, horizon=2, episodes=2, strategy="on-policy", seed=1
    )
    episode = campaign.start_episode()
    episode.act(np.array(["a", "b"])[0])
    episode.reward(1.0, np.str_("b"))
    episode.act("b")
    with pytest.raises(InputError):
        episode.act({np.str_("k"): object()})


def test_drawn_seeds_are_whole_numbers_everywhere() -> None:
    storage = MemoryStorage()
    seeds = [
        Campaign.create(storage, f"c{i}", policy=POLICY, horizon=1, episodes=1).definition.seed
        for i in range(40)
    ]
    assert max(seeds) < 2**53
    assert len(set(seeds)) == 40


def leased(clock: Clock, counted: Clock) -> Campaign:
    return Campaign.create(
        MemoryStorage(clock, counted), "c", policy=POLICY, horizon=2, episodes=1, lease=100, seed=1
    )


def test_a_clock_that_was_ahead_blocks_a_place_for_one_lease() -> None:
    clock, counted = Clock(), Clock()
    campaign = leased(clock, counted)
    clock.time += 86_400
    campaign.start_episode().act("a")
    clock.time -= 86_400
    other = Campaign.open(campaign.storage, "c")
    for reader in (campaign, other):
        with pytest.raises(CampaignError) as caught:
            reader.start_episode()
        assert caught.value.retry_after <= 100  # type: ignore[attr-defined]
    assert max(lease.ends for lease in other.status().leases) <= clock.time + 100
    for each in (clock, counted):
        each.time += 101
    assert other.start_episode().number == 1


def test_a_clock_that_jumps_ahead_ends_no_lease() -> None:
    clock, counted = Clock(), Clock()
    campaign = leased(clock, counted)
    alive = campaign.start_episode()
    clock.time += 86_400
    counted.time += 50
    with pytest.raises(CampaignError, match="with other workers"):
        campaign.start_episode()
    for each in (clock, counted):
        each.time += 51
    assert campaign.start_episode().id != alive.id
