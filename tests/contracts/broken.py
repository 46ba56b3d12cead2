"""Strategies, estimators and problems that each break one contract."""

import itertools
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from revar.errors import InputError
from revar.estimators import Estimate, Estimator, MonteCarlo
from revar.model.mdp import TabularMDP
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset
from revar.problems import Problem
from revar.strategies import OnPolicy, Plan, ReducedVariance, Selection, Strategy, Uniform
from revar.strategies.compiled_rule import CompiledPlan, CompiledRule
from revar.testing.problems import crossroads
from revar.theory.proportions import sampling_proportions


class Thawed(OnPolicy):
    """Anything can be stored on it."""

    __setattr__ = object.__setattr__


class NoDataclass(Strategy):
    """Parameters nobody can list."""

    id: ClassVar[str] = "no-dataclass"

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        return Plan(task.policy[None], Selection.SAMPLE)


@dataclass(frozen=True)
class Nameless(OnPolicy):
    id: ClassVar[str] = ""


@dataclass(frozen=True)
class Unequal(OnPolicy):
    """Equal only to itself."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass(frozen=True)
class Unhashed(OnPolicy):
    __hash__ = object.__hash__


@dataclass(frozen=True)
class Unreadable(OnPolicy):
    def __repr__(self) -> str:
        return "<a strategy>"


@dataclass(frozen=True)
class Forgetful(OnPolicy):
    """Leaves a parameter out of its repr."""

    scale: float = field(default=1.0, repr=False)


def forgetful() -> Strategy:
    return Forgetful(2.0)


@dataclass(frozen=True)
class OutOfShape(OnPolicy):
    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        return Plan(np.ones((1, task.states, task.actions + 1)), Selection.TRACK)


@dataclass(frozen=True)
class Improbable(OnPolicy):
    """Its probabilities do not sum to 1 once it has seen something."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        share = 1.0 if statistics.episodes == 0 else 0.9
        return Plan(share * task.policy[None], Selection.SAMPLE, lasts=1000)


@dataclass(frozen=True)
class Stray(OnPolicy):
    """Takes every action, whatever the target policy does."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        return Plan(np.full((1, task.states, task.actions), 1.0 / task.actions), Selection.SAMPLE)


@dataclass(frozen=True)
class SingleMinded(OnPolicy):
    """Refuses to plan for several policies."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        if len(task.policies) > 1:
            raise InputError("one policy at a time")
        return super().plan(task, statistics)


@dataclass(frozen=True)
class Stacked(OnPolicy):
    """A table for each policy, and nothing says that they are taken in turn."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        return Plan(task.policies, Selection.SAMPLE)


@dataclass(frozen=True)
class StrayAmongSeveral(OnPolicy):
    """Takes every action as soon as there are two policies."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        if len(task.policies) == 1:
            return super().plan(task, statistics)
        return Plan(np.full((1, task.states, task.actions), 1.0 / task.actions), Selection.SAMPLE)


@dataclass(frozen=True)
class Restless(OnPolicy):
    """Draws from a generator of its own."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        scores = np.random.default_rng().random((1, task.states, task.actions))
        return Plan(scores, Selection.TRACK, lasts=1)


CALLS = itertools.count()


@dataclass(frozen=True)
class Counting(OnPolicy):
    """Every plan depends on how many were made before it."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        scores = np.random.default_rng(next(CALLS)).random((1, task.states, task.actions))
        return Plan(scores, Selection.TRACK, lasts=1)


@dataclass(frozen=True)
class TwoFaced(ReducedVariance):
    """Its compiled rule has another confidence scale than its plan."""

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:
        return ReducedVariance(confidence_scale=0.5).compiled_rule(task, tree=tree)


@dataclass(frozen=True)
class Unlimited(Uniform):
    """Says that it keeps limits, and knows of none."""

    keeps_limits: ClassVar[bool] = True


@dataclass(frozen=True)
class InHaste(OnPolicy):
    """Takes every action three times first, whatever its share may be."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        scores = np.repeat(task.policy[None], task.horizon, axis=0)
        return Plan(scores, Selection.FOLLOW, visits_first=3)


@dataclass(frozen=True)
class TwoFacedUnderLimits(OnPolicy):
    """Its compiled rule takes any action of the target policy, as soon as there are limits."""

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule | None:
        if task.limits.none:
            return super().compiled_rule(task, tree=tree)
        plan = Uniform().plan(task, VisitStatistics(task.states, task.actions))
        return CompiledRule(CompiledPlan.of(plan.scores))


@dataclass(frozen=True)
class Pickling(OnPolicy):
    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        pickle.dumps(self)
        return super().plan(task, statistics)


@dataclass(frozen=True)
class Writing(OnPolicy):
    """Counts a visit that nobody made."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        statistics.record_step(0, 0, 0.0, ENDED)
        return super().plan(task, statistics)


@dataclass(frozen=True)
class Peeking(OnPolicy):
    """Uses the model where it finds it, without saying so."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        if task.model is None:
            return super().plan(task, statistics)
        return Plan(sampling_proportions(task.model, task.policy).behavior[None], Selection.SAMPLE)


@dataclass(frozen=True)
class Demanding(OnPolicy):
    """Cannot do without the model, and does not say so."""

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        task.known_model("a demanding strategy")
        return super().plan(task, statistics)


@dataclass(frozen=True)
class Pretender(OnPolicy):
    """Says that it needs the model, and does not."""

    @property
    def needs_model(self) -> bool:
        return True


@dataclass(frozen=True)
class Overconfident(ReducedVariance):
    """Its data has no propensities, and it says that importance sampling takes it."""

    estimators: ClassVar[tuple[str, ...]] = ("certainty-equivalence", "importance-sampling")


@dataclass(frozen=True)
class Misspelt(OnPolicy):
    estimators: ClassVar[tuple[str, ...]] = ("certainty-equivalents",)


@dataclass(frozen=True)
class Constant(Estimator):
    """Knows the answer in advance, and is wrong."""

    id: ClassVar[str] = "constant"

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        return Estimate(1000.0, 1.0, len(data) if isinstance(data, Dataset) else 0)


@dataclass(frozen=True)
class Endless(MonteCarlo):
    """Never sure of anything."""

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        return Estimate(super().estimate(task, data).value, float("inf"), len(data))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Jittering(MonteCarlo):
    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        found = super().estimate(task, data)
        noise = np.random.default_rng().normal(scale=1e-6)
        return Estimate(found.value + noise, found.standard_error, found.episodes)


@dataclass(frozen=True)
class Recent(MonteCarlo):
    """Looks at the first half of the episodes alone."""

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        assert isinstance(data, Dataset)
        found = super().estimate(task, data)
        half = super().estimate(task, data.head(max(1, len(data) // 2)))
        return Estimate(half.value, half.standard_error, found.episodes)


@dataclass(frozen=True)
class Credulous(MonteCarlo):
    """Takes any data: the mean return, whatever it is the return of."""

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        assert isinstance(data, Dataset)
        returns = np.bincount(
            np.repeat(np.arange(len(data)), np.diff(data.start)),
            task.discount**data.step_in_episode * data.rewards,
        )
        spread = float(returns.std(ddof=1)) if len(data) > 1 else float("inf")
        return Estimate(float(returns.mean()), spread / len(data) ** 0.5, len(data))


@dataclass(frozen=True)
class Hasty(MonteCarlo):
    """Says that it needs five episodes, and takes four."""

    least_episodes: ClassVar[int] = 5


@dataclass(frozen=True)
class Undecided(MonteCarlo):
    """Says that statistics are enough for it."""

    needs_episodes: ClassVar[bool] = False


def not_a_problem() -> Any:
    return crossroads().mdp


def different_each_time() -> Problem:
    problem = crossroads()
    policy = np.random.default_rng().permuted(problem.policy, axis=1)
    return Problem("different", problem.mdp, policy)


def nameless() -> Problem:
    problem = crossroads()
    return Problem("", problem.mdp, problem.policy)


def incomplete_policy() -> Problem:
    problem = crossroads()
    return Problem("incomplete", problem.mdp, 0.9 * problem.policy)


def overflowing() -> Problem:
    """Rewards of either sign too large to be added."""
    mdp = TabularMDP(np.zeros((1, 1, 1)), 0.0, 1e308, [1.0], 1)
    return Problem("overflowing", mdp, np.ones((1, 1)))


BROKEN_STRATEGIES: dict[str, list[Callable[[], Strategy]]] = {
    "check_is_a_frozen_dataclass": [Thawed, NoDataclass],
    "check_has_an_id": [Nameless],
    "check_equal_parameters_make_equals": [Unequal, Unhashed],
    "check_repr_round_trip": [Unreadable, forgetful],
    "check_plans_are_valid": [OutOfShape, Improbable],
    "check_asks_only_for_what_counts": [Stray],
    "check_several_policies": [SingleMinded, Stacked, StrayAmongSeveral],
    "check_same_seed_same_result": [Restless],
    "check_threads_do_not_matter": [Restless, Counting],
    "check_runs_are_independent": [Counting],
    "check_compiled_agrees_with_plain": [TwoFaced],
    "check_plans_keep_caps": [Unlimited, InHaste],
    "check_the_first_plan_is_the_target_policy": [Unlimited, InHaste],
    "check_limits_compiled_and_plain": [TwoFacedUnderLimits],
    "check_nothing_is_pickled": [Pickling],
    "check_planning_has_no_memory": [Counting, Writing],
    "check_only_oracles_see_the_model": [Peeking, Demanding, Pretender],
    "check_its_estimators_take_its_data": [Overconfident, Misspelt],
}

BROKEN_ESTIMATORS: dict[str, list[Callable[[], Estimator]]] = {
    "check_good_data_gives_the_value": [Constant, Endless],
    "check_estimation_is_deterministic": [Jittering],
    "check_order_does_not_matter": [Recent],
    "check_bad_data_is_refused": [Credulous],
    "check_kind_of_data": [Credulous, Undecided],
    "check_least_episodes": [Hasty],
    "check_simulation_uses_it": [Jittering],
}

BROKEN_PROBLEMS: dict[str, list[Callable[[], Any]]] = {
    "check_builds_with_defaults": [not_a_problem, nameless],
    "check_builds_the_same_twice": [different_each_time],
    "check_target_policy": [incomplete_policy],
    "check_simulates": [overflowing],
}
