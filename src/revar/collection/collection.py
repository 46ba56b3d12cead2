"""Collection: a strategy asked for actions while states are still being discovered."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from revar.collection.episode import Episode
from revar.collection.log import EpisodeLog
from revar.collection.states import States
from revar.errors import InputError
from revar.estimators.certainty_equivalence import CertaintyEquivalence
from revar.estimators.estimator import Estimate
from revar.model.arrays import FloatArray, IntArray
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset, Trajectory
from revar.model.validation import (
    checked_count,
    checked_discount,
    checked_episodes,
    checked_horizon,
    checked_whole,
)
from revar.simulation.standing import StandingPlan
from revar.strategies.selection import DRAWN, Selection
from revar.strategies.strategy import Plan, Strategy, find_strategy, make_plan

Policy = Callable[[Any], Any]  # from a state's key to the target policy's probabilities in it


class Collection:
    """Asks a strategy for actions in states that appear one by one, and keeps what they led to.

    The rules are those of the simulated engine; strategies see a task over the states met so far.
    In a state that the plan in force does not know, the strategy acts as in a task of that state
    alone without data. Episode `number` draws from its own stream, child `number` of
    SeedSequence(seed), and plans are made from statistics alone: stored episodes that are folded
    in give the collection that played them.
    """

    def __init__(
        self,
        strategy: str | Strategy,
        *,
        horizon: int,
        actions: int,
        discount: float = 1.0,
        episodes: int | None = None,
        seed: int | None = None,
        keep_episodes: bool = True,
    ) -> None:
        self.strategy = find_strategy(strategy)
        if self.strategy.needs_model:
            raise InputError(
                f"strategy {self.strategy.id!r} needs the true model, which collection in an "
                f"environment does not have; simulate it instead"
            )
        self.horizon = checked_horizon(horizon)
        self.actions = checked_count(actions, "actions")
        self.discount = checked_discount(discount)
        self.episodes = None if episodes is None else checked_episodes(episodes)
        # Without a seed one is drawn, and kept, so that the collection can be resumed.
        self.seed = new_seed() if seed is None else checked_whole(seed, "seed")
        self.states = States(self.actions)
        self.statistics = VisitStatistics(0, self.actions)
        self.finished = 0  # episodes finished here
        self.prior_episodes = 0
        self.first_label: tuple[int, ...] | None = None  # of datasets, where it is known
        self._standing: StandingPlan | None = None
        self._log = EpisodeLog() if keep_episodes else None
        self._rows_without_data: dict[bytes, FloatArray] = {}

    # -- playing ---------------------------------------------------------------------------

    def start(self, number: int) -> Episode:
        """Episode `number` = 0, 1, 2, ... with its own random stream."""
        return Episode(
            self,
            number,
            np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,))),
        )

    def know(self, state: Hashable, probabilities: Any) -> int:
        """The target policy's probabilities in a state, before it is met; its number."""
        number = self.states.number(state)
        self.states.tell(number, probabilities)
        return number

    # -- stored data -----------------------------------------------------------------------

    def fold(self, dataset: Dataset, policy: Policy, *, width: int = 1) -> None:
        """Repeat stored episodes of this collection, `width` of them at a time in step.

        Afterwards the collection is as if it had played them; the next number follows on.
        """
        episodes = list(dataset)
        for first in range(0, len(episodes), width):
            batch = episodes[first : first + width]
            opened = [self.start(self.finished + i) for i in range(len(batch))]
            for step in range(max(len(trajectory) for trajectory in batch)):
                for episode, trajectory in zip(opened, batch, strict=True):
                    if step < len(trajectory):
                        self._repeat(episode, trajectory, step, dataset, policy)
            for episode in opened:
                episode.finish()

    def absorb(self, dataset: Dataset, policy: Policy) -> None:
        """Learn from episodes collected elsewhere, under any behavior; they spend no budget."""
        if dataset.actions.max(initial=-1) >= self.actions:
            raise InputError(
                f"the earlier episodes have action {dataset.actions.max()}; there are "
                f"{self.actions} actions"
            )
        numbers = np.array(
            [self.states.number(_key(dataset, i)) for i in range(dataset.states_seen)],
            dtype=np.int64,
        )
        for i in np.unique(dataset.states).tolist():
            self.states.tell(int(numbers[i]), policy(_key(dataset, i)))
        following = np.append(numbers, ENDED)[dataset.successors]  # -1 picks the last: ENDED
        for first, end in zip(dataset.start[:-1], dataset.start[1:], strict=True):
            part = slice(first, end)
            self.statistics.record(
                Trajectory(
                    numbers[dataset.states[part]],
                    dataset.actions[part],
                    dataset.rewards[part],
                    following[part],
                    dataset.propensities[part],
                )
            )
        self.prior_episodes += len(dataset)
        self._standing = None

    def join(self, first: int, episodes: Dataset) -> None:
        """Count and keep episodes played elsewhere under this collection's plans (see `batches`).

        They are number `first` and on, and their states bear this collection's numbers.
        """
        self._count(len(episodes))
        if self._log is not None:
            self._log.add_many(first, episodes)

    def _repeat(
        self, episode: Episode, trajectory: Trajectory, step: int, dataset: Dataset, policy: Policy
    ) -> None:
        key = _key(dataset, int(trajectory.states[step]))
        action = int(trajectory.actions[step])
        episode.repeat(key, policy(key), action, float(trajectory.propensities[step]))
        successor = int(trajectory.successors[step])
        episode.observe(
            float(trajectory.rewards[step]),
            None if successor == ENDED else _key(dataset, successor),
        )

    # -- reading ---------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The question over the states met so far; prior episodes add to the budget."""
        budget = None if self.episodes is None else self.episodes + self.prior_episodes
        return Task(self.states.policy, self.horizon, self.discount, episodes=budget)

    @property
    def plan(self) -> Plan | None:
        """The plan in force, None before the first step."""
        return None if self._standing is None else self._standing.plan

    @property
    def dataset(self) -> Dataset:
        """The finished episodes by number, with the states' keys as labels."""
        if self._log is None:
            raise InputError("this collection keeps statistics only (keep_episodes=False)")
        return replace(
            self._log.dataset(self.states.keys),
            action_count=self.actions,
            first_label=self.first_label,
        )

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """The target policy's value by certainty equivalence, from every step so far."""
        estimate = CertaintyEquivalence().estimate(self.task, self.statistics)
        return replace(estimate, confidence=confidence)

    # -- for its episodes ------------------------------------------------------------------

    def plan_in_force(self) -> StandingPlan:
        """The plan that an episode follows from now on; made anew where it is time."""
        if self._standing is None or self._standing.due:
            if len(self.states) > 0:
                plan = make_plan(self.strategy, self.task, self.statistics)
            else:
                # A plan for no state yet, of the kind that the strategy makes for a single one.
                row = np.full(self.actions, 1.0 / self.actions)
                plan = self._plan_without_data(row)
                plan = replace(plan, scores=plan.scores[:, :0])
            self._standing = StandingPlan(plan, self.strategy.id, self.states.known)
        return self._standing

    @property
    def visits(self) -> IntArray:
        """How often each pair was taken, as choices need it: with a row for every state, [S, A]."""
        self.statistics.ensure_states(len(self.states))
        return self.statistics.visits

    def record(self, state: int, action: int, reward: float, successor: int, first: bool) -> None:
        """An episode made a step, its first one or a later one."""
        if first:
            self.statistics.start_episode(state)
        self.statistics.record_step(state, action, reward, successor)

    def cover(self, standing: StandingPlan, state: int) -> None:
        """See to it that a plan has scores for a state that it was not made for."""
        if standing.covered is not None and state not in standing.covered:
            standing.cover(state, self._scores_without_data(state, standing.plan.selection))

    def keep(self, episode: Episode) -> None:
        """An episode is finished."""
        self._count(1)
        if self._log is not None:
            self._log.add(episode)

    def _count(self, episodes: int) -> None:
        self.finished += episodes
        if self._standing is not None:
            self._standing.episodes += episodes

    def _scores_without_data(self, state: int, selection: Selection) -> FloatArray:
        """What the strategy plans for a task of this one state, of which nothing is known."""
        row = self.states.room[state]
        known = self._rows_without_data.get(row.tobytes())
        if known is None:
            known = self._plan_without_data(row).scores[:, 0]  # [1 or L, A]
            if selection in DRAWN:
                total = known.sum(axis=1, keepdims=True)
                known = np.where(total > 0, known / np.where(total > 0, total, 1.0), row)
            self._rows_without_data[row.tobytes()] = known
        return known

    def _plan_without_data(self, row: FloatArray) -> Plan:
        task = replace(self.task, policy=row[None])
        return make_plan(self.strategy, task, VisitStatistics(1, self.actions))


def new_seed() -> int:
    """A seed that was not used before, small enough for every file format."""
    return int(np.random.default_rng().integers(2**31))


def _key(dataset: Dataset, state: int) -> Hashable:
    return state if dataset.labels is None else dataset.labels[state]
