"""BPG: gradient descent on the variance of ordinary importance sampling."""

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray
from revar.model.validation import check_count
from revar.strategies.compiled_rule import TaskArrays
from revar.strategies.model_based import Design, ModelBased, policy_layers
from revar.strategies.strategy import strategies
from revar.theory.importance import OutcomeModel, ordinary_gradient, ordinary_moments

# A step is accepted if the logarithm falls by this part of what the slope promises.
SUFFICIENT = 1e-4
MOST_HALVINGS = 40


@compiled
def _descend(task: TaskArrays, model: OutcomeModel, steps: int) -> FloatArray:
    """The behavior after so many steps from the target policy, [1, S, A]."""
    policy, discount = task.policy, task.discount
    layers = policy_layers(task, model.outcomes)
    shares = policy.copy().reshape((1, policy.shape[0], policy.shape[1]))
    trial = np.empty(shares.shape)
    moments, pairs = ordinary_moments(model, policy, shares, layers, discount)
    length = 1.0
    for _ in range(steps):
        square = _expected(task.initial, moments)
        if square == 0.0:
            break
        gradient = ordinary_gradient(model, task.initial, policy, shares, layers, discount, pairs)
        slope = _slope(shares, gradient, square)
        fall = np.sum(slope * slope)
        for _ in range(MOST_HALVINGS):
            _move(shares, slope, length, trial)
            moments, pairs = ordinary_moments(model, policy, trial, layers, discount)
            found = _expected(task.initial, moments)
            if log(found / square) <= -SUFFICIENT * length * fall:
                break
            length *= 0.5
        else:
            break
        shares, trial = trial, shares
        length *= 2.0
    return shares


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


@strategies.register("bpg")
@dataclass(frozen=True)
class BehaviorPolicyGradient(ModelBased):
    """Softmax behavior, moved down the gradient of the variance of importance sampling.

    Hanna, Thomas, Stone and Niekum (2017), "Data-Efficient Policy Evaluation Through Behavior
    Policy Search". The behavior, stationary with one parameter a pair, starts at the target
    policy and takes `steps` steps of gradient descent on log E[W^2 G^2], W the ratio of the whole
    episode and G its return; a step is halved until the expectation falls. It is convex in the
    parameters, so that only the number of steps keeps it from the best stationary behavior. The
    paper's estimator is ordinary importance sampling.

    The paper takes one step after each batch, along a gradient sampled from it. Here the gradient
    is exact for a model.
    """

    id: ClassVar[str] = "bpg"
    design: ClassVar[Design] = Design(_descend, stationary=True)
    known_model: bool = False
    steps: int = 10
    floor: float = 0.1
    first_plan: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.steps, "steps")
