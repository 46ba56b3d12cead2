"""Certainty equivalence: the value recursion with estimated rewards and transitions (Y_n)."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from revar.compilation import compiled, compiled_in_place, like_caller
from revar.errors import InputError
from revar.estimators.estimator import (
    Estimate,
    Estimator,
    JointEstimate,
    episodes_of,
    estimators,
)
from revar.model.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Layers,
    Outcomes,
    RunStatistics,
)
from revar.model.moments import ROUNDING
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.tables import dot, total
from revar.model.task import Task, check_sums, named_policies
from revar.model.trajectory import Dataset
from revar.theory.gap_errors import (
    all_amiss,
    error_of_gaps,
    errors_of_actions,
    spread_of_worths,
)
from revar.theory.gaps import (
    FilledValues,
    balanced_policy,
    filled_values,
    known_values,
    taken_policy,
    thin_share_of,
    tried_policy,
)
from revar.theory.influence import influence, pair_covariance, pair_worths, with_data
from revar.theory.preference import Corrected, correct_for_preference
from revar.theory.recursions import unvisited_mass

# What has not happened in so many visits has, with 95% confidence, a probability below 1%.
TELLING_VISITS = 300


class PluggedIn(NamedTuple):
    """What certainty equivalence gives, for compiled code."""

    values: FloatArray  # [J]
    covariance: FloatArray  # [J, J]
    freedom: FloatArray  # [J] degrees of freedom of the variances
    unvisited: FloatArray  # [J] mass without data
    thin_share: FloatArray  # [J] of steps, those in pairs that were visited at most once


@estimators.register("certainty-equivalence")
@dataclass(frozen=True)
class CertaintyEquivalence(Estimator):
    """Plug mean rewards and transition frequencies (or the true transitions) into the recursion.

    Valid under any behavior, tracked or sampled. Pairs and states without data are filled (see
    `revar.theory.gaps`); the estimate says how much of the policy rests on them. The standard error
    is the delta method's sqrt(sum C/T) with estimated costs C, and what filling may miss, widened
    where few visits tell the costs.
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
        return self.plug_in(task, data, run=run)[0]

    def plug_in(
        self, task: Task, data: Dataset | VisitStatistics, *, run: int = 0
    ) -> tuple[JointEstimate, PluggedIn]:
        """The same, and what compiled code found."""
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
        found = plug_in(
            observed,
            initial,
            task.policies,
            layers,
            task.discount,
            self.known_transitions,
            episodes if task.initial is None else 0,
        )
        silent = silent_shares(observed, initial, task.policies, layers, task.discount)
        covariance = widen(found.covariance, found.freedom)
        estimate = JointEstimate(
            found.values,
            covariance,
            episodes,
            found.unvisited,
            silent_share=silent,
            unrewarded=not (observed.reward_mean.any() or observed.reward_squares.any()),
        )
        return estimate, found


def widen(covariance: FloatArray, freedom: FloatArray) -> FloatArray:
    """Covariances [..., J, J] so large that normal intervals of 95% are as wide as Student's.

    What is added is a covariance itself, so that no combination of values gets a smaller error.
    """
    student = stdtrit(freedom, 0.975) / ndtri(0.975)  # [..., J]
    factor = np.where(np.isinf(freedom), 1.0, student)
    more = np.sqrt((factor**2 - 1.0).clip(min=0.0))
    return np.asarray(covariance * (1.0 + more[..., None] * more[..., None, :]))


@like_caller
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
    silent, varies = _silent_pairs(statistics)
    shares = np.zeros(len(policies))
    if varies:
        no_values = np.zeros((layers.start.size, initial.size + 1))
        for j in range(len(policies)):
            weight, _ = influence(
                statistics.outcomes, initial, policies[j : j + 1], no_values, layers, discount
            )
            shares[j] = _share_of(silent, weight)
    return shares


@compiled_in_place
def _share_of(chosen: BoolArray, weight: FloatArray) -> float:
    part = 0.0
    whole = 0.0
    for s in range(weight.shape[0]):
        for a in range(weight.shape[1]):
            whole += weight[s, a]
            if chosen[s, a]:
                part += weight[s, a]
    return part / whole


@compiled
def _silent_pairs(statistics: RunStatistics) -> tuple[BoolArray, bool]:
    """The pairs that always did the same in few visits, [S, A], and whether any pair varies."""
    states, actions = statistics.visits.shape
    row_start = statistics.outcomes.row_start
    silent = np.zeros((states, actions), dtype=np.bool_)
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
                silent[s, a] = True
    return silent, varies


@like_caller
def plug_in(
    statistics: RunStatistics,
    initial: FloatArray,
    policies: FloatArray,
    layers: Layers,
    discount: float,
    known_transitions: bool,
    initial_draws: int,
) -> PluggedIn:
    """The values of policies [J, S, A], their errors, and what they rest on.

    With known transitions they stand in `statistics.outcomes`, in the place of frequencies.
    `initial_draws` is the number of episodes from which `initial` was estimated, 0 if it is known.
    """
    count = len(policies)
    corrected = [
        _corrected_values(statistics, initial, policies[j], layers, discount, known_transitions)
        for j in range(count)
    ]
    values = np.zeros(count)
    unvisited = np.zeros(count)
    for j in range(count):
        values[j] = dot(initial, corrected[j].found.table[0])
        unvisited[j] = unvisited_mass(
            statistics.outcomes, initial, policies[j], statistics.visits, layers
        )
    gaps = [
        errors_of_actions(
            *(statistics, policies[j], corrected[j]),
            _errors_wherever_zero_is(statistics, corrected[j].found, known_transitions),
        )
        for j in range(count)
    ]
    covariance = np.zeros((count, count))
    freedom = np.zeros(count)
    thin_share = np.zeros(count)
    for j in range(count):
        found = corrected[j].found
        thin_share[j] = thin_share_of(found, statistics.visits)
        for k in range(j + 1):
            other = corrected[k].found
            errors = pair_errors(
                *(statistics, found.weights, found.gains, other.weights, other.gains),
                known_transitions,
            )
            variance, squares = _sum_errors(errors, statistics.visits)
            if initial_draws > 0:
                apart = _initial_error(
                    *(initial, initial_draws),
                    *(found.table[0], values[j], other.table[0], values[k]),
                )
                variance += apart
                squares += apart * apart / max(1, initial_draws - 1)
            missed = error_of_gaps(corrected[j], gaps[j], corrected[k], gaps[k])
            covariance[j, k] = variance + missed
            covariance[k, j] = covariance[j, k]
            if j == k:
                covariance[j, j] = max(0.0, covariance[j, j])
                freedom[j] = max(1.0, variance * variance / squares) if squares > 0.0 else inf
    return PluggedIn(values, covariance, freedom, unvisited, thin_share)


@like_caller
def _corrected_values(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    layers: Layers,
    discount: float,
    known_transitions: bool,
) -> Corrected:
    if known_transitions:
        found = known_values(statistics, initial, policy, layers, discount)
    else:
        found = _filled_by_less(statistics, initial, policy, layers, discount)
    errors = _errors_wherever_zero_is(statistics, found, known_transitions)
    return correct_for_preference(
        *(statistics, initial, policy, found, errors, layers, discount, known_transitions)
    )


@like_caller
def _filled_by_less(
    statistics: RunStatistics,
    initial: FloatArray,
    policy: FloatArray,
    layers: Layers,
    discount: float,
) -> FilledValues:
    """Values with gaps filled in that way of the three which leaves the smallest error.

    Between errors that differ by rounding nothing is chosen.
    """
    visits = statistics.visits
    tried = tried_policy(policy, visits)
    found = filled_values(statistics, initial, policy, tried, layers, discount)
    if total(found.untried) > 0.0:
        left = _error_left(statistics, policy, found)
        for other in (balanced_policy(policy, visits), taken_policy(policy, visits)):
            instead = filled_values(statistics, initial, policy, other, layers, discount)
            error = _error_left(statistics, policy, instead)
            if error < (1.0 - ROUNDING) * left:
                found, left = instead, error
    return found


@like_caller
def _error_left(statistics: RunStatistics, policy: FloatArray, found: FilledValues) -> float:
    """The variance that visits leave, and what filling may miss, wherever zero is."""
    errors = _errors_wherever_zero_is(statistics, found, False)
    missed = Corrected(all_amiss(found, policy), 0.0, 0.0)
    gaps = errors_of_actions(statistics, policy, missed, errors)
    return total(errors) + error_of_gaps(missed, gaps, missed, gaps)


@like_caller
def _errors_wherever_zero_is(
    statistics: RunStatistics, found: FilledValues, known_transitions: bool
) -> FloatArray:
    """What each pair adds to the variance of a value; by this it is decided what the value is.

    A single visit takes the variance of the others alone: how unlike all visits are tells how many
    steps follow them, too.
    """
    visits, weights, gains = statistics.visits, found.weights, found.gains
    errors = np.zeros(weights.shape)
    squares, freedom = _errors_seen(
        *(statistics.outcomes, visits, weights, gains, weights, gains),
        *(statistics.reward_squares / np.maximum(visits, 1), statistics.outcome_reward_mean),
        *(known_transitions, errors),
    )
    _add_single_visits(visits, weights, weights, squares / max(1, freedom), errors)
    return errors


@compiled_in_place
def _initial_error(
    initial: FloatArray,
    draws: int,
    first: FloatArray,
    value: float,
    other_first: FloatArray,
    other_value: float,
) -> float:
    """What estimating the first state's distribution adds to the covariance of two values."""
    error = 0.0
    for s in range(initial.size):
        both = (first[s] - value) * (other_first[s] - other_value)
        error += initial[s] * both / draws
    return error


@compiled_in_place
def _sum_errors(errors: FloatArray, visits: IntArray) -> tuple[float, float]:
    """The variance that visits leave, and the sum over pairs of squares of its parts, each over its
    degrees of freedom (Satterthwaite 1946, "An approximate distribution of estimates of variance
    components").
    """
    total = 0.0
    squares = 0.0
    once = 0.0
    freedom = 0
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            total += errors[s, a]
            if visits[s, a] > 1:
                squares += errors[s, a] ** 2 / (visits[s, a] - 1)
                freedom += visits[s, a] - 1
            else:
                once += errors[s, a]
    if once != 0.0:
        squares += once * once / max(1, freedom)
    return total, squares


@like_caller
def pair_errors(
    statistics: RunStatistics,
    weight: FloatArray,
    gain: FloatArray,
    other_weight: FloatArray,
    other_gain: FloatArray,
    known_transitions: bool,
) -> FloatArray:
    """What each pair adds to the covariance of two estimates: that of a visit, over its visits.

    It carries Bessel's correction T/(T-1). A single visit shows no variance: such a pair takes
    what is usual, in units of its weight. To that the spread of what follows all visits counts as
    one more that has been seen, lest a few that agree by chance speak for all.
    """
    visits = statistics.visits
    errors = np.zeros(weight.shape)
    usual, freedom = _errors_seen(
        *(statistics.outcomes, visits, weight, gain, other_weight, other_gain),
        *(statistics.reward_squares / np.maximum(visits, 1), statistics.outcome_reward_mean),
        *(known_transitions, errors),
    )
    if freedom > 0:
        one, other = with_data(statistics, weight), with_data(statistics, other_weight)
        rewards, outcomes = statistics.reward_mean, statistics.outcomes
        worths = pair_worths(rewards, outcomes, one, gain)
        others = pair_worths(rewards, outcomes, other, other_gain)
        usual = (usual + spread_of_worths(one, worths, other, others)) / (freedom + 1)
    else:
        usual = inf
    _add_single_visits(visits, weight, other_weight, usual, errors)
    return errors


@compiled_in_place
def _errors_seen(
    outcomes: Outcomes,
    visits: IntArray,
    weight: FloatArray,
    gain: FloatArray,
    other_weight: FloatArray,
    other_gain: FloatArray,
    reward_variance: FloatArray,
    reward_means: FloatArray,
    known_transitions: bool,
    errors: FloatArray,
) -> tuple[float, int]:
    """Fill errors of pairs with more visits; their covariances by weight, and freedom, summed."""
    states, actions = weight.shape
    freedom = 0
    usual = 0.0
    for s in range(states):
        for a in range(actions):
            both = weight[s, a] * other_weight[s, a]
            if both == 0.0 or visits[s, a] < 2:
                continue
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
            usual += covariance * visits[s, a] / both
            freedom += visits[s, a] - 1
    return usual, freedom


@compiled_in_place
def _add_single_visits(
    visits: IntArray,
    weight: FloatArray,
    other_weight: FloatArray,
    usual: float,
    errors: FloatArray,
) -> None:
    """Fill errors of pairs with one visit, which take what is usual."""
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            both = weight[s, a] * other_weight[s, a]
            if visits[s, a] == 1 and both != 0.0:
                errors[s, a] = both * usual
