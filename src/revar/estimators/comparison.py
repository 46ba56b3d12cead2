"""What other ways to collect would have given with as many episodes, as far as the data tells."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from revar.estimators.believed import believed_model
from revar.estimators.certainty_equivalence import pair_errors
from revar.model.arrays import FloatArray, RunStatistics
from revar.model.mdp import TabularMDP
from revar.model.reachability import reachable_layers
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.theory.costs import one_step_costs, variance_of_visits
from revar.theory.recursions import backward_values
from revar.theory.values import occupancy, return_variance, state_values


@dataclass(frozen=True)
class Comparison:
    """Standard errors at the same number of episodes."""

    on_policy: float  # certainty equivalence from episodes of the target policy
    monte_carlo: float  # the mean return of episodes of the target policy


def compare(task: Task, statistics: VisitStatistics) -> Comparison:
    """From estimated costs: every pair costs what it does, and is visited as on-policy."""
    episodes = int(statistics.episodes)
    observed = statistics.observed(task.states)
    model = believed_model(task, observed)
    visits = occupancy(model, task.policy).sum(axis=0)
    variance = variance_of_visits(estimated_costs(task, observed), visits)
    variance += first_state_variance(model, task)
    return Comparison(
        sqrt(variance / episodes),
        sqrt(return_variance(model, task.policy) / episodes),
    )


def estimated_costs(task: Task, observed: RunStatistics) -> FloatArray:
    """C(s,a) as the standard error has it, with Bessel's correction, [S, A]."""
    initial = observed.initial_count / observed.initial_count.sum()
    layers = reachable_layers(observed.outcomes, initial, task.policy > 0, task.horizon)
    values = backward_values(
        observed.outcomes, observed.reward_mean, task.policy, layers, task.discount
    )
    errors = pair_errors(observed, initial, task.policy, values, layers, task.discount, False)
    return np.asarray(errors * observed.visits)


def costly_model(task: Task, observed: RunStatistics) -> TabularMDP:
    """The believed model, with so much reward noise that its costs are the corrected ones.

    A sample's own variance is too small on average, most of all after few visits.
    """
    model = believed_model(task, observed)
    fading = task.discount ** np.arange(task.horizon, dtype=np.float64)
    weight = np.einsum("t,tsa->sa", fading, occupancy(model, task.policy))
    missing = estimated_costs(task, observed) - one_step_costs(model, task.policy)
    noise = np.divide(missing, weight**2, out=np.zeros_like(missing), where=weight > 0)
    return believed_model(task, observed, extra_variance=noise.clip(min=0.0))


def first_state_variance(model: TabularMDP, task: Task) -> float:
    """What the first state adds to K*MSE where its distribution has to be estimated."""
    values = state_values(model, task.policy)[0]
    return float(model.initial @ (values - model.initial @ values) ** 2)
