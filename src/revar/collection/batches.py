"""Batches: episodes that workers play under a collection's plan. What is sent, what comes back.

A worker numbers the states that it was told of as the collection does. States that it meets
itself get the numbers that follow, for as long as the batch lasts; their keys go back with it.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from revar.collection.collection import Collection, Policy
from revar.collection.episode import EpisodeLog
from revar.collection.plans import PlanInForce
from revar.collection.states import States
from revar.model.amounts import AmountStatistics
from revar.model.arrays import IntArray
from revar.model.statistics import VisitStatistics
from revar.model.trajectory import Dataset
from revar.strategies.strategy import Plan


@dataclass(frozen=True, eq=False)
class SharedPlan:
    """A plan as workers need it; sent again only when there is another one."""

    version: int
    plan: Plan
    covered: frozenset[int]  # numbers of the states that it was made for
    keys: tuple[Hashable, ...]  # of all states then, by number
    visits: IntArray  # [S, A] then


@dataclass(frozen=True, eq=False)
class BatchRequest:
    """Play `count` episodes, number `first` and those that follow, under a shared plan."""

    number: int  # of the batch
    first: int
    count: int
    plan_version: int
    keys: tuple[Hashable, ...]  # of states met since the plan was made
    pairs: IntArray  # [pair] state * actions + action of pairs visited since then
    visits: IntArray  # [pair] how often


@dataclass(frozen=True, eq=False)
class Batch:
    """Finished episodes. The first `known` states are numbered as in the collection."""

    number: int
    first: int  # number of the first episode
    known: int
    keys: tuple[Hashable, ...]  # of the states that follow
    episodes: Dataset
    fault: str = ""  # what stopped it before its end


class Dispatcher:
    """Makes the requests of one collection, each from what is known when it is made."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._in_force: PlanInForce | None = None
        self._shared: SharedPlan | None = None

    def request(self, number: int, first: int, count: int) -> tuple[BatchRequest, SharedPlan]:
        """The request, and the plan it names."""
        shared = self.shared_plan()
        keys = self._collection.states.keys[len(shared.keys) :]
        visits = self._visits()
        visits[: len(shared.visits)] -= shared.visits
        pairs = np.flatnonzero(visits)
        since = visits.ravel()[pairs]
        return BatchRequest(number, first, count, shared.version, keys, pairs, since), shared

    def shared_plan(self) -> SharedPlan:
        """The plan in force, made anew when it is due."""
        collection = self._collection
        in_force = collection.put_plan_in_force()
        if self._shared is None or in_force is not self._in_force:
            self._in_force = in_force
            self._shared = SharedPlan(
                0 if self._shared is None else self._shared.version + 1,
                in_force.plan,
                in_force.covered or frozenset(),
                collection.states.keys,
                self._visits(),
            )
        return self._shared

    def _visits(self) -> IntArray:
        """A copy of all visits so far, with a row for every state."""
        known = self._collection.statistics.visits
        visits = np.zeros((len(self._collection.states), self._collection.actions), dtype=np.int64)
        visits[: len(known)] = known
        return visits


def prepare(collection: Collection, shared: SharedPlan, request: BatchRequest) -> None:
    """Make a worker's collection ready for a request, whatever it has played before."""
    states = collection.states
    if states.keys[: len(shared.keys)] != shared.keys:
        states = collection.states = States(
            collection.actions, states.names, shared.keys, states.limits
        )
    states.forget_after(len(shared.keys))
    for key in request.keys:
        states.number(key)
    # The plan is another's to renew.
    plan = replace(shared.plan, lasts=None)
    collection.plan_in_force = PlanInForce(plan, collection.strategy.id, shared.covered)
    visits = np.zeros((len(states), collection.actions), dtype=np.int64)
    visits[: len(shared.visits)] = shared.visits
    visits.ravel()[request.pairs] += request.visits
    collection.statistics = VisitStatistics.from_visits(visits)
    # What was spent is another's to count.
    collection.steps, collection.cost = 0, 0.0
    collection.amounts = AmountStatistics(collection.amounts.names, collection.actions)
    collection.log = EpisodeLog(collection.amounts.names)


def pack(request: BatchRequest, episodes: Dataset, known: int, fault: str = "") -> Batch:
    """The batch of labelled episodes; states from number `known` on are new to the collection.

    These are numbered anew, in the order they appear in, and leave out what does not appear.
    """
    met = np.stack([episodes.states, episodes.successors], axis=1).ravel()
    new, place = np.unique(met[met >= known], return_index=True)
    new = new[np.argsort(place)]
    numbers: IntArray = np.arange(1 + int(met.max(initial=0)))
    numbers[new] = known + np.arange(new.size)
    keys = tuple(episodes.label_of(state) for state in new.tolist())
    return Batch(request.number, request.first, known, keys, episodes.renumbered(numbers), fault)


def add_batch(collection: Collection, batch: Batch, policy: Policy) -> None:
    """Take the episodes of a batch into a collection, which learns from them.

    Batches added in one order give one collection, whoever played them and whenever.
    """
    if len(batch.episodes) == 0:
        return
    new = collection.number_states(list(batch.keys))
    numbers = np.concatenate([np.arange(batch.known), new])
    collection.add(batch.first, batch.episodes.renumbered(numbers), policy)
