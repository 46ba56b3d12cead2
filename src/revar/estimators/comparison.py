"""What collecting on-policy would have given, by the costs that the data suggests."""

import numpy as np

from revar.estimators.certainty_equivalence import pair_errors
from revar.model.arrays import FloatArray
from revar.model.reachability import reachable_layers
from revar.model.statistics import Observed
from revar.model.task import Task
from revar.theory.recursions import backward_values, forward_occupancy


def variance_by_pair(task: Task, observed: Observed) -> FloatArray:
    """What each pair adds to the variance of the estimate, [S, A]."""
    initial = observed.initial_count / observed.initial_count.sum()
    return _errors(task, observed, initial)[0]


def on_policy_variance(task: Task, observed: Observed) -> float:
    """K*MSE of certainty equivalence if pairs had been visited as the target policy does."""
    initial = observed.initial_count / observed.initial_count.sum()
    errors, first = _errors(task, observed, initial)
    behavior = task.policy[None]
    per_episode = forward_occupancy(observed.outcomes, initial, behavior, task.horizon).sum(axis=0)
    costly = errors > 0
    spent = np.sum(errors[costly] * observed.visits[costly] / per_episode[costly])
    return float(spent + initial @ (first - initial @ first) ** 2)


def _errors(task: Task, observed: Observed, initial: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The errors of all pairs, and the values of first states."""
    outcomes = observed.outcomes
    layers = reachable_layers(outcomes, initial, task.policy > 0, task.horizon)
    values = backward_values(outcomes, observed.reward_mean, task.policy, layers, task.discount)
    errors = pair_errors(
        outcomes,
        initial,
        task.policy,
        values,
        layers,
        task.discount,
        observed.visits,
        observed.reward_squares,
        observed.outcome_reward_mean,
        False,
    )
    return errors, values[0, : task.states]
