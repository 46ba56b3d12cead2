"""What the dashboard shows is what the data says, at any scale."""

import random
from threading import Thread
from typing import Any

import numpy as np
import pytest

from revar.campaigns import Campaign, MemoryStorage, text
from revar.campaigns.service import insight
from revar.campaigns.service.chart import Axis, estimate_chart
from revar.campaigns.service.pages import view_of
from revar.campaigns.state import History, HistoryPoint
from revar.campaigns.text import duration
from revar.collection import collection
from revar.estimators.alternatives import find_alternatives
from revar.estimators.smallest_error import mixed_estimate
from tests.campaigns.worlds import Clock, World


def history(values: list[float], error: float | None = 1.0) -> list[HistoryPoint]:
    return [
        HistoryPoint(float(i), 5 * (i + 1), 10 * i, value, error, 0.0)
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 0.0, 0.0],
        [1e-9, 2e-9, 3e-9],
        [1e80, -1e80, 3e80],
        [-5.0, -5.0],
        [1.0] * 200,
        [123456.0, 123457.0, 123456.5],
    ],
)
@pytest.mark.parametrize("error", [None, 0.0, 1.0, 1e-12])
@pytest.mark.parametrize("axis", Axis)
def test_charts_at_any_scale(values: list[float], error: float | None, axis: Axis) -> None:
    chart = estimate_chart(history(values, error), axis, began=0.0)
    assert chart is not None
    numbers = [float(part) for part in chart.series[0].line.replace(",", " ").split()]
    assert np.isfinite(numbers).all()
    assert chart.series[0].marks
    assert all(0 <= tick.place <= 100 for tick in (*chart.up, *chart.across))
    assert len({tick.label for tick in chart.up}) == len(chart.up)  # labels tell ticks apart


def test_no_chart_of_one_point() -> None:
    for axis in Axis:
        assert estimate_chart([], axis, 0.0) is None
        assert estimate_chart(history([1.0]), axis, 0.0) is None


@pytest.mark.parametrize(("first", "last"), [(5, 7), (40, 60), (5, 200), (5, 10**6), (9, 11)])
def test_marks_of_episodes(first: int, last: int) -> None:
    ends = [
        HistoryPoint(0.0, first, first, 1.0, 1.0, 0.0),
        HistoryPoint(1.0, last, last, 1.0, 1.0, 0.0),
    ]
    chart = estimate_chart(ends, Axis.EPISODES, 0.0)
    assert chart is not None
    assert 3 <= len(chart.across) <= 6


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.3, ["0 s"]),
        (7, ["0 s", "2 s", "4 s", "6 s"]),
        (200, ["0 min", "1 min", "2 min", "3 min"]),
        (9_000, ["0 min", "30 min", "60 min", "90 min", "120 min", "150 min"]),
        (86_400, ["0 h", "6 h", "12 h", "18 h", "24 h"]),
        (3e6, ["0 d", "6 d", "12 d", "18 d", "24 d", "30 d"]),
    ],
)
def test_marks_of_time(seconds: float, labels: list[str]) -> None:
    ends = [HistoryPoint(50.0 + part * seconds, 9, 9, 1.0, 1.0, 0.0) for part in (0.5, 1.0)]
    chart = estimate_chart(ends, Axis.TIME, began=50.0)
    assert chart is not None
    assert [tick.label for tick in chart.across] == labels
    assert chart.series[0].line.split()[0].startswith("50.00,")


def test_over_time_a_campaign_that_stands_still_can_be_seen() -> None:
    clock = Clock()
    campaign = Campaign.create(
        MemoryStorage(clock), "c", policy={"s": [0.5, 0.5]}, horizon=1, episodes=20, lease=10
    )
    for number in range(10):
        clock.time += 1
        episode = campaign.start_episode()
        episode.act("s")
        episode.reward(number % 3, None)
    assert campaign.status().condition == "waiting"
    campaign.start_episode()
    assert campaign.status().condition == "running"
    clock.time += 90
    view = view_of(campaign, Axis.TIME)
    assert view.status.condition == "stalled"
    assert view.status.silence == "last event 1 min 30 s ago"
    assert view.chart is not None
    # The last tenth of its line is the first tenth of the time, and then it is flat.
    (before, level), (end, last) = (
        map(float, p.split(",")) for p in view.chart.series[0].line.split()[-2:]
    )
    assert before == pytest.approx(100 * 9 / 99, abs=0.1)
    assert (end, last) == (100.0, level)
    # Finished, it ends with its last event, however long ago.
    campaign.close()
    clock.time += 1e6
    closed = view_of(campaign, Axis.TIME).chart
    assert closed is not None
    assert closed.across[-1].label == "80 s"


def test_insight_is_what_the_statistics_say() -> None:
    world = World.named("gridworld")
    campaign = Campaign.create(
        MemoryStorage(), "grid", policy=world.policy, horizon=world.horizon, episodes=80, seed=1
    )
    assert view_of(campaign).insight is None
    for episode in campaign.episodes():
        world.play(episode)
    found = view_of(campaign).insight
    assert found is not None
    known = campaign.read(lambda state, _: state.collection)
    expected = find_alternatives(known.task, known.statistics)
    assert found.on_policy is not None
    assert found.mean_return is not None
    assert found.on_policy.error == pytest.approx(expected.on_policy)
    assert found.mean_return.error == pytest.approx(expected.monte_carlo)
    error = campaign.estimate().standard_error
    # What a table of `evaluate` says they need.
    needs = expected.on_policy_need(error), expected.monte_carlo_need(error)
    assert (80 * found.on_policy.times, 80 * found.mean_return.times) == pytest.approx(needs)
    assert needs[1] > needs[0] > 80
    visits = known.statistics.visits
    assert found.states[0].visits == visits.sum(axis=1).max()
    first = int(found.states[0].state)
    number = known.states.keys.index(str(first).encode())
    assert found.states[0].behavior == pytest.approx(visits[number] / visits[number].sum())
    assert found.states[0].target == pytest.approx(world.policy[first])
    shares = [pair.share for pair in found.pairs]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) < 1


@pytest.mark.parametrize("axis", Axis)
@pytest.mark.parametrize("several", [False, True])
def test_a_page_makes_one_estimate_and_lets_others_go_on(
    several: bool, axis: Axis, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"s": [0.5, 0.5]}
    asked: dict[str, Any] = {"policy": table}
    if several:
        asked = {"policies": {"even": table, "odd": {"s": [0.9, 0.1]}}}
    campaign = Campaign.create(MemoryStorage(), "c", horizon=1, episodes=30, seed=1, **asked)
    for number, episode in enumerate(campaign.episodes()):
        episode.act("s")
        episode.reward(number % 3, None)
    made: list[int] = []
    added: list[bool] = []

    def count(*given: Any) -> Any:
        made.append(1)
        return mixed_estimate(*given)

    def add_meanwhile(*given: Any) -> Any:
        other = Thread(target=campaign.extend, kwargs={"episodes": 1}, daemon=True)
        other.start()
        other.join(10)
        added.append(not other.is_alive())
        return find_alternatives(*given)

    monkeypatch.setattr(collection, "mixed_estimate", count)
    monkeypatch.setattr(insight, "find_alternatives", add_meanwhile)
    view = view_of(campaign, axis)
    assert view.chart is not None
    assert (len(made), added) == (1, [True] * (1 + several))
    assert view.status.budget == 30
    assert campaign.status().budget == 31 + several


def test_steps_per_second_are_those_of_the_last_minute() -> None:
    history = History()
    assert history.steps_per_second(0.0) == 0.0
    for second in range(1_000, 1_300):
        history.saw_event(float(second))
        for _ in range(3):
            history.saw_step(float(second))
    assert history.steps_per_second(1_300.0) == pytest.approx(3.0, rel=0.05)
    assert history.steps_per_second(1_330.0) == pytest.approx(1.5, rel=0.1)
    assert history.steps_per_second(2_000.0) == 0.0


def test_text_for_numbers() -> None:
    assert [text.percent(share) for share in (0.0, 0.004, 0.05, 0.5, 1.0)] == [
        *("0%", "0.4%", "5.0%", "50%", "100%")
    ]
    assert [duration(seconds) for seconds in (0, 59, 61, 3_700, 90_000)] == [
        *("0 s", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h")
    ]
    assert [
        text.state_text(state) for state in (b'"a"', b"[1,2]", b'{"a":"b","c":[1]}', b"1.5")
    ] == [*("a", "(1, 2)", "a: b, c: [1]", "1.5")]
    # What cannot be seen is named, and what would turn the text around does not.
    assert [text.state_text(state) for state in (b'""', '"a\u202eb"'.encode(), b'"\\u0000"')] == [
        *('""', "a\\u202eb", "\\x00")
    ]
    assert text.state_text(str(-(10**300)).encode()) == "-1.000…e+300"
    assert len(text.state_text(b'"' + b"x" * 500 + b'"')) == text.LONGEST_STATE
    assert [text.number(value) for value in (None, float("inf"), 0.12345, 1e7)] == [
        *("-", "-", "0.1235", "1.000e+07")
    ]


def test_on_policy_is_compared_at_what_was_spent() -> None:
    """Episodes of the target policy stop at once; those that collect go on for long."""
    draw = random.Random(5)
    found = {}
    for unit in ("episodes", "steps"):
        budget: dict[str, Any] = {unit: 400}
        campaign = Campaign.create(
            MemoryStorage(),
            "c",
            policy={"s": [0.9, 0.1]},
            horizon=10,
            strategy="uniform",
            seed=1,
            **budget,
        )
        for episode in campaign.episodes():
            while not episode.over:
                ends = episode.act("s") == 0
                episode.reward(draw.gauss(1.0, 1.0), None if ends else "s")
        shown = view_of(campaign).insight
        assert shown is not None
        assert shown.on_policy is not None
        status = campaign.status()
        # One step has a variance of 1, an episode of the target policy 1/0.9 steps on average.
        steps = status.episodes / 0.9 if unit == "episodes" else status.steps
        found[unit] = shown.on_policy.error * steps**0.5
    assert found["episodes"] == pytest.approx(found["steps"], rel=0.15)
