"""Several target policies on the dashboard: a table with a forest plot, and differences so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

import msgspec
import numpy as np

from revar.campaigns.service.chart import Axis, EstimateChart, Tick, difference_chart, round_values
from revar.campaigns.state import HistoryPoint
from revar.estimators.estimator import Estimate, JointEstimate
from revar.estimators.ranking import Ranking

MOST_LINES = 5  # of the chart, the closest to the leader
FOREST_TICKS = 4


@dataclass(frozen=True)
class Whisker:
    """An interval in the forest plot, in percent from the left."""

    low: float
    value: float
    high: float


@dataclass(frozen=True)
class PolicyView:
    """A line of the table; `color` is the number of its line in the chart."""

    name: str
    value: Estimate
    difference: Estimate | None  # None of the leader
    chance: float
    color: int | None
    whisker: Whisker | None
    beaten: bool


@dataclass(frozen=True)
class ComparisonView:
    """Values, the leader's differences to the others, and who leads."""

    leader: str
    verdict: str
    decided: bool
    policies: tuple[PolicyView, ...]  # the leader first
    zero: float  # of the forest plot, percent from the left
    ticks: tuple[Tick, ...]
    chart: EstimateChart | None


def closest(ranking: Ranking) -> str:
    """The policy that is hardest to tell from the leader."""
    differences = ranking.differences
    return min(differences, key=lambda name: _distance(differences[name]))


def view_comparison(
    ranking: Ranking, history: Sequence[HistoryPoint], axis: Axis, began: float
) -> ComparisonView:
    """What the page shows of a ranking and its history."""
    differences, chances = ranking.differences, ranking.chances_of_best
    verdict = ranking.verdict()
    nearest = sorted(differences, key=lambda name: _distance(differences[name]))[:MOST_LINES]
    lines = [name for name in ranking.names if name in nearest]  # colors stay when ranks change
    ends = [0.0]
    for difference in differences.values():
        ends += [end for end in difference.interval if isfinite(end)] or [difference.value]
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    low, high = min(ends) - room, max(ends) + room

    def left(value: float) -> float:
        return 100.0 * (value - low) / (high - low)

    def view(name: str, value: Estimate) -> PolicyView:
        difference = differences.get(name)
        whisker = None
        if difference is not None and isfinite(difference.standard_error):
            first, last = difference.interval
            whisker = Whisker(left(first), left(difference.value), left(last))
        color = lines.index(name) + 1 if name in lines else None
        beaten = name in verdict.beaten
        return PolicyView(name, value, difference, chances[name], color, whisker, beaten)

    tracks = {name: _differences(ranking, history, name) for name in lines}
    return ComparisonView(
        leader=verdict.leader,
        verdict=str(verdict),
        decided=verdict.decided,
        policies=tuple(view(name, value) for name, value in ranking.best_first.items()),
        zero=left(0.0),
        ticks=tuple(Tick(left(v), text) for v, text in round_values(low, high, FOREST_TICKS)),
        chart=difference_chart(
            tracks, axis, began, ranking.quantile_of_differences, banded=nearest[0]
        ),
    )


def _distance(difference: Estimate) -> float:
    """In standard errors."""
    if difference.standard_error > 0.0:
        return difference.value / difference.standard_error
    return inf if difference.value > 0.0 else 0.0


def _differences(
    ranking: Ranking, history: Sequence[HistoryPoint], name: str
) -> list[HistoryPoint]:
    """By how much the value of the present leader exceeded that of another policy."""
    other = ranking.names.index(name)
    points = []
    for point in history:
        joint = _joint(point)
        if joint is not None:
            found = joint.difference(ranking.leader, other)
            error = found.standard_error if isfinite(found.standard_error) else None
            points.append(msgspec.structs.replace(point, value=found.value, standard_error=error))
    return points


def _joint(point: HistoryPoint) -> JointEstimate | None:
    if point.values is None or point.covariance is None:
        return None
    count = len(point.values)
    covariance = np.zeros((count, count))
    for j, row in enumerate(point.covariance):
        for k, entry in enumerate(row):
            covariance[j, k] = covariance[k, j] = inf if entry is None else entry
    return JointEstimate(np.array(point.values), covariance, point.episodes, np.zeros(count))
