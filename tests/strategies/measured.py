"""K*MSE of a strategy: measured over many runs, and predicted from the visits it made."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from revar import one_step_costs, simulate
from revar.problems import Problem, problems
from revar.simulation.result import SimulationResult
from revar.strategies import Strategy


@cache
def problem_of(problem_id: str) -> Problem:
    """A problem of the paper with its defaults."""
    return problems.find(problem_id)()


@cache
def simulated(
    problem_id: str, strategy: str | Strategy, episodes: int, runs: int
) -> SimulationResult:
    """All runs with seed 0, estimated after the last episode."""
    problem = problem_of(problem_id)
    return simulate(
        problem.mdp,
        problem.policy,
        strategy,
        episodes=episodes,
        runs=runs,
        seed=0,
        checkpoints=[episodes],
    )


@dataclass(frozen=True)
class Measured:
    """A mean over runs, and its standard error."""

    mean: float
    error: float

    def is_within(self, count: float, expected: float) -> bool:
        """Whether the mean lies that many standard errors around what is expected."""
        return abs(self.mean - expected) < count * self.error

    def lies_below(self, other: "Measured", count: float) -> bool:
        """Whether it is smaller, by that many standard errors of the difference."""
        return other.mean - self.mean > count * float(np.hypot(self.error, other.error))


def scaled_mse(result: SimulationResult) -> Measured:
    """K*MSE at the last checkpoint."""
    episodes = int(result.checkpoints[-1])
    return Measured(
        episodes * float(result.mse[-1]), episodes * float(result.mse_standard_error[-1])
    )


def predicted_mse(problem: Problem, result: SimulationResult) -> Measured:
    """K * sum C/T over the pairs that cost anything: the delta method, from each run's visits.

    It varies far less from run to run than squared errors do. What stands in for a pair without
    data is worth a visit.
    """
    costs = one_step_costs(problem.mdp, problem.policy)
    visits = np.maximum(result.visits, 1)
    each = int(result.checkpoints[-1]) * (costs / visits).sum(axis=(1, 2))
    return Measured(float(each.mean()), float(each.std(ddof=1) / np.sqrt(each.size)))
