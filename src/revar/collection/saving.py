"""A collection in the middle of its work as plain records and arrays, and back again."""

from typing import Any

import msgspec
import numpy as np

from revar.collection.collection import Collection
from revar.collection.episode import Episode
from revar.collection.plans import PlanInForce
from revar.model.amounts import AmountStatistics
from revar.model.budget import Budget
from revar.model.statistics import VisitStatistics
from revar.model.trajectory import nan_for_none, none_for_nan
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan

# Fields of an episode that are saved as they are.
PLAIN = (
    "number",
    "state",
    "action",
    "draws",
    "over",
    "terminated",
    "finished",
    "last_successor",
    "states",
    "actions",
    "rewards",
    "amounts",
)


class PackedArray(msgspec.Struct, frozen=True, array_like=True):
    """An array of numbers."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: Any) -> "PackedArray":
        """The array, copied."""
        return cls(array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())

    def array(self) -> Any:
        """The array, copied."""
        return np.frombuffer(self.data, dtype=np.dtype(self.dtype)).reshape(self.shape).copy()


class SavedPlan(msgspec.Struct, frozen=True):
    """See `PlanInForce`. `taken` has a table, a state and the times each action was taken."""

    scores: PackedArray
    selection: int
    lasts: int | None
    visits_first: int
    alternates: bool
    covered: list[int] | None
    episodes: int
    taken: list[tuple[int, int, list[int]]]


class SavedEpisode(msgspec.Struct, frozen=True):
    """See `Episode`. `plan` counts among the saved plans, -1 where it follows none yet."""

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
    amounts: list[tuple[float, ...]]
    propensities: list[float | None]


class SavedCollection(msgspec.Struct, frozen=True):
    """All that a collection knows, but for its finished episodes."""

    keys: list[Any]
    policies: PackedArray
    told: list[int]
    statistics: dict[str, PackedArray]
    amounts: dict[str, PackedArray]
    totals: tuple[PackedArray, PackedArray, PackedArray]  # of `EpisodeTotals`
    budget: Budget | None
    finished: int
    steps: int
    cost: float
    prior_episodes: int
    plans: list[SavedPlan]
    plan: int
    episodes: list[SavedEpisode]


def save(collection: Collection, episodes: list[Episode]) -> SavedCollection:
    """The collection and its open episodes."""
    plans: list[PlanInForce] = []

    def place(plan: PlanInForce | None) -> int:
        if plan is None:
            return -1
        if all(plan is not other for other in plans):
            plans.append(plan)
        return next(i for i, other in enumerate(plans) if other is plan)

    current = place(collection.plan_in_force)
    records = [_save_episode(episode, place(episode.plan)) for episode in episodes]
    return SavedCollection(
        keys=list(collection.states.keys),
        policies=PackedArray.of(collection.states.policies),
        told=sorted(collection.states.with_rows),
        statistics={k: PackedArray.of(v) for k, v in collection.statistics.arrays().items()},
        amounts={k: PackedArray.of(v) for k, v in collection.amounts.arrays().items()},
        totals=(
            PackedArray.of(collection.totals.sums),
            PackedArray.of(collection.totals.squares),
            PackedArray.of(collection.totals.largest),
        ),
        budget=collection.budget,
        finished=collection.finished,
        steps=collection.steps,
        cost=collection.cost,
        prior_episodes=collection.prior_episodes,
        plans=[_save_plan(plan) for plan in plans],
        plan=current,
        episodes=records,
    )


def restore(collection: Collection, record: SavedCollection) -> list[Episode]:
    """Bring an empty collection of the same kind to where the saved one was; its open episodes."""
    policies = record.policies.array()
    for key in record.keys:
        collection.states.number(key)
    for number in record.told:
        rows = policies[:, number].tolist()
        collection.states.set_row(number, rows[0] if len(rows) == 1 else rows)
    collection.statistics = VisitStatistics.from_arrays(
        {name: packed.array() for name, packed in record.statistics.items()}
    )
    collection.amounts = AmountStatistics.from_arrays(
        collection.amounts.names, {name: packed.array() for name, packed in record.amounts.items()}
    )
    totals = collection.totals
    totals.sums, totals.squares, totals.largest = (packed.array() for packed in record.totals)
    totals.episodes = record.finished
    collection.budget = record.budget
    collection.finished = record.finished
    collection.steps, collection.cost = record.steps, record.cost
    collection.prior_episodes = record.prior_episodes
    plans = [_restore_plan(plan, collection.strategy.id) for plan in record.plans]
    collection.plan_in_force = plans[record.plan] if record.plan >= 0 else None
    return [_restore_episode(collection, episode, plans) for episode in record.episodes]


def _save_plan(in_force: PlanInForce) -> SavedPlan:
    plan = in_force.plan
    return SavedPlan(
        scores=PackedArray.of(plan.scores),
        selection=int(plan.selection),
        lasts=plan.lasts,
        visits_first=plan.visits_first,
        alternates=plan.alternates,
        covered=None if in_force.covered is None else sorted(in_force.covered),
        episodes=in_force.episodes,
        taken=[
            (table, state, taken.ravel().tolist())
            for (table, state), taken in sorted(in_force.taken.items())
        ],
    )


def _restore_plan(record: SavedPlan, strategy_id: str) -> PlanInForce:
    plan = Plan(
        record.scores.array(),
        Selection(record.selection),
        record.lasts,
        record.visits_first,
        record.alternates,
    )
    covered = None if record.covered is None else frozenset(record.covered)
    in_force = PlanInForce(plan, strategy_id, covered)
    in_force.episodes = record.episodes
    in_force.taken = {
        (table, state): np.array(taken, dtype=np.int64).reshape(1, 1, -1)
        for table, state, taken in record.taken
    }
    return in_force


def _save_episode(episode: Episode, plan: int) -> SavedEpisode:
    return SavedEpisode(
        plan=plan,
        propensity=none_for_nan(episode.propensity),
        propensities=[none_for_nan(propensity) for propensity in episode.propensities],
        **{name: getattr(episode, name) for name in PLAIN},
    )


def _restore_episode(
    collection: Collection, record: SavedEpisode, plans: list[PlanInForce]
) -> Episode:
    episode = collection.start(record.number)
    episode.plan = plans[record.plan] if record.plan >= 0 else None
    episode.skip_draws(record.draws)
    for name in PLAIN:
        setattr(episode, name, getattr(record, name))
    episode.propensity = nan_for_none(record.propensity)
    episode.propensities = [nan_for_none(propensity) for propensity in record.propensities]
    return episode
