"""What a campaign's data says about its estimate, for the dashboard."""

from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from revar.campaigns.service.comparison import closest
from revar.campaigns.state import CampaignState
from revar.campaigns.status import Status
from revar.errors import InputError
from revar.estimators.alternatives import corrected_costs, find_alternatives
from revar.model.arrays import FloatArray, IntArray
from revar.model.question import Difference, Question
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.theory.costs import best_split_variance

MOST_STATES = 12  # shown, the most visited first
MOST_PAIRS = 8  # shown, the most uncertain first


@dataclass(frozen=True)
class StateView:
    """How a state is treated, against what the target policy does there."""

    state: bytes
    visits: int
    target: tuple[float, ...]  # [A], the mean of several policies
    behavior: tuple[float, ...]  # [A] shares of its visits


@dataclass(frozen=True)
class PairView:
    """A state and an action that the estimate's error comes from."""

    state: bytes
    action: int
    visits: int
    target: float
    share: float  # of the remaining variance


@dataclass(frozen=True)
class Instead:
    """What episodes of the target policies would have given for what was spent."""

    error: float  # the standard error
    times: float  # as much as was spent would they need for the error that there is


@dataclass(frozen=True)
class Insight:
    """What the data says about the estimate; of several policies, about the closest difference."""

    states: tuple[StateView, ...]
    states_seen: int
    pairs: tuple[PairView, ...]
    largest_share: float  # of an action, in the target policy or the behavior of those states
    on_policy: Instead | None  # with certainty equivalence; None while the data cannot tell
    mean_return: Instead | None  # the same episodes, with the mean of their returns
    about: str = ""  # of several policies: which difference, or all values


class Evidence(NamedTuple):
    """What insight is made of: a copy, to which nothing is added."""

    task: Task
    statistics: VisitStatistics
    keys: list[bytes]  # of states


def evidence_of(state: CampaignState) -> Evidence:
    """What a campaign has seen so far."""
    collection = state.collection
    keys = [key if isinstance(key, bytes) else b"" for key in collection.states.keys]
    return Evidence(collection.task, collection.statistics.copy(), keys)


def insight_of(status: Status, evidence: Evidence) -> Insight | None:
    """None until there is an estimate."""
    task, statistics, keys = evidence
    if status.estimate is None and status.ranking is None:
        return None
    observed = statistics.run_statistics(task.states)
    try:
        asked, instead, current, about = _in_doubt(status, task, statistics)
        errors = corrected_costs(asked, observed) / observed.visits.clip(min=1)
    except InputError:
        return None
    on_policy, mean_return = (_instead(error, current) for error in instead)
    states = _states(keys, observed.visits, task.policy)
    return Insight(
        states=states,
        states_seen=int((observed.visits.sum(axis=1) > 0).sum()),
        pairs=_pairs(keys, observed.visits, task.policy, errors),
        largest_share=max(max(*view.target, *view.behavior, 0.0) for view in states),
        on_policy=on_policy,
        mean_return=mean_return,
        about=about,
    )


def _instead(error: float, current: float) -> Instead | None:
    if not (isfinite(error) and isfinite(current) and current > 0):
        return None
    return Instead(error, (error / current) ** 2)


def _in_doubt(
    status: Status, task: Task, statistics: VisitStatistics
) -> tuple[Task, tuple[float, float], float, str]:
    """What is least certain: as a task, its errors otherwise, its error now, and in words.

    Otherwise, with episodes of the target policy: by certainty equivalence, and by the mean return.
    As much is spent; the difference of two takes episodes of each, divided in the best way.
    """
    ranking = status.ranking
    if ranking is None:
        found = find_alternatives(task, statistics)
        error = inf if status.estimate is None else status.estimate.standard_error
        return task, (found.on_policy, found.monte_carlo), error, ""
    rival = closest(ranking)
    ends = [ranking.leader, ranking.names.index(rival)]
    alone = [Question.of_value(policy) for policy in task.policies[ends]]
    tasks = [replace(task, policy=each.policy, question=each) for each in alone]
    both = [find_alternatives(each, statistics) for each in tasks]
    instead = (
        _error_of_difference([each.on_policy for each in both]),
        _error_of_difference([each.monte_carlo for each in both]),
    )
    error = ranking.differences[rival].standard_error
    if status.definition.question == "values":
        return task, instead, error, "all values"
    question = Difference(*task.policies[ends])
    asked = replace(task, policy=question.policy, question=question)
    return asked, instead, error, f"the lead of {ranking.names[ranking.leader]} over {rival}"


def _error_of_difference(errors: list[float]) -> float:
    """With episodes of each, divided in the best way."""
    return sqrt(best_split_variance(np.array(errors) ** 2))


def _states(keys: list[bytes], visits: IntArray, policy: FloatArray) -> tuple[StateView, ...]:
    totals = visits.sum(axis=1)
    order = np.argsort(-totals, kind="stable")[:MOST_STATES]
    return tuple(
        StateView(
            keys[s],
            int(totals[s]),
            tuple(policy[s].tolist()),
            tuple((visits[s] / totals[s]).tolist()),
        )
        for s in order.tolist()
        if totals[s] > 0
    )


def _pairs(
    keys: list[bytes], visits: IntArray, policy: FloatArray, errors: FloatArray
) -> tuple[PairView, ...]:
    total = float(errors.sum())
    if not 0.0 < total < float("inf"):
        return ()
    order = np.argsort(-errors, axis=None, kind="stable")[:MOST_PAIRS]
    places = [(int(s), int(a)) for s, a in zip(*np.unravel_index(order, errors.shape), strict=True)]
    return tuple(
        PairView(keys[s], a, int(visits[s, a]), float(policy[s, a]), float(errors[s, a]) / total)
        for s, a in places
        if errors[s, a] > 0
    )
