"""What a campaign may be asked; everything else is refused in one sentence."""

from typing import Any

import msgspec
import numpy as np
import pytest

from revar.campaigns import Campaign, CampaignError, MemoryStorage, UnknownCampaignError, definition
from revar.campaigns.defining import define
from revar.campaigns.definition import StrategyRecord
from revar.campaigns.storage.interface import NameTakenError
from revar.errors import InputError

TABLE = {"s": [0.5, 0.5]}
SHARES = StrategyRecord("on-policy", {"shares": [1, 2, 3]})
GOOD: dict[str, Any] = {"actions": 2, "horizon": 2, "episodes": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": None}, "the number of actions must be given"),
        ({"actions": 0}, "actions is 0"),
        ({"actions": 2.5}, "actions is 2.5"),
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": True}, "horizon is True"),
        ({"horizon": 10**9}, "horizon is"),
        ({"episodes": -1}, "episodes is -1"),
        ({"discount": 1.5}, "discount is 1.5"),
        ({"discount": float("nan")}, "discount is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is"),
        ({"lease": 0}, "lease is 0"),
        ({"lease": float("inf")}, "lease is inf"),
        ({"strategy": "flw"}, "did you mean 'flow'"),
        ({"strategy": "oracle"}, "needs the true model"),
        ({"strategy": 3}, "strategy is 3"),
        ({"strategy": StrategyRecord("flow", {"wrong": 1})}, "has no parameter 'wrong'"),
        ({"horizon": 10**6, "actions": 10**4}, "more than 50,000,000 combinations"),
        ({"horizon": 10**6, "policy": {i: [1, 0] for i in range(26)}}, "and 26 states make more"),
        ({"policy": {}}, "the policy table is empty"),
        ({"policy": {"s": [0.5, 0.4]}}, "sum to 0.9"),
        ({"policy": {"s": [1.0]}}, "actions is 2, but the policy has 1"),
        ({"policy": [("s", [1, 0]), ("t", [1, 0, 0])]}, "rows of"),
        ({"policy": [(1, [1, 0]), (1.0, [1, 0])]}, "state 1 twice"),
        ({"policy": {"s": [float("nan"), 1.0]}}, "the policy of state"),
        ({"policy": np.ones(3)}, "it must be"),
        ({"policy": [(None, [1, 0])]}, "null"),
        ({"policy": ["s"]}, "row 0 of the policy"),
        ({"policy": [3]}, "row 0 of the policy"),
        ({"policy": 3}, "the policy is 3"),
        ({"policy": {"s": 3}}, 'the policy of state "s" is 3'),
        ({"question": "best"}, "which is asked of several policies"),
        ({"policy": TABLE, "policies": ["old", "new"]}, "both are given"),
        ({"policies": []}, "policies names 0; a comparison needs at least two"),
        ({"policies": ["old"]}, "policies names 1; a comparison needs at least two"),
        ({"policies": {"old": TABLE}}, "policies names 1; a comparison needs at least two"),
        ({"policies": ["old", "old"]}, "two policies have the name 'old'"),
        ({"policies": [("old", TABLE), ("old", TABLE)]}, "two policies have the name 'old'"),
        ({"policies": ["old", ""]}, "the name of a policy is ''"),
        ({"policies": ["old", " new"]}, "the name of a policy is ' new'"),
        ({"policies": ["old", "n\new"]}, "the name of a policy is"),
        ({"policies": ["old", "n" * 61]}, "it must be 1 to 60 characters"),
        ({"policies": ["old", 3]}, "the name of a policy is 3"),
        ({"policies": "old"}, "policies is 'old'; it must be names"),
        ({"policies": 3}, "policies is 3; it must be names"),
        ({"policies": [f"p{i}" for i in range(51)]}, "at most 50 are compared"),
        ({"policies": {"old": TABLE, "new": {"s": [1.0]}}}, "have the same actions"),
        ({"policies": {"old": TABLE, "new": {"t": [1, 0]}}}, "has state \"s\" and policy 'new'"),
        ({"policies": {"old": TABLE, "new": None}}, "'old' has a table and policy 'new' has none"),
        ({"policies": {"old": TABLE, "new": {"s": [1, 1]}}}, "policy 'new' of state \"s\" gives"),
        ({"policies": {"old": TABLE, "new": {}}}, "policy 'new' table is empty"),
        ({"policies": {"old": TABLE, "new": 3}}, "policy 'new' is 3"),
        ({"policies": {"a": TABLE, "b": TABLE}, "actions": 3}, "actions is 3"),
        ({"policies": ["old", "new"], "actions": None}, "the number of actions must be given"),
        ({"policies": ["old", "new"], "question": "worst"}, "must be one of best, values, diff"),
        ({"policies": ["a", "b", "c"], "question": "difference"}, "between two policies"),
        ({"policies": ["a", "b"], "strategy": SHARES}, "each of 2 policies"),
        ({"policies": ["a", "b"], "horizon": 10**6, "actions": 26}, "26 actions, 2 policies and"),
    ],
)
def test_questions_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Campaign.create(MemoryStorage(), "c", **{**GOOD, **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", "a b", "../x", "a/b", "-a", "ä", "a" * 101, None, 3])
def test_names_that_are_refused(name: Any) -> None:
    with pytest.raises(InputError, match="the name of a campaign is"):
        Campaign.create(MemoryStorage(), name, **GOOD)


def test_a_name_is_taken_once() -> None:
    storage = MemoryStorage()
    Campaign.create(storage, "c", **GOOD)
    with pytest.raises(NameTakenError, match="there is a campaign 'c' already"):
        Campaign.create(storage, "c", **GOOD)
    with pytest.raises(UnknownCampaignError, match="there is no campaign 'd'"):
        Campaign.open(storage, "d")


def test_a_seed_is_drawn_and_kept() -> None:
    seeds = {define(**GOOD).seed for _ in range(5)}
    assert len(seeds) == 5
    storage = MemoryStorage()
    made = Campaign.create(storage, "c", **GOOD)
    assert Campaign.open(storage, "c").definition == made.definition


def test_tables_of_every_form_are_the_same_question() -> None:
    forms: list[Any] = [
        np.array([[0.5, 0.5], [1.0, 0.0]]),
        {0: [0.5, 0.5], 1: [1, 0]},
        [(1, (1.0, 0.0)), (0, np.array([0.5, 0.5]))],
    ]
    questions = [define(**{**GOOD, "policy": form}).asks() for form in forms]
    assert questions[0] == questions[1] == questions[2]


def test_several_policies_of_every_form_are_the_same_question() -> None:
    table = np.array([[0.5, 0.5], [1.0, 0.0]])
    other = {0: [0.1, 0.9], 1: [1, 0]}
    forms: list[Any] = [
        {"old": table, "new": other},
        [("new", other), ("old", table)],
        {"old": [(1, (1.0, 0.0)), (0, [0.5, 0.5])], "new": other},
    ]
    made = [define(**{**GOOD, "policies": form}) for form in forms]
    assert made[0].asks() == made[1].asks() == made[2].asks()
    assert [each.names for each in made] == [("old", "new"), ("new", "old"), ("old", "new")]
    assert {each.question for each in made} == {"best"}
    names = [["old", "new"], ("old", "new"), {"old": None, "new": None}]
    sent = [define(**{**GOOD, "policies": form}) for form in names]
    assert sent[0].asks() == sent[1].asks() == sent[2].asks() != made[0].asks()
    assert not sent[0].has_table
    # What it is collected for changes no value.
    assert made[0].asks() == define(**{**GOOD, "policies": forms[0], "question": "values"}).asks()


def test_a_definition_of_one_policy_is_stored_as_ever() -> None:
    """A reader that knows nothing of several policies reads it."""
    known = {*("horizon", "discount", "episodes", "actions", "strategy", "seed", "lease")}
    stored = msgspec.json.decode(msgspec.json.encode(define(**{**GOOD, "policy": TABLE})))
    assert set(stored) == known | {"policy"}
    assert set(msgspec.json.decode(msgspec.json.encode(define(**GOOD)))) == known


def test_states_beyond_what_can_be_planned_for_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An act is refused, and what is under way goes on."""
    monkeypatch.setattr(definition, "MOST_CELLS", 3 * 2 * 2)  # three states
    campaign = Campaign.create(MemoryStorage(), "c", **{**GOOD, "episodes": 9})
    first = campaign.start_episode()
    first.act("a", [0.5, 0.5])
    first.reward(1.0, "b")
    second, third = campaign.start_episode(), campaign.start_episode()
    second.act("c", [0.5, 0.5])
    with pytest.raises(CampaignError, match="and 4 states make more than 12 combinations"):
        third.act("d", [0.5, 0.5])
    second.reward(1.0, None)
    first.act("b", [0.5, 0.5])
    first.reward(1.0, None)
    assert campaign.status().episodes == 2


@pytest.mark.parametrize("episode_id", ["", "a/b", "a" * 65, 3, "ä"])
def test_episode_ids_that_are_refused(episode_id: Any) -> None:
    campaign = Campaign.create(MemoryStorage(), "c", **GOOD)
    with pytest.raises(InputError, match="the id of an episode is"):
        campaign.start_episode(episode_id)
