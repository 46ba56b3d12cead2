"""A model fitted to the data, and the errors that other ways to collect would have had in it."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy import sparse

from revar.compilation import compiled
from revar.errors import InputError
from revar.estimators.certainty_equivalence import pair_errors
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.mdp import TabularMDP
from revar.model.moments import reward_noise
from revar.model.question import Question
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.task import Task
from revar.theory.costs import one_step_costs, variance_of_visits
from revar.theory.influence import influence
from revar.theory.recursions import backward_values
from revar.theory.values import occupancy, return_variance, state_values


def fit_model(
    task: Task, observed: RunStatistics, *, extra_variance: FloatArray | None = None
) -> TabularMDP:
    """Frequencies in the place of probabilities, means and deviations in the place of laws.

    Pairs without data give nothing and end the episode, as in certainty equivalence.
    `extra_variance` [S, A] is added to the reward noise of each pair.
    """
    episodes = int(observed.initial_count.sum())
    if episodes == 0:
        raise InputError("a model of the data needs at least one episode")
    row_start, successor, probability = observed.outcomes
    pairs = np.repeat(np.arange(task.states * task.actions), np.diff(row_start))
    shape = (task.states * task.actions, task.states + 1)
    mean = observed.outcome_reward_mean
    variance = _variance_within_outcomes(observed)
    if extra_variance is not None:
        variance = variance + extra_variance
    noise = np.sqrt(variance).ravel()[pairs]
    goes_on = successor < task.states
    return TabularMDP(
        sparse.csr_array(
            (probability[goes_on], (pairs[goes_on], successor[goes_on])),
            shape=(shape[0], task.states),
        ),
        sparse.csr_array((mean, (pairs, successor)), shape=shape),
        sparse.csr_array((noise, (pairs, successor)), shape=shape),
        observed.initial_count / episodes if task.initial is None else task.initial,
        task.horizon,
        task.discount,
    )


@compiled
def _variance_within_outcomes(statistics: RunStatistics) -> FloatArray:
    """The variance of a pair's reward given the outcome, without Bessel's correction, [S, A]."""
    states, actions = statistics.visits.shape
    variance = np.zeros((states, actions))
    for s in range(states):
        for a in range(actions):
            noise, _ = reward_noise(statistics, True, s, a)
            variance[s, a] = noise / max(1, statistics.visits[s, a])
    return variance


@dataclass(frozen=True)
class Alternatives:
    """Standard errors at the same number of episodes."""

    on_policy: float  # certainty equivalence from episodes of the target policy
    monte_carlo: float  # the mean return of episodes of the target policy


def find_alternatives(task: Task, statistics: VisitStatistics) -> Alternatives:
    """From estimated costs, with visits as on-policy collection would make them."""
    episodes = int(statistics.episodes)
    observed = statistics.run_statistics(task.states)
    model = fit_model(task, observed)
    visits = occupancy(model, task.policy).sum(axis=0)
    variance = variance_of_visits(corrected_costs(task, observed), visits)
    variance += first_state_variance(model, task)
    return Alternatives(
        sqrt(variance / episodes),
        sqrt(return_variance(model, task.policy) / episodes),
    )


def on_policy_variances(task: Task, statistics: VisitStatistics) -> FloatArray:
    """K times the variance of each policy's value from K episodes of that policy alone, [J]."""
    alone = [
        replace(task, policy=policy, question=Question.of_value(policy)) for policy in task.policies
    ]
    errors = [find_alternatives(each, statistics).on_policy for each in alone]
    return np.asarray(np.array(errors) ** 2 * statistics.episodes)


def corrected_costs(task: Task, observed: RunStatistics) -> FloatArray:
    """C(s,a) of what the task asks, as the standard error has it, [S, A].

    With Bessel's correction; of several combinations, the weighted sum.
    """
    initial = observed.initial_count / observed.initial_count.sum()
    outcomes, combinations = observed.outcomes, task.question.combinations
    layers = reachable_layers(outcomes, initial, task.policy > 0, task.horizon)
    weights, gains = [], []
    for policy in task.policies:
        values = backward_values(
            outcomes, observed.reward_mean, policy[None], layers, task.discount
        )
        weight, gain = influence(outcomes, initial, policy[None], values, layers, task.discount)
        weights.append(weight)
        gains.append(gain)
    costs = np.zeros(task.policy.shape)
    for row, matters in zip(combinations.coefficients, combinations.weights, strict=True):
        weight, gain = np.tensordot(row, weights, axes=1), np.tensordot(row, gains, axes=1)
        costs += matters * pair_errors(observed, weight, gain, weight, gain, False)
    return np.asarray(costs * observed.visits)


def fit_corrected_model(task: Task, observed: RunStatistics) -> TabularMDP:
    """The fitted model, with so much reward noise that its costs are the corrected ones.

    The variance of a sample is too small on average, most of all after few visits.
    """
    model = fit_model(task, observed)
    fading = task.discount ** np.arange(task.horizon, dtype=np.float64)
    weight = np.einsum("t,tsa->sa", fading, occupancy(model, task.policy))
    missing = corrected_costs(task, observed) - one_step_costs(model, task.policy)
    noise = np.divide(missing, weight**2, out=np.zeros_like(missing), where=weight > 0)
    return fit_model(task, observed, extra_variance=noise.clip(min=0.0))


def first_state_variance(model: TabularMDP, task: Task) -> float:
    """What the first state adds to K*MSE where its distribution has to be estimated."""
    values = state_values(model, task.policy)[0]
    return float(model.initial @ (values - model.initial @ values) ** 2)
