"""Collection: a strategy asked for actions while states are still being discovered."""

import sys
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from revar.collection.episode import Episode, EpisodeLog
from revar.collection.plans import PlanBasis, PlanInForce, Planner
from revar.collection.spending import conditions_of, count_affordable, totals_of
from revar.collection.states import States
from revar.errors import InputError
from revar.estimators.estimator import Estimate, JointEstimate
from revar.estimators.smallest_error import mixed_estimate
from revar.model.amounts import COST, RETURN, STEPS, AmountStatistics, EpisodeTotals
from revar.model.arrays import FloatArray, IntArray
from revar.model.budget import Budget, as_budget
from revar.model.limits import Limits, check_limits
from revar.model.question import Combinations, Question, combinations_of
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset, Trajectory
from revar.model.validation import (
    check_count,
    check_discount,
    check_horizon,
    check_whole,
)
from revar.strategies.strategy import Plan, Strategy, check_limits_known, find_strategy

# From a state's key to the target policy's probabilities in it, or to those of each of several.
Policy = Callable[[Any], Any]


class Collection:
    """Asks a strategy for actions in states that appear one by one, and keeps what they led to.

    The rules are those of simulation; strategies see a task over the states met so far. In a state
    that the plan in force does not cover, the strategy acts as in a task of that state alone
    without data. Episode `number` draws from its own stream, child `number` of SeedSequence(seed),
    and plans are made from statistics alone: replaying stored episodes gives the collection that
    played them.

    Of several target policies, which have `names`, every state is told a row of each, and
    `combinations` says what is asked of their values.

    What steps cost, where the budget is of cost, and what they add to sums that are limited comes
    with every observed step: the `amounts`, by the names that they have there.
    """

    def __init__(
        self,
        strategy: str | Strategy,
        *,
        horizon: int,
        actions: int,
        discount: float = 1.0,
        budget: Budget | int | None = None,
        limits: Limits | None = None,
        seed: int | None = None,
        keep_episodes: bool = True,
        names: tuple[str, ...] = ("",),
        combinations: Combinations | None = None,
        dearest_step: float | None = None,
    ) -> None:
        self.strategy = find_strategy(strategy)
        if self.strategy.needs_model:
            raise InputError(
                f"strategy {self.strategy.id!r} needs the true model, which collection in an "
                f"environment does not have; simulate it instead"
            )
        self.horizon = check_horizon(horizon)
        self.actions = check_count(actions, "actions")
        self.discount = check_discount(discount)
        self._fading = self.discount ** np.arange(self.horizon, dtype=np.float64)  # [L]
        self.budget = as_budget(budget)
        self.limits = check_limits(limits)
        self.limits.check_actions(self.actions)
        check_limits_known(self.strategy, self.limits)
        # Without a seed one is drawn, and kept, so that the collection can be resumed.
        self.seed = new_seed() if seed is None else check_whole(seed, "seed")
        self.states = States(self.actions, names, limits=self.limits)
        self.combinations = combinations or combinations_of("values", len(names))
        self.statistics = VisitStatistics(0, self.actions)
        paid = self.budget is not None and self.budget.unit == "cost"
        names_of_sums = tuple(limit.name for limit in self.limits.sums)
        self.amounts = AmountStatistics(((COST,) if paid else ()) + names_of_sums, self.actions)
        self.finished = 0  # episodes finished here
        self.steps = 0  # observed here, those of open episodes too
        self.cost = 0.0  # of these steps
        self.dearest_step = dearest_step  # no step costs more, where that is known
        # Of finished episodes: the discounted return, and each amount.
        self.totals = EpisodeTotals((RETURN, STEPS, *self.amounts.names))
        self.prior_episodes = 0
        self.first_label: tuple[int, ...] | None = None  # of datasets, where it is known
        self.plan_in_force: PlanInForce | None = None  # None before the first step
        self.put_off: PlanBasis | None = None  # of a plan that is due and waited for
        self._planner = Planner(self.strategy)
        self._without_data: dict[tuple[bytes, Budget | None, int], FloatArray] = {}
        self.log = EpisodeLog(self.amounts.names) if keep_episodes else None

    # -- playing ---------------------------------------------------------------------------

    def start(self, number: int) -> Episode:
        """Episode `number` = 0, 1, 2, ... with its own random stream."""
        return Episode(self, number)

    # -- stored data -----------------------------------------------------------------------

    def replay(self, dataset: Dataset, policy: Policy, *, width: int = 1) -> None:
        """Play stored episodes of this collection again, `width` of them at a time in step.

        Afterwards the collection is as if it had just played them; the next number follows on.
        """
        episodes = list(dataset)
        for first in range(0, len(episodes), width):
            stored = episodes[first : first + width]
            started = [self.start(self.finished + i) for i in range(len(stored))]
            for step in range(max(len(trajectory) for trajectory in stored)):
                for episode, trajectory in zip(started, stored, strict=True):
                    if step < len(trajectory):
                        _replay_step(episode, trajectory, step, dataset, policy)
            for episode in started:
                episode.finish()

    def learn_from(self, dataset: Dataset, policy: Policy) -> None:
        """Learn from episodes collected earlier, under any behavior; they spend no budget."""
        if dataset.actions.max(initial=-1) >= self.actions:
            raise InputError(
                f"the earlier episodes have action {dataset.actions.max()}; there are "
                f"{self.actions} actions"
            )
        keys = [dataset.label_of(i) for i in range(dataset.states_seen)]
        self._learn(dataset.renumbered(self.number_states(keys)), policy)
        self.prior_episodes += len(dataset)
        self.plan_in_force = None

    def add(self, first: int, episodes: Dataset, policy: Policy) -> None:
        """Take in episodes that were played elsewhere under this collection's plans.

        They are number `first` and those that follow; states bear this collection's numbers.
        """
        self._learn(episodes, policy)
        self._count(len(episodes))
        self.steps += int(episodes.states.size)
        if COST in episodes.amounts:
            self.cost += float(episodes.amounts[COST].sum())
        self.totals.add(totals_of(episodes, self._fading, self.amounts.names))
        if self.log is not None:
            self.log.add_many(first, episodes)

    def spend(self, state: int, action: int, amounts: tuple[float, ...]) -> None:
        """Note what an observed step cost, and added to limited sums."""
        self.amounts.record(state, action, amounts)
        if self.amounts.names[0] == COST:
            self.cost += amounts[0]

    def number_states(self, keys: list[Hashable]) -> IntArray:
        """The numbers of these states; those that were never met get the next ones."""
        return np.array([self.states.number(key) for key in keys], dtype=np.int64)

    def _learn(self, episodes: Dataset, policy: Policy) -> None:
        """Ask the target policy about the states of episodes, and record their steps."""
        for number in np.unique(episodes.states).tolist():
            self.states.set_row(number, policy(self.states[number]))
        self.statistics.record_many(episodes)
        self.amounts.record_many(episodes)

    # -- reading ---------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The question over the states met so far; prior episodes add to the budget."""
        return self._task(self.states.policies)

    @property
    def spent(self) -> float:
        """What has been spent of the budget, in its unit; prior episodes spend nothing."""
        if self.budget is None or self.budget.by_episode:
            return float(self.finished)
        return float(self.steps) if self.budget.unit == "steps" else self.cost

    def affordable(self, under_way: int = 0) -> int:
        """How many more episodes may be begun, beside those `under_way`.

        So many fit into what is left, if every one is as long, and every step as dear, as can be.
        When only a part of one is left, one may still be begun, alone: so the budget is never
        exceeded by more than an episode. Where nobody knows how dear a step can be, the dearest
        episode so far stands for all, of no more episodes at a time than there were.
        """
        if self.budget is None:
            return sys.maxsize
        return count_affordable(
            self.budget, self.spent, self.totals, self.horizon, under_way, self.dearest_step
        )

    @property
    def plans_made(self) -> int:
        """How many plans have been made here."""
        return self._planner.made

    @property
    def cells(self) -> int:
        """How many combinations of policy, step, state and action a plan is made for."""
        return len(self.states.names) * self.horizon * len(self.states) * self.actions

    @property
    def plan(self) -> Plan | None:
        """The plan in force, None before the first step."""
        return None if self.plan_in_force is None else self.plan_in_force.plan

    @property
    def dataset(self) -> Dataset:
        """The finished episodes by number, with the states' keys as labels."""
        if self.log is None:
            raise InputError("this collection keeps statistics only (keep_episodes=False)")
        return replace(
            self.log.dataset(self.states.keys),
            action_count=self.actions,
            first_label=self.first_label,
        )

    def estimate(self, confidence: float = 0.95) -> Estimate:
        """The value of what is asked, from every step so far, by what errs least."""
        row = self.combinations.coefficients[0]
        return self.joint_estimate(confidence).combination(row)

    def joint_estimate(self, confidence: float = 0.95) -> JointEstimate:
        """The values of all target policies, likewise."""
        episodes = None if self.log is None else self.log.dataset(self.states.keys)
        estimate = mixed_estimate(self.task, self.statistics, episodes)
        return replace(estimate, confidence=confidence)

    # -- plans -----------------------------------------------------------------------------

    def plan_due(self, state: int | None = None, row: FloatArray | None = None) -> PlanInForce:
        """The plan that an episode would follow from now on. Nothing changes.

        With a `row` [J, A], as if it had been told of `state`, or of a state met for the first
        time.
        """
        if self.plan_in_force is not None and not self.plan_in_force.expired:
            return self.plan_in_force
        if self.put_off is not None:
            return self._planner.plan(*self.put_off)
        policies = self.states.policies_with(state, row)
        covered = self.states.with_rows
        if row is not None:
            covered |= {len(self.states) if state is None else state}
        if policies.shape[1] > 0:
            return self._planner.plan(self._task(policies), self.statistics, covered)
        # A plan for no state yet, of the kind that the strategy makes for a single one.
        equal = np.full((len(self.states.names), 1, self.actions), 1.0 / self.actions)
        alone = self._planner.plan(self._task(equal, alone=True), VisitStatistics(1, self.actions))
        plan = replace(alone.plan, scores=alone.plan.scores[:, :0])
        return PlanInForce(plan, self.strategy.id, covered)

    def put_plan_in_force(self) -> PlanInForce:
        """Follow the plan that is due from now on."""
        plan = self.plan_in_force
        if plan is None or plan.expired:
            plan = self.plan_in_force = self.plan_due()
            self.put_off = None
        return plan

    def put_plan_off(self) -> PlanInForce:
        """Follow the plan in force though another is due, which is made of what is known now."""
        if self.plan_in_force is None or not self.plan_in_force.expired:
            return self.put_plan_in_force()
        if self.put_off is None:
            self.put_off = PlanBasis(self.task, self.statistics.copy(), self.states.with_rows)
        return self.plan_in_force

    def make_plan_put_off(self, basis: PlanBasis) -> None:
        """Make a plan that is waited for, in any thread; it is found when it is put in force."""
        self._planner.plan(*basis)

    def scores_without_data(self, row: FloatArray) -> FloatArray:
        """Scores for a state with rows [J, A] that a plan does not cover, [1 or L, 1, A]."""
        key = row.tobytes(), self.budget, self.prior_episodes  # all that the task depends on
        scores = self._without_data.get(key)
        if scores is None:
            task = self._task(row[:, None], alone=True)
            scores = self._without_data[key] = self._planner.scores_without_data(task)
        return scores

    def keep(self, episode: Episode) -> None:
        """Count a finished episode, and keep its steps."""
        self._count(1)
        returns = float(self._fading[: episode.steps] @ np.array(episode.rewards))
        sums = map(sum, zip(*episode.amounts, strict=True))
        self.totals.add_one((returns, episode.steps, *sums))
        if self.log is not None:
            self.log.add(episode)

    def _count(self, episodes: int) -> None:
        self.finished += episodes
        if self.plan_in_force is not None:
            self.plan_in_force.episodes += episodes

    def _task(self, policies: FloatArray, *, alone: bool = False) -> Task:
        """The task over states that bear numbers, with what is known of costs and amounts.

        Of a state `alone` nothing is known, whatever was observed elsewhere.
        """
        known = AmountStatistics(self.amounts.names, self.actions) if alone else self.amounts
        cost, limits = conditions_of(self.limits, known, policies.shape[1])
        question = Question.about(policies, self.combinations)
        return Task(
            question.policy,
            self.horizon,
            self.discount,
            budget=self.budget if alone and cost is not None else self._budget_in_all(cost),
            cost=cost,
            limits=limits,
            question=question,
        )

    def _budget_in_all(self, cost: FloatArray | None) -> Budget | None:
        """The budget, and what the statistics hold beside what was spent of it: prior episodes."""
        budget, visits = self.budget, self.statistics.visits
        if budget is None or self.prior_episodes == 0:
            return budget
        if budget.by_episode:
            return budget.raised_by(self.prior_episodes)
        if cost is None:
            return budget.raised_by(int(visits.sum()) - self.steps)
        return budget.raised_by(max(0.0, float(np.sum(cost[: len(visits)] * visits)) - self.cost))


def new_seed() -> int:
    """A seed that was not used before, small enough for every file format."""
    return int(np.random.default_rng().integers(2**31))


def _replay_step(
    episode: Episode, trajectory: Trajectory, step: int, dataset: Dataset, policy: Policy
) -> None:
    key = dataset.label_of(int(trajectory.states[step]))
    action = int(trajectory.actions[step])
    episode.repeat(key, policy(key), action, float(trajectory.propensities[step]))
    successor = int(trajectory.successors[step])
    episode.observe(
        float(trajectory.rewards[step]),
        None if successor == ENDED else dataset.label_of(successor),
        tuple(float(trajectory.amounts[name][step]) for name in episode.amount_names),
    )
