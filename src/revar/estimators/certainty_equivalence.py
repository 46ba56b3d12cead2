"""Certainty equivalence: the value recursion with estimated rewards and transitions (Y_n)."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from revar.compilation import compiled
from revar.errors import InputError
from revar.estimators.estimator import (
    Estimate,
    Estimator,
    JointEstimate,
    episodes_of,
    estimators,
)
from revar.model.arrays import FloatArray, Layers, RunStatistics
from revar.model.moments import reward_noise
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.task import Task, check_sums, named_policies
from revar.model.trajectory import Dataset
from revar.theory.influence import influence, pair_covariance
from revar.theory.recursions import backward_values, unvisited_mass

# What has not happened in so many visits has, with 95% confidence, a probability below 1%.
TELLING_VISITS = 300


@estimators.register("certainty-equivalence")
@dataclass(frozen=True)
class CertaintyEquivalence(Estimator):
    """Plug mean rewards and transition frequencies (or the true transitions) into the recursion.

    Valid under any behavior, tracked or sampled. Pairs without data count as reward 0 and as the
    end of the episode; the estimate says how much of the policy rests on them. The standard error
    is the delta method's sqrt(sum C/T) with estimated costs C.
    """

    id: ClassVar[str] = "certainty-equivalence"
    needs_episodes: ClassVar[bool] = False
    known_transitions: bool = False

    def estimate(self, task: Task, data: Dataset | VisitStatistics, *, run: int = 0) -> Estimate:
        """From statistics of any collection, or from whole episodes; `run` picks the run axis.

        Of a task that asks for one number: a value, or a difference.
        """
        combinations = task.question.combinations
        if not combinations.single:
            raise InputError(
                f"the task asks for {len(combinations.coefficients)} values at once; "
                f"joint_estimate gives them"
            )
        return self.joint_estimate(task, data, run=run).combination(combinations.coefficients[0])

    def joint_estimate(
        self, task: Task, data: Dataset | VisitStatistics, *, run: int = 0
    ) -> JointEstimate:
        """The values of all policies of the task, with their covariance."""
        if not isinstance(data, Dataset | VisitStatistics):
            raise InputError(f"data is {type(data).__name__}, not a Dataset or VisitStatistics")
        if isinstance(data, Dataset):
            statistics = VisitStatistics(task.states, task.actions)
            statistics.record_many(episodes_of(data, task, "certainty equivalence"))
            data = statistics
        if data.actions != task.actions:
            raise InputError(f"the data has {data.actions} actions, the policy has {task.actions}")
        observed = data.run_statistics(task.states, run)
        episodes = int(observed.initial_count.sum())
        if episodes == 0:
            raise InputError("certainty equivalence needs at least one episode")
        if self.known_transitions:
            model = task.known_model("certainty equivalence with known transitions")
            observed = observed.with_known(model.arrays.outcomes)
        initial = task.initial
        if initial is None:
            initial = observed.initial_count / episodes
        for name, policy in named_policies(task.question):
            reached = reachable_layers(observed.outcomes, initial, policy > 0, task.horizon)
            check_sums(policy, name, np.unique(reached.states))
        layers = reachable_layers(observed.outcomes, initial, task.policy > 0, task.horizon)
        values, covariance, unvisited = plug_in(
            observed,
            initial,
            task.policies,
            layers,
            task.discount,
            self.known_transitions,
            episodes if task.initial is None else 0,
        )
        silent = silent_shares(observed, initial, task.policies, layers, task.discount)
        return JointEstimate(values, covariance, episodes, unvisited, silent_share=silent)


@compiled
def silent_shares(
    statistics: RunStatistics,
    initial: FloatArray,
    policies: FloatArray,
    layers: Layers,
    discount: float,
) -> FloatArray:
    """The share of each policy's steps in pairs that always did the same, in few visits, [J].

    The variance of such a pair is unknown rather than zero: what it has not shown may be rare.
    Where no pair varies at all, nothing suggests that, and the shares are zero.
    """
    count, states, actions = policies.shape
    row_start = statistics.outcomes.row_start
    silent = np.zeros((states, actions))
    varies = False
    for s in range(states):
        for a in range(actions):
            pair = s * actions + a
            outcomes = 0
            for o in range(row_start[pair], row_start[pair + 1]):
                outcomes += statistics.outcome_count[o] > 0
            if outcomes > 1 or statistics.reward_squares[s, a] > 0.0:
                varies = True
            elif 0 < statistics.visits[s, a] < TELLING_VISITS:
                silent[s, a] = 1.0
    shares = np.zeros(count)
    if varies:
        no_values = np.zeros((layers.start.size, states + 1))
        for j in range(count):
            weight, _ = influence(
                statistics.outcomes, initial, policies[j : j + 1], no_values, layers, discount
            )
            shares[j] = np.sum(weight * silent) / np.sum(weight)
    return shares


@compiled
def plug_in(
    statistics: RunStatistics,
    initial: FloatArray,
    policies: FloatArray,
    layers: Layers,
    discount: float,
    known_transitions: bool,
    initial_draws: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values [J], the covariance of their estimates [J, J], and mass without data [J].

    With known transitions they stand in `statistics.outcomes`, in the place of frequencies.
    `initial_draws` is the number of episodes from which `initial` was estimated, 0 if it is known.
    """
    count, states, actions = policies.shape
    first_values = np.zeros((count, states))
    weights = np.zeros(policies.shape)
    gains = np.zeros((count, statistics.outcomes.successor.size))
    values = np.zeros(count)
    unvisited = np.zeros(count)
    for j in range(count):
        table = backward_values(
            statistics.outcomes, statistics.reward_mean, policies[j : j + 1], layers, discount
        )
        for s in range(states):
            first_values[j, s] = table[0, s]
            values[j] += initial[s] * table[0, s]
        weights[j], gains[j] = influence(
            statistics.outcomes, initial, policies[j : j + 1], table, layers, discount
        )
        unvisited[j] = unvisited_mass(
            statistics.outcomes, initial, policies[j], statistics.visits, layers
        )
    covariance = np.zeros((count, count))
    for j in range(count):
        for k in range(j + 1):
            errors = pair_errors(
                statistics, weights[j], gains[j], weights[k], gains[k], known_transitions
            )
            total = 0.0
            for s in range(states):
                if initial_draws > 0:
                    apart = (first_values[j, s] - values[j]) * (first_values[k, s] - values[k])
                    total += initial[s] * apart / initial_draws
                for a in range(actions):
                    total += errors[s, a]
            covariance[j, k] = covariance[k, j] = max(0.0, total) if j == k else total
    return values, covariance, unvisited


@compiled
def pair_errors(
    statistics: RunStatistics,
    weight: FloatArray,
    gain: FloatArray,
    other_weight: FloatArray,
    other_gain: FloatArray,
    known_transitions: bool,
) -> FloatArray:
    """What each pair adds to the covariance of two estimates: that of a visit, over its visits.

    It carries Bessel's correction T/(T-1); a pair of one visit takes the pooled reward variance.
    """
    states, actions = weight.shape
    # Out of the record before the loops: each time costs as much as the arithmetic of a pair.
    outcomes, visits = statistics.outcomes, statistics.visits
    reward_means = statistics.outcome_reward_mean
    freedom = 0
    squares = 0.0
    reward_variance = np.zeros((states, actions))
    for s in range(states):
        for a in range(actions):
            if visits[s, a] > 0:
                noise, free = reward_noise(statistics, False, s, a)
                reward_variance[s, a] = noise / visits[s, a]
                freedom += free
                squares += noise
    pooled_variance = squares / freedom if freedom > 0 else inf
    errors = np.zeros((states, actions))
    for s in range(states):
        for a in range(actions):
            both = weight[s, a] * other_weight[s, a]
            if both == 0.0 or visits[s, a] == 0:
                continue
            if visits[s, a] == 1:
                errors[s, a] = both * pooled_variance
            else:
                covariance = pair_covariance(
                    outcomes,
                    weight,
                    gain,
                    other_weight,
                    other_gain,
                    reward_variance,
                    reward_means,
                    known_transitions,
                    s,
                    a,
                )
                errors[s, a] = covariance / (visits[s, a] - 1)
    return errors
