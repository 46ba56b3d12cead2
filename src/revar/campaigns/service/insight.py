"""What a campaign's data says about its estimate, for the dashboard."""

from dataclasses import dataclass, replace
from math import isfinite, sqrt

import numpy as np

from revar.campaigns.service.comparison import closest
from revar.campaigns.state import CampaignState
from revar.campaigns.status import ranking_of
from revar.errors import InputError
from revar.estimators.alternatives import corrected_costs, find_alternatives
from revar.model.arrays import FloatArray, IntArray
from revar.model.question import Difference, Question
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
class Insight:
    """What the data says about the estimate; of several policies, about the closest difference."""

    states: tuple[StateView, ...]
    states_seen: int
    pairs: tuple[PairView, ...]
    on_policy_error: float | None  # standard error that on-policy episodes of the same cost had
    largest_share: float  # of an action, in the target policy or the behavior of those states
    saved: float | None  # share of what was spent that on-policy would have needed on top
    about: str = ""  # of several policies: which difference, or all values


def insight_of(state: CampaignState) -> Insight | None:
    """None until a step is complete."""
    collection = state.collection
    statistics = collection.statistics
    if statistics.states == 0 or not statistics.visits.any():
        return None
    task = collection.task
    observed = statistics.run_statistics(task.states)
    try:
        asked, on_policy, current, about = _in_doubt(state)
        errors = corrected_costs(asked, observed) / observed.visits.clip(min=1)
    except InputError:
        return None
    known = isfinite(on_policy) and isfinite(current) and current > 0
    keys = [key if isinstance(key, bytes) else b"" for key in collection.states.keys]
    states = _states(keys, observed.visits, task.policy)
    return Insight(
        states=states,
        states_seen=int((observed.visits.sum(axis=1) > 0).sum()),
        pairs=_pairs(keys, observed.visits, task.policy, errors),
        largest_share=max(max(*view.target, *view.behavior, 0.0) for view in states),
        on_policy_error=on_policy if known else None,
        saved=(on_policy / current) ** 2 - 1.0 if known else None,
        about=about,
    )


def _in_doubt(state: CampaignState) -> tuple[Task, float, float, str]:
    """What is least certain: as a task, its error on-policy, its error now, and in words.

    On-policy, as much is spent; the difference of two takes episodes of each, divided in the best
    way.
    """
    collection = state.collection
    task, statistics = collection.task, collection.statistics
    if state.definition.policies is None:
        on_policy = find_alternatives(task, statistics).on_policy
        return task, on_policy, collection.estimate().standard_error, ""
    ranking = ranking_of(collection)
    rival = closest(ranking)
    ends = [ranking.leader, ranking.names.index(rival)]
    alone = [Question.of_value(policy) for policy in task.policies[ends]]
    tasks = [replace(task, policy=each.policy, question=each) for each in alone]
    errors = np.array([find_alternatives(each, statistics).on_policy for each in tasks])
    on_policy = sqrt(best_split_variance(errors**2))
    error = ranking.differences[rival].standard_error
    if state.definition.question == "values":
        return task, on_policy, error, "all values"
    question = Difference(*task.policies[ends])
    asked = replace(task, policy=question.policy, question=question)
    return asked, on_policy, error, f"the lead of {ranking.names[ranking.leader]} over {rival}"


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
