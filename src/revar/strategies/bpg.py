"""BPG: gradient descent on the variance of ordinary importance sampling."""

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, IntArray, RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.validation import checked_count
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
from revar.theory.importance_steps import OutcomeModel, ordinary_gradient, ordinary_moments

# A step is accepted if the logarithm falls by this part of what the slope promises.
SUFFICIENT = 1e-4
MOST_HALVINGS = 40


@strategies.register("bpg")
@dataclass(frozen=True)
class BehaviorPolicyGradient(Strategy):
    """Softmax behavior, moved down the gradient of the variance of importance sampling.

    Hanna, Thomas, Stone and Niekum (2017), "Data-Efficient Policy Evaluation Through Behavior
    Policy Search". The behavior, stationary with one parameter a pair, starts at the target
    policy and takes `steps` steps of gradient descent on log E[W^2 G^2], W the ratio of the whole
    episode and G its return; a step is halved until the expectation falls. It is convex in the
    parameters, so that only the number of steps keeps it from the best stationary behavior. The
    paper's estimator is ordinary importance sampling.

    The paper takes one step after each batch, along a gradient sampled from it. Here the gradient
    is exact for a model: the true one with `known_model`; else the one that the run's own
    statistics suggest, first after `first_plan` episodes of the target policy. `floor` is the
    target policy's share in the behavior.
    """

    id: ClassVar[str] = "bpg"
    estimators: ClassVar[tuple[str, ...]] = FOR_SAMPLED
    known_model: bool = False
    steps: int = 10
    floor: float = 0.1
    first_plan: int = 10

    def __post_init__(self) -> None:
        check_informed(self.floor, self.first_plan)
        checked_count(self.steps, "steps")

    @property
    def needs_model(self) -> bool:
        """Only the oracle's version."""
        return self.known_model

    def plan(self, task: Task, statistics: VisitStatistics) -> Plan:
        """The behavior that follows from the model, or from what has been seen of it."""
        parameters = np.array([self.floor, self.steps])
        if self.known_model:
            return informed_by_model(_design, task, parameters, 1, self.id)
        return informed_by_data(_design, task, statistics, parameters, 1, self.first_plan)

    def compiled_rule(self, task: Task, *, tree: bool) -> CompiledRule | None:  # noqa: ARG002
        """The same plans at the same times; the oracle's plan needs no rule."""
        if self.known_model:
            return None
        return informed_rule(_replan, task, np.array([self.floor, self.steps]), 1, self.first_plan)


@compiled
def _design(
    question: Question,
    model: OutcomeModel,
    visits: IntArray,
    parameters: FloatArray,
    behavior: FloatArray,
) -> None:
    policy, discount = question.policy, question.discount
    layers = believed_layers(question, model.outcomes)
    shares = policy.copy().reshape((1, policy.shape[0], policy.shape[1]))
    trial = np.empty(shares.shape)
    moments, pairs = ordinary_moments(model, policy, shares, layers, discount)
    length = 1.0
    for _ in range(int(parameters[1])):
        square = _expected(question.initial, moments)
        if square == 0.0:
            break
        gradient = ordinary_gradient(
            model, question.initial, policy, shares, layers, discount, pairs
        )
        slope = _slope(shares, gradient, square)
        fall = np.sum(slope * slope)
        for _ in range(MOST_HALVINGS):
            _move(shares, slope, length, trial)
            moments, pairs = ordinary_moments(model, policy, trial, layers, discount)
            found = _expected(question.initial, moments)
            if log(found / square) <= -SUFFICIENT * length * fall:
                break
            length *= 0.5
        else:
            break
        shares, trial = trial, shares
        length *= 2.0
    mix_with_target(policy, visits, shares, parameters[0], behavior)


@compiled
def _expected(initial: FloatArray, moments: FloatArray) -> float:
    """E[W^2 G^2] over first states."""
    total = 0.0
    for s in range(initial.size):
        total += initial[s] * moments[0, s, 2]
    return total


@compiled
def _slope(shares: FloatArray, gradient: FloatArray, square: float) -> FloatArray:
    """The derivative of log E[W^2 G^2] with respect to the softmax parameters, [1, S, A]."""
    slope = np.zeros(shares.shape)
    for s in range(shares.shape[1]):
        mean = 0.0
        for a in range(shares.shape[2]):
            mean += shares[0, s, a] * gradient[0, s, a]
        for a in range(shares.shape[2]):
            slope[0, s, a] = shares[0, s, a] * (gradient[0, s, a] - mean) / square
    return slope


@compiled
def _move(shares: FloatArray, slope: FloatArray, length: float, result: FloatArray) -> None:
    """The softmax after a step of that length against the slope."""
    for s in range(shares.shape[1]):
        total = 0.0
        for a in range(shares.shape[2]):
            result[0, s, a] = shares[0, s, a] * exp(-length * slope[0, s, a])
            total += result[0, s, a]
        if total > 0.0:
            for a in range(shares.shape[2]):
                result[0, s, a] /= total


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
    if is_due(parameters[2:], episode):
        refresh_frequencies(statistics)
        model = plug_in_model(statistics)
        _design(question, model, statistics.visits, parameters, memory.scores)
