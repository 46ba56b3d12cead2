"""What steps cost and add to limited sums: told with rewards, kept, exported and merged."""

import csv
import json
import random
from typing import Any

import msgspec
import numpy as np
import pytest

from revar.campaigns import Campaign
from revar.campaigns.commands import tell_reward
from revar.campaigns.export import export_text
from revar.campaigns.merging import merge
from revar.campaigns.snapshots import restore, snapshot_of
from revar.errors import InputError
from revar.model.budget import Budget
from tests.campaigns.test_other_budgets import create, play


@pytest.mark.parametrize(
    ("asked", "told", "message"),
    [
        ({"budget": 9.0}, {}, "the budget is of cost: a reward needs the cost of its step"),
        ({"budget": 9.0}, {"cost": -1}, "the cost of a step is -1; it must not be negative"),
        ({"budget": 9.0}, {"cost": "much"}, "the cost of a step is 'much', which is no number"),
        ({"budget": 9.0}, {"cost": float("nan")}, "the cost of a step is nan; it must be finite"),
        ({"budget": 9.0}, {"cost": 1e80}, "the cost of a step is 1e.80; its size must be at most"),
        ({"steps": 9}, {"cost": 2.5}, "the budget is in steps: a reward takes no cost"),
        ({"steps": 9}, {"amounts": {"unsafe": 0}}, "no sum is limited: a reward takes no amounts"),
        (
            {"steps": 9, "limits": {"max_sums": {"unsafe": 0.1, "late": 1}}},
            {"amounts": {"unsafe": 0}},
            "a reward needs the amounts 'unsafe', 'late'; it has 'unsafe'",
        ),
        (
            {"steps": 9, "limits": {"max_sums": {"unsafe": 0.1}}},
            {},
            "a reward needs the amounts 'unsafe'; it has none",
        ),
        (
            {"steps": 9, "limits": {"max_sums": {"unsafe": 0.1}}},
            {"amounts": {"unsafe": None}},
            "the unsafe of a step is None, which is no number",
        ),
        (
            {"steps": 9, "limits": {"max_sums": {"unsafe": 0.1}}},
            {"amounts": 3},
            "a reward needs the amounts 'unsafe'; it has 3",
        ),
    ],
)
def test_rewards_that_are_refused(
    asked: dict[str, Any], told: dict[str, Any], message: str
) -> None:
    """Nothing is stored, and the episode goes on."""
    campaign = create(**asked, strategy="on-policy")
    episode = campaign.start_episode()
    action = episode.act("s")
    with pytest.raises(InputError, match=message) as caught:
        episode.reward(1.0, "s", **told)
    assert "\n" not in str(caught.value)
    assert campaign.status().steps == 0
    assert episode.act("s") == action
    amounts = dict.fromkeys(campaign.definition.limited_sums, 0.0)
    episode.reward(1.0, "s", cost=1.0 if "budget" in asked else None, amounts=amounts or None)
    assert campaign.status().steps == 1


def test_a_reward_in_the_log_without_its_cost_has_no_effect() -> None:
    """Whoever appended it: all readers judge it alike."""
    campaign = create(budget=9.0, strategy="on-policy")
    episode = campaign.start_episode()
    episode.act("s")
    told = tell_reward(campaign.definition, episode.id, 0, 1.0, None, 2.0)
    wrong = [msgspec.structs.replace(told, cost=cost) for cost in (None, -2.0)]
    verdicts = campaign.add([*wrong, told])
    assert [verdict.code for verdict in verdicts] == ["invalid", "invalid", ""]
    assert campaign.status().used == Campaign.open(campaign.storage, "c").status().used == 2.0


def paid_campaign(**changes: Any) -> Campaign:
    limits = {"max_sums": {"unsafe": 1.0, "late": 2.0}, "min_return": 0.0}
    campaign = create(**{"budget": 40.0, "limits": limits, **changes})
    draw = random.Random(1)
    for episode in campaign.episodes():
        while not episode.over:
            unsafe = episode.act("s")
            amounts = {"late": draw.random(), "unsafe": float(unsafe)}
            following = "s" if draw.random() < 0.6 else None
            episode.reward(draw.gauss(1.0, 1.0), following, cost=0.1 + unsafe, amounts=amounts)
        if episode.number == 9:
            break
    left = campaign.start_episode()
    left.act("s")
    left.reward(1.0, "s", cost=0.7, amounts={"unsafe": 0, "late": 0})
    return campaign


def test_a_snapshot_equals_the_fold() -> None:
    campaign = paid_campaign()
    saved = campaign.read(lambda state, _: snapshot_of(state))
    replayed = Campaign.open(campaign.storage, "c")
    restored = restore(campaign.definition, saved)
    assert snapshot_of(restored).body == saved.body
    assert replayed.read(lambda state, _: snapshot_of(state)).body == saved.body
    ours, theirs = replayed.read(lambda state, _: state.collection), restored.collection
    assert ours.budget == theirs.budget == Budget(40.0, "cost")
    assert (ours.spent, ours.steps, ours.finished) == (theirs.spent, theirs.steps, theirs.finished)
    for name in ("return", "steps", "cost", "unsafe", "late"):
        assert ours.totals.mean(name) == theirs.totals.mean(name)
    for mine, other in ((ours.amounts.means(1), theirs.amounts.means(1)),):
        assert np.array_equal(mine, other)


def test_a_snapshot_of_steps_keeps_whole_numbers() -> None:
    campaign = create(steps=10)
    play(campaign.start_episode(), 2)
    saved = campaign.read(lambda state, _: snapshot_of(state))
    assert isinstance(restore(campaign.definition, saved).budget.amount, int)


def test_amounts_are_exported() -> None:
    campaign = paid_campaign()
    data = campaign.dataset(partial=True)
    assert list(data.amounts) == ["cost", "unsafe", "late"]
    assert data.amounts["cost"].sum() == pytest.approx(campaign.status().used)
    assert np.array_equal(data.amounts["unsafe"][:-1], data.actions[:-1])
    events = list(campaign.events())
    lines = list(export_text(campaign.definition, events, "jsonl"))
    steps = [step for line in lines for step in json.loads(line)["steps"]]
    assert [step["cost"] for step in steps] == data.amounts["cost"].tolist()
    assert [step["amounts"]["late"] for step in steps] == data.amounts["late"].tolist()
    rows = list(csv.DictReader(export_text(campaign.definition, events, "csv")))
    assert [float(row["amounts.unsafe"]) for row in rows] == data.amounts["unsafe"].tolist()
    assert [float(row["cost"]) for row in rows] == data.amounts["cost"].tolist()
    empty = create(budget=1.0).dataset()
    assert list(empty.amounts) == ["cost"]
    assert create(steps=1).dataset().amounts == {}


def test_budgets_add_up_when_campaigns_are_merged() -> None:
    one, other = create(steps=10), create(steps=9)
    play(one.start_episode(), 3)
    play(other.start_episode(), 4)
    merge(one, other)
    merge(one, other)
    status = one.status()
    assert (status.budget, status.used, status.steps) == (19, 7, 7)
    assert Campaign.open(one.storage, "c").status().budget == 19
    paid, more = paid_campaign(), paid_campaign(seed=4, budget=30.5)
    used = paid.status().used + more.status().used
    merge(paid, more)
    assert paid.status().budget == 70.5
    assert paid.status().used == pytest.approx(used)
    assert paid.dataset().amounts["late"].size == paid.dataset().rewards.size


@pytest.mark.parametrize(
    "other",
    [
        {"episodes": 10},
        {"budget": 10.0},
        {"steps": 10, "limits": {"max_ratio": 3}},
        {"steps": 10, "limits": {"max_ratio": 2, "confidence": 0.8}},
        {"steps": 10},
    ],
)
def test_other_units_and_limits_are_not_merged(other: dict[str, Any]) -> None:
    one = create(steps=10, limits={"max_ratio": 2})
    with pytest.raises(InputError, match="the unit of the budget and the limits must agree"):
        merge(one, create(**other))
