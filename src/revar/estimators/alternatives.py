"""A model fitted to the data, and the errors that other ways to collect would have had in it."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy import sparse

from revar.compilation import compiled
from revar.errors import InputError
from revar.estimators.certainty_equivalence import pair_errors
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.budget import Budget
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

    Pairs without data give nothing and end the episode.
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
    """What episodes of the target policy would have given for what was spent.

    Amounts are in the unit of the task's budget, and those of earlier data are among them.
    """

    on_policy_variance: float  # K*MSE of certainty equivalence from them
    return_variance: float  # K*MSE of their mean return
    spent: float
    episode_cost: float  # of an episode of the target policy
    steps: int
    episode_steps: float  # of an episode of the target policy

    @property
    def on_policy(self) -> float:
        """The standard error of certainty equivalence from such episodes."""
        return self._error(self.on_policy_variance)

    @property
    def monte_carlo(self) -> float:
        """The standard error of their mean return."""
        return self._error(self.return_variance)

    def on_policy_need(self, standard_error: float) -> float:
        """What certainty equivalence from such episodes has to spend for that error."""
        return self.on_policy_variance * self.episode_cost / standard_error**2

    def monte_carlo_need(self, standard_error: float) -> float:
        """What the mean return has to spend for that error."""
        return self.return_variance * self.episode_cost / standard_error**2

    def on_policy_steps(self, standard_error: float) -> float:
        """The steps that certainty equivalence from such episodes takes for that error."""
        return self.on_policy_variance * self.episode_steps / standard_error**2

    def _error(self, variance: float) -> float:
        if self.episode_cost == 0.0:
            return 0.0  # any number of them could be had
        return sqrt(variance / (self.spent / self.episode_cost))


def find_alternatives(task: Task, statistics: VisitStatistics) -> Alternatives:
    """From estimated costs, with visits as on-policy collection would make them."""
    observed = statistics.run_statistics(task.states)
    model = fit_model(task, observed)
    visits = occupancy(model, task.policy).sum(axis=0)
    variance = variance_of_visits(corrected_costs(task, observed), visits)
    variance += first_state_variance(model, task)
    each = (task.budget or Budget(1)).episode_cost
    return Alternatives(
        variance,
        return_variance(model, task.policy),
        spent=each * int(statistics.episodes) + float(np.sum(task.visit_cost * observed.visits)),
        episode_cost=each + float(np.sum(task.visit_cost * visits)),
        steps=int(observed.visits.sum()),
        episode_steps=float(visits.sum()),
    )


def on_policy_variances(task: Task, statistics: VisitStatistics) -> FloatArray:
    """K times the variance of each policy's value from K episodes of that policy alone, [J]."""
    errors = [each.on_policy for each in each_alone(replace(task, budget=None), statistics)]
    return np.asarray(np.array(errors) ** 2 * statistics.episodes)


def each_alone(task: Task, statistics: VisitStatistics) -> list[Alternatives]:
    """The alternatives of every policy, were it the only one."""
    return [
        find_alternatives(
            replace(task, policy=policy, question=Question.of_value(policy)), statistics
        )
        for policy in task.policies
    ]


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
