"""Sampled behaviors computed from a model: the base class of BPG, ODI and DOpt, and the last two.

Their papers compute the behavior from earlier data. Here it comes from the true model, or from the
run's own data: the target policy is followed up to a first plan, and plans are made anew at numbers
of episodes that grow geometrically.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes
from revar.model.statistics import VisitStatistics
from revar.model.structure import expand
from revar.model.task import Task
from revar.model.validation import check_count
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.estimated_model import estimate_model
from revar.strategies.selection import Selection
from revar.strategies.strategy import FOR_SAMPLED, Plan, Strategy, next_plan_after, strategies
from revar.theory.importance import (
    OutcomeModel,
    doubly_robust_moments,
    outcome_model,
    per_decision_moments,
)

# A plan is made anew when the episodes have grown by this factor.
GROWTH = 1.5

# From (task, model, steps of gradient descent) to scores [1 or L, S, A] of the actions.
Score = Callable[[TaskArrays, OutcomeModel, int], FloatArray]


class Design(NamedTuple):
    """How a behavior follows from a model."""

    score: Score
    stationary: bool  # one table of scores for all steps


class ModelBased(Strategy):
    """A behavior that `design` makes of a model, sampled.

    With `known_model` it is the true model; else the one that the run's own statistics suggest,
    first after `first_plan` episodes of the target policy. `floor` is the target policy's share in
    the behavior.
    """

    estimators: ClassVar[tuple[str, ...]] = FOR_SAMPLED
    design: ClassVar[Design]
    known_model: bool
    floor: float
    first_plan: int
    steps: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.floor <= 1.0:
            raise InputError(f"floor is {self.floor}; it must lie above 0 and at most at 1")
        check_count(self.first_plan, "first_plan")

    @property
    def needs_model(self) -> bool:
        """Only the oracle's version."""
        return self.known_model

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The behavior that follows from the model, or from what has been seen of it."""
        behavior = self._target(task)
        if self.known_model:
            mdp = task.known_model(f"{self.id} with a known model")
            arrays = TaskArrays.of(task, mdp.arrays.initial)
            all_visited = np.ones(task.policy.shape, dtype=np.int64)
            self._fill(behavior, arrays, outcome_model(mdp), all_visited)
            return Plan(behavior, Selection.SAMPLE)
        observed = statistics.run_statistics(task.states)
        episode = int(observed.initial_count.sum())
        if episode >= self.first_plan:
            arrays = TaskArrays.observed(task, observed)
            self._fill(behavior, arrays, estimate_model(observed), observed.visits)
        lasts = next_plan_after(episode, self.first_plan, GROWTH) - episode
        return Plan(behavior, Selection.SAMPLE, lasts=lasts)

    def _fill(
        self, behavior: FloatArray, task: TaskArrays, model: OutcomeModel, visits: IntArray
    ) -> None:
        scores = self.design.score(task, model, self.steps)
        _mix_with_target(task.policy, visits, scores, self.floor, behavior)

    def _target(self, task: Task) -> FloatArray:
        """The target policy, once or for every step, [1 or L, S, A]."""
        return np.repeat(task.policy[None], 1 if self.design.stationary else task.horizon, axis=0)


@compiled
def policy_layers(task: TaskArrays, outcomes: Outcomes) -> Layers:
    """The states that the target policy can be in, as far as is known."""
    start, states = expand(outcomes, task.initial, task.policy > 0, task.horizon)
    return Layers(start, states)


@compiled
def _mix_with_target(
    policy: FloatArray, visits: IntArray, scores: FloatArray, floor: float, behavior: FloatArray
) -> None:
    """Scores made to shares, `floor` of them the target policy's, [1 or L, S, A].

    No ratio pi/b exceeds 1/floor. The target policy itself is followed where all scores are zero,
    and in states where it takes an action that has not been tried: nothing is known about it.
    """
    tables, states, actions = scores.shape
    for s in range(states):
        tried = True
        for a in range(actions):
            tried &= policy[s, a] == 0.0 or visits[s, a] > 0
        for t in range(tables):
            total = 0.0
            for a in range(actions):
                total += scores[t, s, a]
            for a in range(actions):
                behavior[t, s, a] = policy[s, a]
                if tried and total > 0.0:
                    share = scores[t, s, a] / total
                    behavior[t, s, a] = (1.0 - floor) * share + floor * policy[s, a]


@compiled
def _score_by_return(task: TaskArrays, model: OutcomeModel, steps: int) -> FloatArray:  # noqa: ARG001
    """pi sqrt(u), u the second moment of the return."""
    policy = task.policy
    layers = policy_layers(task, model.outcomes)
    on_policy = policy.reshape((1, policy.shape[0], policy.shape[1]))
    moments = per_decision_moments(model, policy, on_policy, layers, task.discount)
    return policy * np.sqrt(moments)


@compiled
def _score_by_variance(task: TaskArrays, model: OutcomeModel, steps: int) -> FloatArray:  # noqa: ARG001
    """pi sqrt(u), u the variance of what follows if every later step is optimal too."""
    policy = task.policy
    layers = policy_layers(task, model.outcomes)
    not_read = policy.reshape((1, policy.shape[0], policy.shape[1]))
    moments = doubly_robust_moments(model, policy, not_read, layers, task.discount, True)
    return policy * np.sqrt(moments)


@strategies.register("odi")
@dataclass(frozen=True)
class OfflineDataInformed(ModelBased):
    """b_t proportional to pi sqrt(u_t), u_t(s,a) = E[G^2 | s,a]: the return's second moment.

    Liu and Zhang (2024), "Efficient Policy Evaluation with Offline Data Informed Behavior Policy
    Design". It is the best behavior at each step for per-decision importance sampling, the
    paper's estimator, if the target policy were followed from the next step on; so its variance
    is nowhere above on-policy Monte Carlo's. Rewards may have noise here, which u then contains.
    The paper fits u to earlier data.
    """

    id: ClassVar[str] = "odi"
    design: ClassVar[Design] = Design(_score_by_return, stationary=False)
    known_model: bool = False
    floor: float = 0.1
    first_plan: int = 10


@strategies.register("dopt")
@dataclass(frozen=True)
class DoublyOptimal(ModelBased):
    """b_t proportional to pi sqrt(u_t), u_t = nu_t + gamma^2 E[(sum_a pi sqrt(u_{t+1}))^2].

    Liu, Chen and Zhang (2025), "Doubly Optimal Policy Evaluation for Reinforcement Learning".
    nu_t(s,a) = Var[R + gamma v_{t+1}(S') | s,a]: Theorem 1's recursion with the variance of one
    step in the place of the reward's alone. No behavior has a smaller variance with the paper's
    estimator, doubly robust per-decision importance sampling with the true action values; here
    they are fitted, each episode's to other episodes. The paper fits u to earlier data.
    """

    id: ClassVar[str] = "dopt"
    design: ClassVar[Design] = Design(_score_by_variance, stationary=False)
    known_model: bool = False
    floor: float = 0.1
    first_plan: int = 10
