"""DOpt: the behavior that is optimal for doubly robust estimation."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, IntArray, RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.strategies.informed import (
    believed_layers,
    check_informed,
    informed_by_data,
    informed_by_model,
    informed_rule,
    mix_with_target,
)
from revar.strategies.plug_in import plug_in_model
from revar.strategies.rule import CompiledRule, Memory, Path, Question, refresh_frequencies
from revar.strategies.schedule import is_due
from revar.strategies.strategy import FOR_SAMPLED, Plan, Strategy, strategies
from revar.theory.importance_steps import OutcomeModel, doubly_robust_moments


@strategies.register("dopt")
@dataclass(frozen=True)
class DoublyOptimal(Strategy):
    """b_t proportional to pi sqrt(u_t), u_t = nu_t + gamma^2 E[(sum_a pi sqrt(u_{t+1}))^2].

    Liu, Chen and Zhang (2025), "Doubly Optimal Policy Evaluation for Reinforcement Learning".
    nu_t(s,a) = Var[R + gamma v_{t+1}(S') | s,a]: Theorem 1's recursion with the variance of one
    step in the place of the reward's alone. No behavior has a smaller variance with the paper's
    estimator, doubly robust per-decision importance sampling with the true action values; here
    they are fitted, each episode's to other episodes.

    The paper fits u to data collected before. With `known_model` u comes from the true model; else
    from the run's own statistics, first after `first_plan` episodes of the target policy. `floor`
    is the target policy's share in the behavior.
    """

    id: ClassVar[str] = "dopt"
    estimators: ClassVar[tuple[str, ...]] = FOR_SAMPLED
    known_model: bool = False
    floor: float = 0.1
    first_plan: int = 10

    def __post_init__(self) -> None:
        check_informed(self.floor, self.first_plan)

    @property
    def needs_model(self) -> bool:
        """Only the oracle's version."""
        return self.known_model

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The behavior that follows from the model, or from what has been seen of it."""
        parameters = np.array([self.floor])
        if self.known_model:
            return informed_by_model(
                _design, task, parameters, task.horizon, "dopt with a known model"
            )
        return informed_by_data(
            _design, task, statistics, parameters, task.horizon, self.first_plan
        )

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule | None:  # noqa: ARG002
        """The same plans at the same times; the oracle's plan needs no rule."""
        if self.known_model:
            return None
        return informed_rule(_replan, task, np.array([self.floor]), task.horizon, self.first_plan)


@compiled
def _design(
    question: Question,
    model: OutcomeModel,
    visits: IntArray,
    parameters: FloatArray,
    behavior: FloatArray,
) -> None:
    policy = question.policy
    layers = believed_layers(question, model.outcomes)
    moments = doubly_robust_moments(model, policy, behavior, layers, question.discount, True)
    mix_with_target(policy, visits, policy * np.sqrt(moments), parameters[0], behavior)


@compiled
def _replan(
    question: Question,
    statistics: RunStatistics,
    memory: Memory,
    parameters: FloatArray,
    path: Path,  # noqa: ARG001
    steps: int,  # noqa: ARG001
    episode: int,
) -> None:
    if is_due(parameters[1:], episode):
        refresh_frequencies(statistics)
        model = plug_in_model(statistics)
        _design(question, model, statistics.visits, parameters, memory.scores)
