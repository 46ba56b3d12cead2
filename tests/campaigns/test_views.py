"""What the dashboard shows is what the data says, at any scale."""

import numpy as np
import pytest

from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.insight import insight_of
from revar.campaigns.progress import Look, Progress
from revar.campaigns.service import views
from revar.campaigns.service.charts import estimate_chart
from revar.estimators.comparison import compare
from tests.campaigns.worlds import World


def looks(values: list[float], error: float | None = 1.0) -> list[Look]:
    return [
        Look(float(i), 5 * (i + 1), 10 * i, value, error, 0.0) for i, value in enumerate(values)
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
def test_charts_at_any_scale(values: list[float], error: float | None) -> None:
    chart = estimate_chart(looks(values, error))
    assert chart is not None
    numbers = [float(part) for part in chart.line.replace(",", " ").split()]
    assert np.isfinite(numbers).all()
    assert chart.marks
    assert all(0 <= tick.place <= 100 for tick in (*chart.up, *chart.across))
    assert len({tick.label for tick in chart.up}) == len(chart.up)  # labels tell ticks apart


def test_no_chart_of_one_look() -> None:
    assert estimate_chart([]) is None
    assert estimate_chart(looks([1.0])) is None


def test_insight_is_what_the_statistics_say() -> None:
    world = World.named("gridworld")
    campaign = Campaign.create(
        MemoryStorage(), "grid", policy=world.policy, horizon=world.horizon, episodes=80, seed=1
    )
    assert campaign.look(lambda state, _: insight_of(state)) is None
    for episode in campaign.episodes():
        world.play(episode)
    state = campaign.look(lambda state, _: state)
    found = insight_of(state)
    assert found is not None
    collection = state.learner.collection
    expected = compare(collection.task, collection.statistics)
    assert found.on_policy_error == pytest.approx(expected.on_policy)
    error = campaign.estimate().standard_error
    assert found.saved == pytest.approx((expected.on_policy / error) ** 2 - 1)
    visits = collection.statistics.visits
    assert found.states[0].visits == visits.sum(axis=1).max()
    first = int(found.states[0].state)
    number = collection.states.keys.index(str(first).encode())
    assert found.states[0].behavior == pytest.approx(visits[number] / visits[number].sum())
    assert found.states[0].target == pytest.approx(world.policy[first])
    shares = [pair.share for pair in found.pairs]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) < 1


def test_the_pace_is_that_of_the_last_minute() -> None:
    progress = Progress()
    assert progress.pace(0.0) == 0.0
    for second in range(1_000, 1_300):
        progress.saw_event(float(second))
        for _ in range(3):
            progress.saw_step(float(second))
    assert progress.pace(1_300.0) == pytest.approx(3.0, rel=0.05)
    assert progress.pace(1_330.0) == pytest.approx(1.5, rel=0.1)
    assert progress.pace(2_000.0) == 0.0


def test_words_for_numbers() -> None:
    assert [views.percent(share) for share in (0.0, 0.004, 0.05, 0.5, 1.0)] == [
        *("0%", "0.4%", "5.0%", "50%", "100%")
    ]
    assert [views.duration(seconds) for seconds in (0, 59, 61, 3_700, 90_000)] == [
        *("0 s", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h")
    ]
    assert [views.label(text) for text in (b'"a"', b"[1,2]", b'{"a":"b","c":[1]}', b"1.5")] == [
        *("a", "(1, 2)", "a: b, c: [1]", "1.5")
    ]
    assert len(views.label(b'"' + b"x" * 500 + b'"')) == views.LONGEST_LABEL
    assert [views.number(value) for value in (None, float("inf"), 0.12345, 1e7)] == [
        *("-", "-", "0.1235", "1.000e+07")
    ]
