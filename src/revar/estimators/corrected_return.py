"""The mean return of on-policy episodes, less what a table of the other episodes explains of it."""

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from revar.compilation import compiled
from revar.errors import InputError
from revar.estimators.certainty_equivalence import widen
from revar.estimators.estimator import Estimate, Estimator, estimators
from revar.estimators.importance_sampling import PaddedEpisodes, check_on_policy
from revar.model.arrays import FloatArray, IntArray, Layers, Outcomes, RunStatistics
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers
from revar.model.task import Task
from revar.model.trajectory import ENDED, Dataset
from revar.theory.gaps import filled_values, tried_policy

FOLDS = 4  # episodes are dealt in turn; a table is learned from all folds but one


class Steps(NamedTuple):
    """Whole episodes, step by step."""

    start: IntArray  # [episode + 1]
    states: IntArray  # [step]
    actions: IntArray  # [step]
    rewards: FloatArray  # [step]
    successors: IntArray  # [step]; the number of states where the episode ended


@estimators.register("corrected-return")
@dataclass(frozen=True)
class CorrectedReturn(Estimator):
    """The mean return with a cross-fitted table of values as control variate.

    What the table says that an action adds to the return has mean zero in every state, whatever the
    table is worth; so has what it says of the first state, where that one's distribution is known.
    Both are taken from returns, as far as the other episodes show that it helps. Needs on-policy
    data: actions drawn from the target policy.
    """

    id: ClassVar[str] = "corrected-return"
    least_episodes: ClassVar[int] = 2
    folds: ClassVar[int] = FOLDS

    def estimate(self, task: Task, data: Dataset | VisitStatistics) -> Estimate:
        """From on-policy episodes; any other behavior is refused."""
        episodes = PaddedEpisodes.of(task, data, "the corrected return")
        check_on_policy(episodes, "the corrected return")
        if len(episodes.dataset) < self.least_episodes:
            raise InputError("the corrected return needs at least two episodes")
        statistics = VisitStatistics(task.states, task.actions)
        statistics.record_many(episodes.dataset)
        outcomes = statistics.run_statistics(task.states).outcomes
        steps = on_policy_steps(task, episodes.dataset)
        found = mean_corrected(task, steps, outcomes)
        return Estimate(found.value, sqrt(found.variance), len(episodes.dataset))


def on_policy_steps(task: Task, dataset: Dataset) -> Steps:
    """The whole episodes that were drawn from the target policy."""
    lengths = np.diff(dataset.start)
    whole = (lengths == task.horizon) | (dataset.successors[dataset.start[1:] - 1] == ENDED)
    wanted = task.policy[dataset.states, dataset.actions]
    drawn = np.abs(dataset.propensities - wanted) <= 1e-9  # not where they are unknown
    chosen = whole & np.logical_and.reduceat(drawn, dataset.start[:-1])
    step = np.repeat(chosen, lengths)
    return Steps(
        np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths[chosen])]),
        dataset.states[step],
        dataset.actions[step],
        dataset.rewards[step],
        np.where(dataset.successors == ENDED, task.states, dataset.successors)[step],
    )


class MeanCorrected(NamedTuple):
    """The mean of corrected returns."""

    value: float
    variance: float  # of the mean, widened as that of certainty equivalence


def mean_corrected(task: Task, steps: Steps, outcomes: Outcomes) -> MeanCorrected:
    """The mean corrected return of on-policy episodes.

    Of `outcomes` only the slots matter: every outcome of the steps has one.
    """
    count = steps.start.size - 1
    if count < 2:
        return MeanCorrected(nan, inf)
    initial = task.initial
    if initial is None:
        first = steps.states[steps.start[:-1]]
        initial = np.bincount(first, minlength=task.states) / count
    layers = reachable_layers(_seen(steps, outcomes, task), initial, task.policy > 0, task.horizon)
    corrected = corrected_returns(
        *(steps, outcomes, initial, task.initial is not None, task.policy, layers, task.discount)
    )
    variance = np.array([[corrected.var(ddof=1) / count]])
    widened = float(widen(variance, np.array([count - 1.0]))[0, 0])
    return MeanCorrected(float(corrected.mean()), widened)


def _seen(steps: Steps, outcomes: Outcomes, task: Task) -> Outcomes:
    """The same slots, with a probability wherever the steps led."""
    slots = np.bincount(slots_of(steps, outcomes, task.actions), minlength=outcomes.successor.size)
    return Outcomes(outcomes.row_start, outcomes.successor, (slots > 0).astype(np.float64))


@compiled
def corrected_returns(
    steps: Steps,
    outcomes: Outcomes,
    initial: FloatArray,
    known_initial: bool,
    policy: FloatArray,
    layers: Layers,
    discount: float,
) -> FloatArray:
    """Returns less what tables of other folds explain, [episode]."""
    count = steps.start.size - 1
    returns = np.zeros(count)
    for i in range(count):
        fading = 1.0
        for k in range(steps.start[i], steps.start[i + 1]):
            returns[i] += fading * steps.rewards[k]
            fading *= discount
    if count < 2 * FOLDS:
        return returns
    slots = slots_of(steps, outcomes, policy.shape[1])
    explained = np.zeros(count)
    for fold in range(FOLDS):
        table = _learn_without(fold, steps, slots, outcomes, policy.shape)
        tried = tried_policy(policy, table.visits)
        found = filled_values(table, initial, policy, tried, layers, discount)
        _explain(
            fold, steps, table, found.table, tried, initial, known_initial, discount, explained
        )
    corrected = returns.copy()
    for fold in range(FOLDS):
        share = _credible_share(fold, returns, explained)
        for i in range(fold, count, FOLDS):
            corrected[i] -= share * explained[i]
    return corrected


@compiled
def slots_of(steps: Steps, outcomes: Outcomes, actions: int) -> IntArray:
    """The slot of each step's outcome."""
    slots = np.zeros(steps.states.size, dtype=np.int64)
    for k in range(steps.states.size):
        o = outcomes.row_start[steps.states[k] * actions + steps.actions[k]]
        while outcomes.successor[o] != steps.successors[k]:
            o += 1
        slots[k] = o
    return slots


@compiled
def _learn_without(
    fold: int, steps: Steps, slots: IntArray, outcomes: Outcomes, shape: tuple[int, int]
) -> RunStatistics:
    """What all folds but one show; of rewards, the means alone."""
    states, actions = shape
    visits = np.zeros(shape, dtype=np.int64)
    reward_mean = np.zeros(shape)
    counts = np.zeros(outcomes.successor.size, dtype=np.int64)
    probability = np.zeros(outcomes.successor.size)
    for i in range(steps.start.size - 1):
        if i % FOLDS != fold:
            for k in range(steps.start[i], steps.start[i + 1]):
                s, a = steps.states[k], steps.actions[k]
                visits[s, a] += 1
                reward_mean[s, a] += (steps.rewards[k] - reward_mean[s, a]) / visits[s, a]
                counts[slots[k]] += 1
    for s in range(states):
        for a in range(actions):
            if visits[s, a] > 0:
                p = s * actions + a
                for o in range(outcomes.row_start[p], outcomes.row_start[p + 1]):
                    probability[o] = counts[o] / visits[s, a]
    nothing = np.zeros(shape)
    return RunStatistics(
        Outcomes(outcomes.row_start, outcomes.successor, probability),
        *(visits, reward_mean, nothing, nothing, nothing, counts, np.zeros(counts.size)),
        np.zeros(states, dtype=np.int64),
    )


@compiled
def _explain(
    fold: int,
    steps: Steps,
    table: RunStatistics,
    values: FloatArray,
    tried: FloatArray,
    initial: FloatArray,
    known_initial: bool,
    discount: float,
    explained: FloatArray,
) -> None:
    """What the table says that actions, and the first state, added to returns of the fold.

    An action without data stands for the mean of the others, and adds nothing: so the mean over
    the policy is zero.
    """
    row_start, successors, probability = table.outcomes
    states, actions = tried.shape
    first = 0.0
    for s in range(states):
        first += initial[s] * values[0, s]
    for i in range(fold, steps.start.size - 1, FOLDS):
        total = 0.0
        if known_initial:
            total = values[0, steps.states[steps.start[i]]] - first
        fading = 1.0
        for k in range(steps.start[i], steps.start[i + 1]):
            s, a = steps.states[k], steps.actions[k]
            t = k - steps.start[i]
            if tried[s, a] > 0.0:
                p = s * actions + a
                worth = table.reward_mean[s, a]
                for o in range(row_start[p], row_start[p + 1]):
                    worth += discount * probability[o] * values[t + 1, successors[o]]
                total += fading * (worth - values[t, s])
            fading *= discount
        explained[i] = total


@compiled
def _credible_share(fold: int, returns: FloatArray, explained: FloatArray) -> float:
    """How much of what is explained to take off, as the other folds tell: none that is not sure.

    The slope of returns on it, between 0 and 1, times 1 - (standard error / slope)^2.
    """
    count = 0
    mean_return = 0.0
    mean_explained = 0.0
    for i in range(returns.size):
        if i % FOLDS != fold:
            count += 1
            mean_return += returns[i]
            mean_explained += explained[i]
    mean_return /= count
    mean_explained /= count
    both = 0.0
    squares = 0.0
    left = 0.0
    for i in range(returns.size):
        if i % FOLDS != fold:
            apart = explained[i] - mean_explained
            both += apart * (returns[i] - mean_return)
            squares += apart * apart
            left += (returns[i] - mean_return) ** 2
    if both <= 0.0:
        return 0.0
    slope = both / squares
    error = max(0.0, left - slope * both) / (max(1, count - 2) * squares)
    return float(min(1.0, slope) * max(0.0, 1.0 - error / slope**2))
