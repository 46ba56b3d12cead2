"""Certainty equivalence: the value recursion with estimated rewards and transitions (Y_n)."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar

import numpy as np

from revar.compilation import compiled
from revar.errors import InputError
from revar.estimators.estimator import Estimate, Estimator, episodes_of, estimators
from revar.model.arrays import FloatArray, Layers, RunStatistics
from revar.model.moments import reward_noise
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.task import Task, check_sums
from revar.model.trajectory import Dataset
from revar.theory.recursions import backward_values, influence, pair_costs, unvisited_mass


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
        """From statistics of any collection, or from whole episodes; `run` picks the run axis."""
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
        layers = reachable_layers(observed.outcomes, initial, task.policy > 0, task.horizon)
        check_sums(task.policy, "policy", np.unique(layers.states))
        value, variance, unvisited = plug_in(
            observed,
            initial,
            task.policy,
            layers,
            task.discount,
            self.known_transitions,
            episodes if task.initial is None else 0,
        )
        return Estimate(value, sqrt(variance), episodes, unvisited)


@compiled
def plug_in(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    layers: Layers,
    discount: float,
    known_transitions: bool,
    initial_draws: int,
) -> tuple[float, float, float]:
    """Value, variance of the estimate, and mass without data.

    With known transitions they stand in `statistics.outcomes`, in the place of frequencies.
    `initial_draws` is the number of episodes from which `initial` was estimated, 0 if it is known.
    """
    states, actions = policy.shape
    outcomes = statistics.outcomes
    values = backward_values(outcomes, statistics.reward_mean, policy, layers, discount)
    errors = pair_errors(statistics, initial, policy, values, layers, discount, known_transitions)
    value = 0.0
    for s in range(states):
        value += initial[s] * values[0, s]
    variance = 0.0
    for s in range(states):
        if initial_draws > 0:
            variance += initial[s] * (values[0, s] - value) ** 2 / initial_draws
        for a in range(actions):
            variance += errors[s, a]
    unvisited = unvisited_mass(outcomes, initial, policy, statistics.visits, layers)
    return value, variance, unvisited


@compiled
def pair_errors(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    values: FloatArray,
    layers: Layers,
    discount: float,
    known_transitions: bool,
) -> FloatArray:
    """What each pair adds to the variance of the estimate: its estimated cost over its visits.

    Costs carry Bessel's correction T/(T-1); a pair of one visit takes the pooled reward variance.
    """
    states, actions = policy.shape
    outcomes, visits = statistics.outcomes, statistics.visits
    weight, gain = influence(outcomes, initial, policy, values, layers, discount)
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
    costs = pair_costs(
        outcomes, weight, gain, reward_variance, statistics.outcome_reward_mean, known_transitions
    )
    errors = np.zeros((states, actions))
    for s in range(states):
        for a in range(actions):
            if weight[s, a] == 0.0 or visits[s, a] == 0:
                continue
            if visits[s, a] == 1:
                errors[s, a] = weight[s, a] ** 2 * pooled_variance
            else:
                errors[s, a] = costs[s, a] / (visits[s, a] - 1)
    return errors
