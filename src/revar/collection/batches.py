"""Batches: episodes played elsewhere under a collection's plan. What is sent, what comes back."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.collection.collection import Collection, Policy
from revar.model.arrays import IntArray
from revar.model.statistics import VisitStatistics
from revar.model.trajectory import ENDED, Dataset
from revar.simulation.standing import StandingPlan
from revar.strategies.strategy import Plan


@dataclass(frozen=True, eq=False)
class SentPlan:
    """A plan as players elsewhere need it; sent again only when there is another one."""

    version: int
    plan: Plan
    keys: tuple[Hashable, ...]  # of the states, by number
    covered: IntArray  # numbers of the states that it was made for
    visits: IntArray  # [S, A] when it was made


@dataclass(frozen=True, eq=False)
class Order:
    """Play `count` episodes, number `first` and those that follow, under that plan."""

    batch: int
    first: int
    count: int
    version: int  # of the plan
    keys: tuple[Hashable, ...]  # of states met since the plan was made; they number on
    pairs: IntArray  # state * actions + action of pairs visited since then, [pair]
    visits: IntArray  # and how often, [pair]


@dataclass(frozen=True, eq=False)
class Batch:
    """Finished episodes whose states are numbered among themselves, and their statistics.

    `known[i]` is the number that state i has in the collection; where it is -1 the next of `keys`
    says which state it is.
    """

    number: int
    first: int  # number of the first episode
    known: IntArray  # [state]
    keys: tuple[Hashable, ...]
    episodes: Dataset
    statistics: dict[str, Any]
    fault: str = ""  # what stopped it before its end


class Dispatch:
    """Makes the orders of one collection, each from what has been joined when it is made."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._standing: StandingPlan | None = None
        self.plan: SentPlan | None = None

    def order(self, batch: int, first: int, count: int) -> tuple[Order, SentPlan]:
        """The order, and the plan it names."""
        sent = self.current_plan()
        keys = self._collection.states.keys[len(sent.keys) :]
        visits = self._visits()
        visits[: len(sent.visits)] -= sent.visits
        pairs = np.flatnonzero(visits)
        order = Order(batch, first, count, sent.version, keys, pairs, visits.ravel()[pairs])
        return order, sent

    def current_plan(self) -> SentPlan:
        """The plan in force, made anew where it is time."""
        standing = self._collection.plan_in_force()
        if self.plan is None or standing is not self._standing:
            self._standing = standing
            self.plan = SentPlan(
                0 if self.plan is None else self.plan.version + 1,
                standing.plan,
                self._collection.states.keys,
                np.array(sorted(standing.covered or ()), dtype=np.int64),
                self._visits(),
            )
        return self.plan

    def _visits(self) -> IntArray:
        """A copy of all visits so far, with a row for every state."""
        known = self._collection.statistics.visits
        visits = np.zeros((len(self._collection.states), self._collection.actions), dtype=np.int64)
        visits[: len(known)] = known
        return visits


def packed(
    order: Order,
    episodes: Dataset,
    actions: int,
    number_of: Callable[[int], int],
    key_of: Callable[[int], Hashable],
    fault: str = "",
) -> Batch:
    """The batch of episodes that are numbered in another way, by functions of those numbers."""
    met = np.stack([episodes.states, episodes.successors], axis=1).ravel()
    states, place = np.unique(met[met != ENDED], return_index=True)
    states = states[np.argsort(place)]  # in the order they appeared in
    new_number = np.full(1 + int(states.max(initial=0)), ENDED, dtype=np.int64)
    new_number[states] = np.arange(states.size)
    renumbered = np.append(new_number, ENDED)
    within = Dataset(
        episodes.start,
        renumbered[episodes.states],
        episodes.actions,
        episodes.rewards,
        renumbered[episodes.successors],
        episodes.propensities,
    )
    known = np.array([number_of(state) for state in states.tolist()], dtype=np.int64)
    return Batch(
        order.batch,
        order.first,
        known,
        tuple(key_of(state) for state in states[known < 0].tolist()),
        within,
        statistics_of(within, states.size, actions).arrays(),
        fault,
    )


def join(collection: Collection, batch: Batch, policy: Policy) -> None:
    """Take the episodes of a batch into a collection, which learns from them.

    Batches joined in one order give one collection, whoever played them and whenever.
    """
    if len(batch.episodes) == 0:
        return
    states, rest = collection.states, iter(batch.keys)
    numbers = np.array(
        [states.number(next(rest)) if number < 0 else number for number in batch.known.tolist()],
        dtype=np.int64,
    )
    for state in np.unique(batch.episodes.states).tolist():
        number = int(numbers[state])
        states.tell(number, policy(states[number]))
    arrays = renumbered_arrays(batch.statistics, numbers, len(states))
    collection.statistics.absorb(VisitStatistics.from_arrays(arrays))
    collection.join(
        batch.first,
        Dataset(
            batch.episodes.start,
            numbers[batch.episodes.states],
            batch.episodes.actions,
            batch.episodes.rewards,
            np.append(numbers, ENDED)[batch.episodes.successors],
            batch.episodes.propensities,
        ),
    )


def stored_batch(order: Order, episodes: Dataset, actions: int) -> Batch:
    """Stored episodes in the place of those that the order asks for."""
    labels = episodes.labels

    def key_of(state: int) -> Hashable:
        return state if labels is None else labels[state]

    return packed(order, episodes, actions, lambda _: -1, key_of)


def statistics_of(episodes: Dataset, states: int, actions: int) -> VisitStatistics:
    """What the episodes tell, computed at once instead of step by step."""
    pair = episodes.states * actions + episodes.actions
    outcome, slot = np.unique(pair * (states + 1) + episodes.successors + 1, return_inverse=True)
    visits = np.bincount(pair, minlength=states * actions)
    mean = np.bincount(pair, episodes.rewards, states * actions) / visits.clip(min=1)
    apart = episodes.rewards - mean[pair]
    count = np.bincount(slot, minlength=outcome.size)
    shape = (1, states, actions)
    return VisitStatistics.from_arrays(
        {
            "visits": visits.reshape(shape),
            "mean": mean.reshape(shape),
            **{
                name: np.bincount(pair, apart**power, states * actions).reshape(shape)
                for name, power in (("squares", 2), ("cubes", 3), ("quartics", 4))
            },
            "initial": np.bincount(episodes.states[episodes.start[:-1]], minlength=states)[None],
            "pair": outcome // (states + 1),
            "successor": outcome % (states + 1) - 1,
            "count": count[None],
            "outcome_mean": (np.bincount(slot, episodes.rewards) / count)[None],
        }
    )


def renumbered_arrays(arrays: dict[str, Any], numbers: IntArray, states: int) -> dict[str, Any]:
    """Statistics' arrays where state i becomes `numbers[i]` of `states`."""
    actions = arrays["visits"].shape[-1]
    placed = dict(arrays)
    for name in ("visits", "mean", "squares", "cubes", "quartics", "initial"):
        values = arrays[name]
        placed[name] = np.zeros((1, states, *values.shape[2:]), dtype=values.dtype)
        placed[name][:, numbers] = values
    placed["pair"] = numbers[arrays["pair"] // actions] * actions + arrays["pair"] % actions
    placed["successor"] = np.append(numbers, ENDED)[arrays["successor"]]
    return placed
