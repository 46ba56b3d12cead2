"""All readers of one log agree on the whole state to the last bit, whatever was asked of whom."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgspec
import pytest

from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.commands import Act, Command, propose, tell_reward
from revar.campaigns.events import Closed, Finished, Released, Rewarded, Sent, Started
from revar.campaigns.leases import LeaseClock
from revar.campaigns.snapshots import read_snapshot, snapshot_of
from revar.campaigns.state import CampaignState
from revar.campaigns.storage.interface import AppendResult
from tests.campaigns.worlds import Clock

STATES = ("a", "b", "c", "d", "e")
POLICY = {"a": [0.5, 0.5], "b": [0.3, 0.7], "c": [0.9, 0.1], "d": [1.0, 0.0], "e": [0.25, 0.75]}
POLICIES: dict[str, dict[str, Any]] = {
    "table": {"policy": POLICY},
    "sent": {},
    "tables": {"policies": {"old": POLICY, "new": {s: row[::-1] for s, row in POLICY.items()}}},
    "sent by name": {"policies": ["old", "new"], "question": "difference"},
}
BUDGETS: dict[str, dict[str, Any]] = {
    "steps": {"steps": 130},
    "cost": {"budget": 90.0},
    "limits": {
        "budget": 90.0,
        "limits": {
            "forbidden": [["d", 1]],
            "max_ratio": 2.0,
            "min_return": "80%",
            "max_sums": {"unsafe": 1.0, "late": 2.0},
        },
    },
}
HORIZON, LEASE = 3, 50.0
TURNS = 250


def whole_state(campaign: Campaign) -> dict[str, Any]:
    """Everything that a reader knows, as its snapshot holds it: statistics, plans, episodes."""
    saved = read_snapshot(campaign.read(lambda state, _: snapshot_of(state)))
    assert saved is not None
    waiting = campaign.read(lambda state, _: state.collection.put_off)
    return {
        **msgspec.structs.asdict(saved),
        "policy": campaign.read(lambda state, _: sorted(state.policy.items())),
        "put off": waiting
        and (waiting.covered, [a.tolist() for a in waiting.statistics.arrays().values()]),
    }


def assert_agree(readers: Sequence[Campaign]) -> None:
    expected = whole_state(readers[0])
    for reader in readers[1:]:
        found = whole_state(reader)
        differing = [name for name in expected if found[name] != expected[name]]
        assert found == expected, f"readers disagree on {differing}"


def test_a_plan_that_is_due_is_made_where_the_log_is_folded() -> None:
    """An action is chosen while a plan is due, in one commit behind a reward of another episode.

    A reader of the log makes the plan from statistics with that reward. So must the process that
    chose the action without it.
    """
    storage = MemoryStorage()
    campaign = Campaign.create(
        storage, "due", policy={"a": [0.5, 0.5], "b": [0.3, 0.7]}, horizon=1, episodes=400, seed=1
    )
    were_due = 0
    for turn in range(100):
        first, second, third = (f"{name}-{turn}" for name in ("first", "second", "third"))
        state = b'"b"' if turn % 2 else b'"a"'
        campaign.execute([Started(first), Started(second), Started(third)])
        campaign.execute([Act(second, 0, state), Act(third, 0, state)])
        campaign.execute([tell_reward(campaign.definition, third, 0, 3.0 * (turn % 4), None)])
        plan = campaign.read(lambda state, _: state.collection.plan_in_force)
        were_due += plan is not None and plan.expired
        campaign.execute(
            [
                tell_reward(campaign.definition, second, 0, 7.0 * (turn % 5), None),
                Act(first, 0, b'"a"'),
            ]
        )
        assert_agree([campaign, Campaign.open(storage, "due")])
        campaign.execute([tell_reward(campaign.definition, first, 0, 1.0, None)])
    assert were_due >= 4


@pytest.mark.parametrize("definition", ["table", "sent by name"])
def test_a_plan_that_is_put_off_is_the_same_for_all(
    definition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made in the background of one process, and nowhere else before it is in force.

    Acts go on meanwhile. Readers that follow, that come late, or that plan for themselves agree.
    """
    monkeypatch.setattr("revar.campaigns.log.PLANNED_AT_ONCE", 0)
    storage = MemoryStorage()
    asked: dict[str, Any] = {**POLICIES[definition], "actions": 2, "horizon": 2, "episodes": 1000}
    campaign = Campaign.create(storage, "later", seed=1, **asked)
    follower = Campaign.open(storage, "later")
    jobs: list[tuple[Callable[[], None], Future[None]]] = []

    def later(job: Callable[[], None]) -> Future[None]:
        jobs.append((job, Future()))
        return jobs[-1][1]

    campaign.plan_later = later
    draw = random.Random(5)
    behind: Counter[bool] = Counter()
    sent = {"old": [0.5, 0.5], "new": [0.5, 0.5]} if definition != "table" else None
    for turn in range(600):
        pending = campaign.read(lambda state, _: state.collection.put_off)
        before = campaign.read(lambda state, _: state.collection.plan_in_force)
        episode = (follower if turn % 10 == 9 else campaign).start_episode()
        episode.act("a", sent)
        after = campaign.read(lambda state, _: state.collection.plan_in_force)
        if pending is not None:  # its own plan is put in force by the follower, who has to make it
            assert (after is before) == (turn % 10 != 9 and not jobs[-1][1].done())
            behind[after is before] += 1
        episode.reward(draw.gauss(0, 1), "b")
        episode.act("b", sent)
        episode.reward(draw.gauss(0, 1), None)
        if jobs and not jobs[-1][1].done() and draw.random() < 0.2:
            jobs[-1][0]()
            jobs[-1][1].set_result(None)
        if turn % 7 == 0:
            assert_agree([campaign, follower, Campaign.open(storage, "later")])
    assert behind[True] >= 8
    assert behind[False] >= 3
    assert_agree([campaign, follower, Campaign.open(storage, "later")])


def decide(command: Command, state: CampaignState, now: float) -> None:
    propose(state, command, LeaseClock(MemoryStorage(lambda: now)), set())


class Racing(MemoryStorage):
    """Lets others append between the moment that a process decides and its own append."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.others: Callable[[], object] | None = None

    def append(self, campaign_id: str, bodies: Sequence[bytes]) -> AppendResult:
        others, self.others = self.others, None
        if others is not None:
            others()
        return super().append(campaign_id, bodies)


class Caller:
    """Makes up commands: most fit the state of the campaign, some are repeated, late or wrong."""

    def __init__(self, watch: Campaign, draw: random.Random) -> None:
        self.watch, self.draw = watch, draw
        self.started = 0
        self.first_states: dict[str, str] = {}

    def batch(self) -> list[Command]:
        return [self.command() for _ in range(self.draw.choice((1, 1, 2, 4, 7)))]

    def command(self) -> Command:
        draw = self.draw
        opened = self.watch.read(
            lambda state, _: [
                (record.id, record.steps, record.waits)
                for record in state.records.values()
                if record.episode is not None
            ]
        )
        if len(opened) < 3 or draw.random() < 0.1:
            return Started(self.new_id() if draw.random() < 0.9 else f"episode-{self.started}")
        episode, steps, waits = draw.choice(opened)
        kind = draw.random()
        step = steps if draw.random() < 0.9 else draw.randrange(-1, HORIZON + 1)
        if kind < 0.03:
            return Finished(episode)
        if kind < 0.06:
            return Released(episode, "abandoned")
        if waits == (kind < 0.9):
            following = draw.choice((*STATES, None))
            return self.reward(episode, step, following)
        return self.act(episode, step)

    def act(self, episode: str, step: int) -> Act:
        state = self.watch.read(lambda state, _: self.state_of(state, episode))
        if self.draw.random() < 0.05:
            state = self.draw.choice(STATES)
        row = list(POLICY[state])
        if self.draw.random() < 0.05:
            row = [0.2, 0.8]  # a policy that changes is refused, unless it is the first to be told
        return Act(episode, step, f'"{state}"'.encode(), self.sent(row))

    def reward(self, episode: str, step: int, following: str | None) -> Rewarded:
        definition, draw = self.watch.definition, self.draw
        reward = draw.gauss(1.0, 2.0)
        cost = None if definition.budget is None else draw.choice((0.0, 0.3, 1.7))
        amounts = {name: draw.random() for name in definition.limited_sums} or None
        told = tell_reward(definition, episode, step, reward, following, cost, amounts)
        if draw.random() < 0.05:  # refused where costs are asked for, and where they are not
            return msgspec.structs.replace(told, cost=-1.0)
        return told

    def sent(self, row: list[float]) -> Sent | None:
        definition = self.watch.definition
        if definition.has_table:
            return None
        if definition.policies is None or self.draw.random() < 0.05:  # not by name: refused
            return row
        return {"old": row, "new": row[::-1]} if self.draw.random() < 0.95 else {"old": row}

    def state_of(self, state: CampaignState, episode: str) -> str:
        record = state.records[episode].episode
        number = None if record is None else record.state
        if number is None or number < 0:
            return self.first_states.setdefault(episode, self.draw.choice(STATES))
        key = state.collection.states[number]
        assert isinstance(key, bytes)
        found: str = msgspec.json.decode(key)
        return found

    def new_id(self) -> str:
        self.started += 1
        return f"episode-{self.started}"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policies", POLICIES)
@pytest.mark.parametrize("strategy", ["flow", "revar", "cb-var", "uniform", "on-policy"])
def test_any_interleaving(strategy: str, policies: str, seed: int) -> None:
    draw = random.Random(f"{strategy}/{policies}/{seed}")
    interleave(draw, **POLICIES[policies], episodes=60, strategy=strategy, seed=seed)


@pytest.mark.parametrize("policies", ["table", "sent"])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("strategy", ["flow", "on-policy"])
def test_any_interleaving_with_costs_and_limits(strategy: str, budget: str, policies: str) -> None:
    draw = random.Random(f"{strategy}/{policies}/{budget}")
    interleave(draw, **POLICIES[policies], **BUDGETS[budget], strategy=strategy, seed=1)


def interleave(draw: random.Random, **asked: Any) -> None:
    """Several processes with batches of commands, races, leases that run out, and restarts."""
    clock = Clock()
    storage = Racing(clock)
    campaign = Campaign.create(storage, "one", actions=2, horizon=HORIZON, lease=LEASE, **asked)
    readers = [campaign, *(Campaign.open(storage, "one") for _ in range(3))]
    caller = Caller(Campaign.open(storage, "one"), draw)
    for turn in range(TURNS):
        clock.time += draw.choice((0.0, 1.0, 1.0, 5.0, 30.0))
        reader = draw.choice(readers)
        kind = draw.random()
        if kind < 0.15:  # a process decides, and dies before it appends
            for command in caller.batch():
                reader.read(partial(decide, command))
            continue
        if kind < 0.4:  # another is quicker
            other = draw.choice([one for one in readers if one is not reader])
            quicker = caller.batch()
            storage.others = partial(other.execute, quicker)
        closing = [Closed()] if turn == TURNS * 4 // 5 else []
        reader.execute([*caller.batch(), *closing])
        storage.others = None
        if turn % 25 == 7:  # one process starts again from a snapshot of another, or from the log
            storage._snapshots.clear()
            if draw.random() < 0.5:
                saved = draw.choice(readers).read(lambda state, _: snapshot_of(state))
                storage.save_snapshot(campaign.id, saved)
            readers[draw.randrange(1, len(readers))] = Campaign.open(storage, "one")
        if turn % 50 == 49:
            assert_agree([*readers, caller.watch])
    storage._snapshots.clear()
    fresh = Campaign.open(storage, "one")
    storage.save_snapshot(campaign.id, fresh.read(lambda state, _: snapshot_of(state)))
    assert_agree([fresh, Campaign.open(storage, "one"), *readers])
    status = fresh.status()
    assert status.steps > 50
    assert sum(1 for _ in fresh.events()) > 2 * status.steps  # not all took effect
