"""What the dashboard shows of several target policies is what their ranking says."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.service.chart import Axis
from revar.campaigns.service.comparison import MOST_LINES, closest
from revar.campaigns.service.pages import view_of
from revar.campaigns.status import ranking_of
from revar.estimators import CertaintyEquivalence
from revar.estimators.alternatives import corrected_costs, each_alone, on_policy_variances
from revar.model.question import Difference
from tests.campaigns.worlds import World, policy_of


def campaign_of(policies: dict[str, Any], episodes: int, question: str = "best") -> Campaign:
    world = World.named("gridworld")
    campaign = Campaign.create(
        MemoryStorage(),
        "grid",
        policies=policies,
        question=question,
        horizon=world.horizon,
        episodes=episodes,
        seed=1,
    )
    for episode in campaign.episodes():
        world.play(episode)
    return campaign


THREE = {
    "careful": policy_of([0.05, 0.45, 0.45, 0.05]),
    "bold": policy_of([0.15, 0.35, 0.35, 0.15]),
    "uniform": policy_of([0.25, 0.25, 0.25, 0.25]),
}


def test_insight_into_a_comparison_is_about_the_closest_difference() -> None:
    campaign = campaign_of(THREE, 80)
    found = view_of(campaign).insight
    assert found is not None
    collection = campaign.read(lambda state, _: state.collection)
    ranking = ranking_of(collection)
    rival = closest(ranking)
    leader, other = ranking.leader, ranking.names.index(rival)
    assert found.about == f"the lead of {ranking.names[leader]} over {rival}"
    # All pairs together are the variance of the difference but for that of the first state.
    question = Difference(*collection.task.policies[[leader, other]])
    asked = replace(collection.task, policy=question.policy, question=question)
    observed = collection.statistics.run_statistics(asked.states)
    errors = corrected_costs(asked, observed) / observed.visits.clip(min=1)
    # Before it is widened to Student's; every episode begins in one state.
    _, table = CertaintyEquivalence().plug_in(asked, collection.statistics)
    row = asked.question.combinations.coefficients[0]
    assert errors.sum() == pytest.approx(row @ table.covariance @ row)
    variance = ranking.differences[rival].standard_error ** 2
    assert variance > errors.sum()
    assert found.pairs[0].share == pytest.approx(errors.max() / errors.sum())
    # On-policy: episodes of each, divided in the best way.
    alone = on_policy_variances(collection.task, collection.statistics)[[leader, other]]
    expected = (np.sqrt(alone).sum()) ** 2 / 80
    assert found.on_policy is not None
    assert found.on_policy.error == pytest.approx(np.sqrt(expected))
    assert found.on_policy.times == pytest.approx(expected / variance)
    each = each_alone(collection.task, collection.statistics)
    returns = sum(each[place].monte_carlo for place in (leader, other))
    assert found.mean_return is not None
    assert found.mean_return.error == pytest.approx(returns)
    mean = np.mean([table[0] for table in THREE.values()], axis=0)
    assert found.states[0].target == pytest.approx(mean)


def test_insight_into_values_is_about_all_of_them() -> None:
    campaign = campaign_of(THREE, 40, "values")
    found = view_of(campaign).insight
    assert found is not None
    assert found.about == "all values"
    collection = campaign.read(lambda state, _: state.collection)
    task, statistics = collection.task, collection.statistics
    observed = statistics.run_statistics(task.states)
    errors = corrected_costs(task, observed) / observed.visits.clip(min=1)
    _, table = CertaintyEquivalence().plug_in(task, statistics)
    assert errors.sum() == pytest.approx(np.trace(table.covariance))


def test_a_comparison_shows_what_the_ranking_says() -> None:
    campaign = campaign_of(THREE, 80)
    view = view_of(campaign)
    shown, ranking = view.comparison, campaign.ranking()
    assert shown is not None
    assert shown.policies[0].name == shown.leader
    values = [policy.value.value for policy in shown.policies]
    assert values == sorted(values, reverse=True)
    assert shown.verdict == str(ranking.verdict())
    low, high = np.inf, -np.inf
    for policy in shown.policies[1:]:
        whisker = policy.whisker
        assert whisker is not None
        assert 0 <= whisker.low < whisker.value < whisker.high <= 100
        low, high = min(low, whisker.low), max(high, whisker.high)
        assert policy.beaten == (whisker.low > shown.zero)
    assert 0 <= shown.zero <= 100
    assert min(low, shown.zero) < 10
    assert high > 90  # the picture is filled
    chart = view.chart
    assert chart is not None
    assert {series.name for series in chart.series} == set(THREE) - {shown.leader}
    (banded,) = [series.name for series in chart.series if series.band]
    assert banded == view.closest == closest(ranking)
    # The end of a line is the difference that the table shows.
    zero, places = chart.zero, {series.name: series.marks[-1].top for series in chart.series}
    assert zero is not None
    one, other = (ranking.differences[name].value for name in places)
    first, second = places.values()
    assert (zero - first) / (zero - second) == pytest.approx(one / other)


def test_a_chart_shows_few_lines_of_many_policies() -> None:
    many = {
        f"variant {k}": policy_of([0.05 + 0.02 * k, 0.45 - 0.02 * k, 0.45, 0.05]) for k in range(9)
    }
    view = view_of(campaign_of(many, 30))
    assert view.comparison is not None
    assert view.chart is not None
    assert len(view.chart.series) == MOST_LINES
    colors = {policy.name: policy.color for policy in view.comparison.policies if policy.color}
    assert colors == {series.name: i for i, series in enumerate(view.chart.series, 1)}


@pytest.mark.parametrize("rewards", [[], [1.0], [1.0, 1.0], [1e70, -1e70], [0.0] * 12])
def test_a_comparison_of_hardly_any_data(rewards: list[float]) -> None:
    campaign = Campaign.create(
        MemoryStorage(),
        "shop",
        policies={"old": {"s": [0.5, 0.5]}, "new": {"s": [0.2, 0.8]}},
        horizon=1,
        episodes=20,
        seed=1,
    )
    for reward in rewards:
        episode = campaign.start_episode()
        episode.act("s")
        episode.reward(reward, None)
    for axis in Axis:
        view = view_of(campaign, axis)
        assert (view.comparison is None) == (not rewards)
        assert str(view.status)
        if view.comparison is not None:
            assert all(0 <= tick.place <= 100 for tick in view.comparison.ticks)
