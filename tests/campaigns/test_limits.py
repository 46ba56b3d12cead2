"""Limits of a campaign: part of its definition, kept at every act, reported as they turn out."""

import sys
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import numpy as np
import pytest

import revar
from revar.campaigns import Campaign, CampaignError, MemoryStorage, Storage
from revar.campaigns.defining import define
from revar.campaigns.events import Acted
from revar.campaigns.limits import LimitReport
from revar.campaigns.snapshots import snapshot_of
from revar.errors import InputError
from revar.model.arrays import FloatArray
from tests.campaigns.worlds import World

TABLE = {"a": [0.5, 0.5, 0.0], "b": [0.2, 0.0, 0.8]}
GOOD: dict[str, Any] = {"actions": 3, "horizon": 2, "episodes": 9, "seed": 1}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (3, "limits is 3; it must be a revar.Limits, or a mapping"),
        ({"max": 3}, "limits has no 'max'; it has forbidden, max_ratio"),
        ({"max_ratio": 0.5}, "max_ratio is 0.5; it must be a finite number of at least 1"),
        ({"min_return": "most"}, "min_return is 'most'; it must be a number, or a share"),
        ({"confidence": 1.0}, "confidence of limits is 1.0; it must lie between 0 and 1"),
        ({"forbidden": 1}, "forbidden is 1; it must be a list of actions"),
        ({"forbidden": ["a"]}, "forbidden has 'a'; it must be a list of actions"),
        ({"forbidden": [True]}, "forbidden has True; it must be a list of actions"),
        ({"forbidden": [3]}, "forbidden names action 3; there are 3 actions"),
        ({"forbidden": [["a", -1]]}, "forbidden names action -1; there are 3 actions"),
        ({"forbidden": [2, ["a", 2]]}, "forbidden has actions and pairs"),
        ({"forbidden": [[None, 2]]}, "a state of forbidden is null"),
        ({"forbidden": [["c", 2]]}, 'state "c", which the target policy\'s table has not'),
        ({"forbidden": [1]}, 'forbid action 1 in state "a", which the target policy takes there'),
        ({"forbidden": [["b", 2]]}, 'forbid action 2 in state "b", .* with probability 0.8; the'),
        ({"max_sums": ["unsafe"]}, "max_sums is .* it must be a mapping from names to the most"),
        ({"max_sums": {"": 1}}, "the name of a limited sum is ''"),
        ({"max_sums": {"cost": 1}}, "max_sums names 'cost', which is what a budget is spent on"),
        ({"max_sums": {"return": 1}}, "max_sums names 'return', which is the name of"),
        ({"max_sums": {"unsafe": "few"}}, "unsafe is at most 'few'; it must be a finite number"),
        (revar.Limits(max_sums=[(np.ones((2, 3)), 1)]), "every reward tells the amounts"),
    ],
)
def test_limits_that_are_refused(limits: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        define(**GOOD, policy=TABLE, limits=limits)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 5}, "one budget: episodes, steps or budget; got episodes and steps"),
        ({"episodes": None}, "one budget: episodes, steps or budget; got none"),
        ({"episodes": None, "steps": 0}, "steps is 0; it must be a whole number from 1"),
        ({"episodes": None, "steps": 2.5}, "steps is 2.5"),
        ({"episodes": None, "budget": 0}, "budget is 0; it must be positive"),
        ({"episodes": None, "budget": -2.0}, "budget is -2.0; it must be positive"),
        ({"episodes": None, "budget": float("inf")}, "budget is inf"),
        ({"episodes": None, "budget": "much"}, "budget is 'much'"),
        ({"episodes": None, "budget": 1e20}, "budget is 1e.20; it must be at most 1e.15"),
        ({"strategy": "revar", "limits": {"max_ratio": 2}}, "strategy 'revar' knows no limits"),
        ({"strategy": "uniform", "limits": {"forbidden": [2]}}, "'uniform' knows no limits"),
    ],
)
def test_budgets_and_strategies_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Campaign.create(MemoryStorage(), "c", **{**GOOD, **changes})


def test_a_policy_among_several_that_needs_what_is_forbidden_is_named() -> None:
    other = {"a": [0.4, 0.5, 0.1], "b": [0.2, 0.0, 0.8]}
    with pytest.raises(InputError, match="in state \"a\", which target policy 'new' takes there"):
        define(**GOOD, policies={"old": TABLE, "new": other}, limits={"forbidden": [("a", 2)]})


def test_every_form_is_the_same_limit() -> None:
    array = np.array([[False, False, True], [False, True, False]])
    forms: list[Any] = [
        {"forbidden": [[0, 2], [1, 1]], "max_sums": {"unsafe": 1}},
        {"forbidden": [(1.0, 1), (0, 2)], "max_sums": {"unsafe": 1.0}, "confidence": 0.9},
        {"forbidden": array, "max_sums": {"unsafe": 1}},
        revar.Limits(forbidden=[(0, 2), (1, 1)], max_sums=[("unsafe", 1)]),
        revar.Limits(forbidden=array, max_sums=[("unsafe", 1)]),
    ]
    table = [[0.5, 0.5, 0.0], [0.2, 0.0, 0.8]]
    made = [define(**GOOD, policy=np.array(table), limits=form) for form in forms]
    assert all(each == made[0] for each in made)
    storage = MemoryStorage()
    campaign = Campaign.create(storage, "c", **GOOD, policy=np.array(table), limits=forms[0])
    assert Campaign.open(storage, "c").definition == campaign.definition == made[0]


@pytest.mark.parametrize("limits", [None, {}, revar.Limits(), {"forbidden": [], "max_sums": {}}])
def test_limits_that_forbid_nothing_are_none(limits: Any) -> None:
    assert define(**GOOD, limits=limits).limits is None


def test_an_act_that_needs_what_is_forbidden_is_refused_and_the_episode_goes_on() -> None:
    campaign = Campaign.create(
        MemoryStorage(), "c", **GOOD, limits={"forbidden": [[{"page": 1}, 2], ["b", 0]]}
    )
    episode = campaign.start_episode()
    with pytest.raises(
        CampaignError, match=r'forbid action 2 in state {"page":1}, which'
    ) as caught:
        episode.act({"page": 1}, [0.5, 0.3, 0.2])
    assert caught.value.code == "forbidden-action"
    assert episode.act({"page": 1.0}, [0.5, 0.5, 0.0]) in (0, 1)
    episode.reward(1.0, "b")
    with pytest.raises(CampaignError, match='forbid action 0 in state "b"'):
        episode.act("b", [1.0, 0.0, 0.0])
    assert episode.act("b", [0.0, 0.5, 0.5]) in (1, 2)
    assert sum(1 for _ in campaign.events()) == 4  # nothing refused is stored


def acted(campaign: Campaign) -> list[Acted]:
    return [event for _, event in campaign.events() if isinstance(event, Acted)]


@pytest.mark.parametrize("strategy", ["flow", "on-policy"])
def test_what_is_forbidden_is_never_done(strategy: str) -> None:
    """Action 0 everywhere, of a policy that does without it."""
    world = World.named("gridworld")
    policy = np.tile([0.0, 0.3, 0.3, 0.4], (16, 1))
    campaign = Campaign.create(
        MemoryStorage(),
        "grid",
        policy=policy,
        horizon=world.horizon,
        steps=600,
        strategy=strategy,
        limits={"forbidden": [0]},
        seed=2,
    )
    for episode in campaign.episodes():
        world.play(episode)
    assert {event.action for event in acted(campaign)} == {1, 2, 3}


def plan_and_target(campaign: Campaign) -> tuple[FloatArray, FloatArray]:
    """Shares of actions by the plan in force, where it holds [L, S, A], and by the policy."""
    collection = campaign.read(lambda state, _: state.collection)
    plan = collection.plan_in_force
    assert plan is not None
    assert plan.covered is not None
    covered = sorted(plan.covered)
    return plan.plan.scores[:, covered], collection.states.policies[0][covered]


def test_no_action_is_taken_more_often_than_the_ratio_allows() -> None:
    world = World.named("gridworld")
    campaign = Campaign.create(
        MemoryStorage(),
        "grid",
        policy=world.policy,
        horizon=world.horizon,
        episodes=120,
        limits=revar.Limits(max_ratio=2.0),
        seed=2,
    )
    plans = 0
    largest = 0.0
    for episode in campaign.episodes():
        world.play(episode)
        scores, target = plan_and_target(campaign)
        plans += 1
        largest = max(largest, float((scores / target).max()))
    assert plans == 120
    assert 1.5 < largest <= 2.0 + 1e-9


def test_with_a_floor_the_first_plan_is_the_target_policy() -> None:
    world = World.named("gridworld")
    campaign = Campaign.create(
        MemoryStorage(),
        "grid",
        policy=world.policy,
        horizon=world.horizon,
        episodes=60,
        limits={"min_return": "100%"},
        seed=2,
    )
    world.play(campaign.start_episode())
    scores, target = plan_and_target(campaign)
    assert np.array_equal(scores, np.broadcast_to(target, scores.shape))
    for episode in campaign.episodes():
        world.play(episode)
    (found,) = campaign.status().realised
    assert found.least == pytest.approx(campaign.estimate().value)
    assert found.mean is not None
    assert found.standard_error is not None
    returns = [float(episode.rewards.sum()) for episode in campaign.dataset()]
    assert found.mean == pytest.approx(np.mean(returns))
    assert found.standard_error == pytest.approx(np.std(returns, ddof=1) / np.sqrt(60))
    assert not found.broken
    assert f"to be at least {found.least:.4g}" in str(campaign.status())


def test_sums_are_reported_against_their_limits() -> None:
    campaign = Campaign.create(
        MemoryStorage(),
        "c",
        policy={"s": [0.5, 0.5]},
        horizon=1,
        episodes=40,
        limits={"max_sums": {"unsafe": 0.1, "late": 0.5}, "min_return": 0.9},
        seed=1,
    )
    assert [(each.name, each.mean) for each in campaign.status().realised] == [
        *(("return", None), ("unsafe", None), ("late", None))
    ]
    for episode in campaign.episodes():
        episode.act("s")
        episode.reward(1.0, None, amounts={"unsafe": episode.number % 2, "late": 0})
    reports = {each.name: each for each in campaign.status().realised}
    error = 0.5 / np.sqrt(39)
    unsafe = reports["unsafe"]
    assert (unsafe.least, unsafe.most, unsafe.mean, unsafe.broken) == (None, 0.1, 0.5, True)
    assert unsafe.standard_error == pytest.approx(error)
    assert reports["late"] == LimitReport("late", None, 0.5, 0.0, 0.0, False)
    assert reports["return"] == LimitReport("return", 0.9, None, 1.0, 0.0, False)
    assert "unsafe of collecting episodes: 0.5 ± 0.08, to be at most 0.1" in str(campaign.status())


def test_limits_hold_on_for_another_process_and_from_a_snapshot() -> None:
    storage = MemoryStorage()
    campaign = Campaign.create(
        storage, "c", **{**GOOD, "horizon": 1}, limits={"min_return": "100%", "forbidden": [2]}
    )
    campaign.start_episode().act("a", [0.9, 0.1, 0.0])
    storage.save_snapshot(campaign.id, campaign.read(lambda state, _: snapshot_of(state)))
    other = Campaign.open(storage, "c")
    with pytest.raises(CampaignError, match="forbid action 2"):
        other.start_episode().act("b", [0.9, 0.0, 0.1])
    scores, _ = plan_and_target(other)
    assert np.array_equal(scores[0], [[0.9, 0.1, 0.0]])


WORKER = """
import sys
from revar.campaigns import Campaign, MemoryStorage
from tests.campaigns.test_limits import create_limited
from tests.campaigns.worlds import World

campaign, world, played = Campaign.open(sys.argv[1], "c"), World.named("gridworld"), 0
for episode in create_limited(MemoryStorage(), world).episodes():  # all that is compiled is loaded
    world.play_paid(episode, campaign.definition.limited_sums)
print("ready", flush=True)
sys.stdin.readline()
for episode in campaign.episodes(poll=0.02):
    world.play_paid(episode, campaign.definition.limited_sums)
    played += 1
    if played == 6:  # whoever is quicker leaves something for the other
        print("has played", flush=True)
        sys.stdin.readline()
print(played)
"""


def create_limited(storage: Storage | str, world: World) -> Campaign:
    return Campaign.create(
        storage,
        "c",
        policy=np.hstack([world.policy, np.zeros((16, 1))]),
        horizon=world.horizon,
        budget=700.0,
        limits={"forbidden": [4], "max_ratio": 2, "min_return": "90%", "max_sums": {"odd": 2.5}},
        seed=2,
    )


def test_two_processes_keep_to_one_budget_and_its_limits(tmp_path: Path) -> None:
    world = World.named("gridworld")
    address = f"sqlite:///{tmp_path}/campaigns.db"
    campaign = create_limited(address, world)
    with ExitStack() as stack:
        command = [sys.executable, "-c", WORKER, address]
        pipes: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "text": True}
        workers: list[Any] = [stack.enter_context(Popen(command, **pipes)) for _ in range(2)]
        for said in ("ready\n", "has played\n"):
            for worker in workers:
                assert worker.stdout.readline() == said
            _begin(workers)
        played = [int(worker.communicate(timeout=120)[0]) for worker in workers]
    status = campaign.status()
    assert min(played) >= 6
    assert sum(played) == status.episodes
    dearest = world.horizon * 3.5
    assert 700 <= status.used < 700 + dearest
    # What was spent and summed is that of the data, and nothing forbidden was done.
    data = campaign.dataset()
    assert data.amounts["cost"].sum() == pytest.approx(status.used)
    assert set(data.actions.tolist()) == {0, 1, 2, 3}
    floor, odd = status.realised
    assert odd.mean == pytest.approx(data.amounts["odd"].sum() / status.episodes)
    assert not (floor.broken or odd.broken)
    scores, target = plan_and_target(campaign)
    assert (scores <= 2.0 * target + 1e-9).all()
    # Whoever opens it now, by its log alone, finds the same.
    again = Campaign.open(address, "c").status()
    assert (again.used, again.realised, again.estimate) == (
        *(status.used, status.realised, status.estimate),
    )


def _begin(workers: list[Any]) -> None:
    """Let all of them begin before one is waited for."""
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()


def test_the_status_lists_what_is_never_done() -> None:
    def lines(**limits: Any) -> list[str]:
        campaign = Campaign.create(MemoryStorage(), "c", **GOOD, limits=limits)
        return str(campaign.status()).splitlines()[2:-1]

    assert lines(max_ratio=2.5, forbidden=[2]) == [
        "no action is taken more than 2.5 times as often as the target policy takes it",
        "never: action 2",
    ]
    pairs = [("cart", 2), ("home", 1)]
    assert lines(forbidden=pairs) == ['never: action 2 in state "cart", action 1 in state "home"']
    many = lines(forbidden=[(number, 2) for number in range(20)])[0]
    assert many.startswith("never: action 2 in state 0, action 2 in state 1, ")
    assert many.endswith(", and 8 more")
    assert lines(max_sums={"unsafe": 1.0}) == [
        "unsafe of collecting episodes: no episode is finished, to be at most 1"
    ]
