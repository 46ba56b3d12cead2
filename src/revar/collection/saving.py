"""A collection in the middle of its work as plain records and arrays, and back again."""

from math import isnan
from typing import Any

import msgspec
import numpy as np

from revar.collection.collection import Collection
from revar.collection.episode import Episode
from revar.model.statistics import VisitStatistics
from revar.simulation.standing import StandingPlan
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """An array of numbers."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: Any) -> "Packed":
        """The array, copied."""
        return cls(array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())

    def array(self) -> Any:
        """The array, copied."""
        return np.frombuffer(self.data, dtype=np.dtype(self.dtype)).reshape(self.shape).copy()


class SavedPlan(msgspec.Struct, frozen=True):
    """A plan that is being followed."""

    planned: Packed  # the scores it was made with
    selection: int
    lasts: int | None
    visits_first: int
    scores: Packed  # and with those of states that appeared later
    taken: Packed
    covered: list[int] | None
    episodes: int


class SavedEpisode(msgspec.Struct, frozen=True):
    """An open episode. `plan` counts among the saved plans, -1 where it follows none yet."""

    number: int
    plan: int
    state: int | None
    action: int | None
    propensity: float | None
    draws: int
    over: bool
    terminated: bool
    finished: bool
    last_successor: int
    states: list[int]
    actions: list[int]
    rewards: list[float]
    propensities: list[float | None]


class SavedCollection(msgspec.Struct, frozen=True):
    """All that a collection knows, but for its finished episodes."""

    keys: list[Any]
    policy: Packed
    known: list[int]
    statistics: dict[str, Packed]
    budget: int | None
    finished: int
    prior_episodes: int
    plans: list[SavedPlan]
    plan: int
    episodes: list[SavedEpisode]


def saved(collection: Collection, episodes: list[Episode]) -> SavedCollection:
    """The collection and its open episodes."""
    plans: list[StandingPlan] = []

    def place(plan: StandingPlan | None) -> int:
        if plan is None:
            return -1
        if all(plan is not other for other in plans):
            plans.append(plan)
        return next(i for i, other in enumerate(plans) if other is plan)

    current = place(collection._standing)
    records = [_saved_episode(episode, place(episode._standing)) for episode in episodes]
    return SavedCollection(
        keys=list(collection.states.keys),
        policy=Packed.of(collection.states.policy),
        known=sorted(collection.states.known),
        statistics={k: Packed.of(v) for k, v in collection.statistics.arrays().items()},
        budget=collection.episodes,
        finished=collection.finished,
        prior_episodes=collection.prior_episodes,
        plans=[_saved_plan(plan) for plan in plans],
        plan=current,
        episodes=records,
    )


def restore(collection: Collection, record: SavedCollection) -> list[Episode]:
    """Bring an empty collection of the same kind to where the saved one was; its open episodes."""
    policy = record.policy.array()
    for key in record.keys:
        collection.states.number(key)
    for number in record.known:
        collection.states.tell(number, tuple(policy[number].tolist()))
    collection.statistics = VisitStatistics.from_arrays(
        {name: packed.array() for name, packed in record.statistics.items()}
    )
    collection.episodes = record.budget
    collection.finished = record.finished
    collection.prior_episodes = record.prior_episodes
    plans = [_restored_plan(plan, collection.strategy.id) for plan in record.plans]
    collection._standing = plans[record.plan] if record.plan >= 0 else None
    return [_restored_episode(collection, episode, plans) for episode in record.episodes]


def _saved_plan(standing: StandingPlan) -> SavedPlan:
    plan = standing.plan
    return SavedPlan(
        planned=Packed.of(plan.scores),
        selection=int(plan.selection),
        lasts=plan.lasts,
        visits_first=plan.visits_first,
        scores=Packed.of(standing.scores),
        taken=Packed.of(standing.taken),
        covered=None if standing.covered is None else sorted(standing.covered),
        episodes=standing.episodes,
    )


def _restored_plan(record: SavedPlan, strategy_id: str) -> StandingPlan:
    plan = Plan(
        record.planned.array(), Selection(record.selection), record.lasts, record.visits_first
    )
    covered = None if record.covered is None else set(record.covered)
    standing = StandingPlan(plan, strategy_id, covered)
    if record.scores.shape != record.planned.shape or record.scores.data != record.planned.data:
        standing.scores = record.scores.array()
    standing.taken = record.taken.array()
    standing.episodes = record.episodes
    return standing


def _saved_episode(episode: Episode, plan: int) -> SavedEpisode:
    return SavedEpisode(
        number=episode.number,
        plan=plan,
        state=episode._state,
        action=episode._action,
        propensity=_finite(episode._propensity),
        draws=episode.draws,
        over=episode.over,
        terminated=episode.terminated,
        finished=episode.finished,
        last_successor=episode.last_successor,
        states=episode.states,
        actions=episode.actions,
        rewards=episode.rewards,
        propensities=[_finite(propensity) for propensity in episode.propensities],
    )


def _restored_episode(
    collection: Collection, record: SavedEpisode, plans: list[StandingPlan]
) -> Episode:
    episode = collection.start(record.number)
    episode._standing = plans[record.plan] if record.plan >= 0 else None
    episode._state, episode._action = record.state, record.action
    episode._propensity = _number(record.propensity)
    episode.skip_draws(record.draws)
    episode.over, episode.terminated = record.over, record.terminated
    episode.finished = record.finished
    episode.last_successor = record.last_successor
    episode.states, episode.actions = list(record.states), list(record.actions)
    episode.rewards = list(record.rewards)
    episode.propensities = [_number(propensity) for propensity in record.propensities]
    return episode


def _finite(number: float) -> float | None:
    return None if isnan(number) else number


def _number(number: float | None) -> float:
    return float("nan") if number is None else number
