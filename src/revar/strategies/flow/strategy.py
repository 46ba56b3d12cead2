"""The strategy "flow", and the oracle that follows the optimal flow of the true model."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from revar.compilation import compiled, with_functions
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.compiled_rule import (
    CompiledPlan,
    CompiledRule,
    EpisodePath,
    Revise,
    RuleParameters,
    TaskArrays,
    most_episodes,
    refresh_frequencies,
)
from revar.strategies.flow.plan import plan_flow, plan_safely, plan_within
from revar.strategies.flow.tuning import DEFAULT_TUNING, Tuning, plan_times, unpack_tuning
from revar.strategies.selection import Selection
from revar.strategies.strategy import Plan, Strategy, strategies
from revar.theory.flow import optimal_flow


@strategies.register("flow")
@dataclass(frozen=True)
class Flow(Strategy):
    """Follow the optimal flow of the estimated model for the episodes that are left.

    What is left of the budget counts, in its own unit, and plans keep to the limits of the task.
    Nothing needs to be known but the target policy, the horizon and the discount, and nothing
    needs to be tuned: `tuning` is there for studies. Takes only actions that the target policy
    takes. `known_transitions` says that the true transitions are known to strategy and estimator,
    so that only rewards are learned.
    """

    id: ClassVar[str] = "flow"
    estimators: ClassVar[tuple[str, ...]] = ("smallest-error", "certainty-equivalence")
    keeps_limits: ClassVar[bool] = True
    known_transitions: bool = False
    tuning: Tuning = DEFAULT_TUNING

    @property
    def needs_model(self) -> bool:
        """Only where the transitions are known to it."""
        return self.known_transitions

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The optimal behavior for what is left, as far as the statistics tell.

        The target policy itself is sampled until that pays.
        """
        observed = statistics.run_statistics(task.states)
        episode = int(observed.initial_count.sum())
        lasts = int(plan_times(episode, self.tuning)[-1]) - episode
        behavior = _target_policy(task)
        pays = False
        if episode > 0:
            if self.known_transitions:
                model = task.known_model("flow with known transitions")
                observed = observed.with_known(model.arrays.outcomes)
            draft = _rule_for(task)(
                TaskArrays.observed(task, observed),
                observed,
                self.known_transitions,
                self.tuning,
                episode,
                behavior,
            )
            pays = draft.pays
        if pays:
            return Plan(behavior, Selection.FOLLOW, lasts=lasts, visits_first=0)
        return Plan(_target_policy(task), Selection.SAMPLE, lasts=lasts, visits_first=0)

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule:  # noqa: ARG002
        """The same plans at the same times."""
        return CompiledRule(
            CompiledPlan.of(_target_policy(task), follows=True),
            RuleParameters.of(
                self.tuning,
                plan_times=plan_times(most_episodes(task), self.tuning),
                known_transitions=self.known_transitions,
            ),
            on_episode=_replan_by(_rule_for(task)),
        )


@strategies.register("flow-oracle")
@dataclass(frozen=True)
class FlowOracle(Strategy):
    """Knows the model and follows the behavior of `optimal_flow`, step by step.

    `known_transitions` says whether the estimator knows the transitions, so that only rewards
    have to be learned; `tolerance` is that of `optimal_flow`.
    """

    id: ClassVar[str] = "flow-oracle"
    keeps_limits: ClassVar[bool] = True
    known_transitions: bool = False
    tolerance: float = 1e-3

    @property
    def needs_model(self) -> bool:
        """It is an oracle."""
        return True

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:  # noqa: ARG002
        """The optimal behavior, for good."""
        flow = optimal_flow(
            task.known_model("the flow oracle"),
            task.question,
            known_transitions=self.known_transitions,
            tolerance=self.tolerance,
            cost=None if task.budget is None or task.budget.by_episode else task.visit_cost,
            limits=task.limits,
        )
        return Plan(flow.behavior, Selection.FOLLOW)


def _rule_for(task: Task) -> Callable[..., Any]:
    """What makes plans for such a task: no more is compiled than it needs."""
    if task.limits.has_sums:
        return plan_safely
    plain = task.budget is None or task.budget.by_episode
    return plan_flow if plain and task.limits.none else plan_within


def _target_policy(task: Task) -> FloatArray:
    """The target policy at every step, [L, S, A]."""
    return np.repeat(task.policy[None], task.horizon, axis=0)


make_flow_plan = plan_flow  # in a rule made by `_replan_by` this is what makes its plans


@compiled
def _replan(
    task: TaskArrays,
    statistics: RunStatistics,
    plan: CompiledPlan,
    parameters: RuleParameters,
    path: EpisodePath,  # noqa: ARG001 - as all rules are called
    steps: int,  # noqa: ARG001 - as all rules are called
    episode: int,
) -> None:
    known_transitions = parameters.known_transitions
    if not known_transitions:
        refresh_frequencies(statistics)
    tuning = unpack_tuning(parameters.constants)
    draft = make_flow_plan(task, statistics, known_transitions, tuning, episode, plan.scores)
    plan.selection[0] = Selection.FOLLOW
    if not draft.pays:
        plan.selection[0] = Selection.SAMPLE
        plan.scores[:] = task.policy
    plan.taken[:] = 0


@cache
def _replan_by(rule: Callable[..., Any]) -> Revise:
    """`_replan` with that rule to make plans."""
    return compiled(with_functions(_replan, make_flow_plan=rule))
