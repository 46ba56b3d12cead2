"""Detachment: a collection's plan followed in another place, one batch of episodes at a time."""

from collections.abc import Hashable
from typing import cast

import numpy as np

from revar.collection.batches import Batch, Order, SentPlan, packed
from revar.collection.collection import Collection
from revar.collection.episode import Episode
from revar.collection.log import EpisodeLog
from revar.model.arrays import IntArray, read_only
from revar.simulation.standing import StandingPlan
from revar.strategies.strategy import Plan, Strategy


class Detachment(Collection):
    """Plays under plans that are sent to it and makes none; what it learns it hands back.

    What an episode does follows from its order and the plan alone, never from batches that were
    played here before: whoever plays a batch plays the same one. States keep their own numbers
    here, which nobody else sees.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        horizon: int,
        actions: int,
        discount: float,
        episodes: int,
        seed: int,
        prior_episodes: int,
    ) -> None:
        super().__init__(
            strategy,
            horizon=horizon,
            actions=actions,
            discount=discount,
            episodes=episodes,
            seed=seed,
        )
        self.prior_episodes = prior_episodes
        self.version = -1  # of the plan that was sent last
        self._number: dict[int, int] = {}  # of a state elsewhere, by its number here
        self._plan_visits = np.zeros((0, actions), dtype=np.int64)  # [S here, A]
        self._visits = self._plan_visits
        self._order: Order | None = None

    def follow(self, sent: SentPlan) -> None:
        """The plan of orders to come."""
        here = self._numbers(sent.keys, 0)
        tables, planned, actions = sent.plan.scores.shape
        scores = np.zeros((tables, len(self.states), actions))
        scores[:, here[:planned]] = sent.plan.scores
        plan = Plan(scores, sent.plan.selection, sent.plan.lasts, sent.plan.visits_first)
        covered = set(here[sent.covered].tolist())
        self._standing = StandingPlan(plan, self.strategy.id, covered)
        self._plan_visits = np.zeros((len(self.states), actions), dtype=np.int64)
        self._plan_visits[here] = sent.visits
        self._planned_states = here
        self.version = sent.version

    def begin(self, order: Order) -> None:
        """Forget what was played before, and know what the order says."""
        here = np.concatenate(
            [self._planned_states, self._numbers(order.keys, len(self._planned_states))]
        )
        self._visits = np.zeros((len(self.states), self.actions), dtype=np.int64)
        self._visits[: len(self._plan_visits)] = self._plan_visits
        states, actions = np.divmod(order.pairs, self.actions)
        self._visits[here[states], actions] += order.visits
        if self._standing is not None and self._standing.follows:
            self._standing.taken[:] = 0
        self._log = EpisodeLog()
        self._order = order

    def batch(self, fault: str = "") -> Batch:
        """The episodes finished since `begin`."""
        assert self._order is not None
        return packed(
            self._order,
            self.dataset,
            self.actions,
            lambda state: self._number.get(state, -1),
            self.states.__getitem__,
            fault,
        )

    def plan_in_force(self) -> StandingPlan:
        """The plan that was sent, for as long as no other is."""
        assert self._standing is not None
        return self._standing

    @property
    def visits(self) -> IntArray:
        """Those the order told of, and those made since."""
        if len(self.states) > len(self._visits):
            more = np.zeros((2 * len(self.states), self.actions), dtype=np.int64)
            more[: len(self._visits)] = self._visits
            self._visits = more
        return cast(IntArray, read_only(self._visits))

    def record(self, state: int, action: int, reward: float, successor: int, first: bool) -> None:
        """Count the visit; what it tells is computed for the batch as a whole."""
        del reward, successor, first
        self._visits[state, action] += 1

    def keep(self, episode: Episode) -> None:
        """An episode is finished."""
        assert self._log is not None
        self._log.add(episode)

    def _numbers(self, keys: tuple[Hashable, ...], first: int) -> IntArray:
        """Numbers here of states that have the numbers from `first` on elsewhere."""
        here = np.array([self.states.number(key) for key in keys], dtype=np.int64)
        self._number.update(zip(here.tolist(), range(first, first + len(keys)), strict=True))
        return here
