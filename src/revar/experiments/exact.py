"""Exact values of a problem: the policy's value, and the errors that theory predicts."""

from math import isfinite

import msgspec
import numpy as np

from revar.experiments.experiment import Choice, build_problem
from revar.model.arrays import FloatArray
from revar.theory.costs import one_step_costs, variance_of_visits
from revar.theory.flow import optimal_flow
from revar.theory.proportions import sampling_proportions
from revar.theory.values import occupancy, policy_value, return_variance

# Relative accuracy to which the limit is certified.
LIMIT_TOLERANCE = 1e-3

Pairs = list[list[float]]  # [state][action]


class ExactValues(msgspec.Struct, frozen=True, kw_only=True):
    """Exact values of a problem. Errors are K*MSE for large budgets K; None is infinite."""

    problem: str
    id: str
    structure: str
    states: int
    actions: int
    horizon: int
    value: float
    monte_carlo: float  # the variance of the return: plain averaging, on-policy
    on_policy: float | None
    oracle: float | None  # the paper's proportions
    limit: float
    limit_gap: float  # the limit is certified to lie at most this much lower
    policy: Pairs
    oracle_behavior: Pairs
    oracle_visits: Pairs  # visits per episode
    optimal_visits: Pairs  # visits per episode

    def scaled_errors(self) -> dict[str, float]:
        """The closed-form lines of a plot, by name."""
        lines = {"on-policy": self.on_policy, "oracle": self.oracle, "limit": self.limit}
        return {name: error for name, error in lines.items() if error is not None}


def compute_exact_values(choice: Choice, *, known_transitions: bool) -> ExactValues:
    """Compute what theory says of a problem."""
    problem = build_problem(choice)
    mdp, policy = problem.mdp, np.asarray(problem.policy)
    costs = one_step_costs(mdp, policy, known_transitions=known_transitions)
    oracle = sampling_proportions(mdp, policy).behavior
    oracle_visits = occupancy(mdp, oracle).sum(axis=0)
    flow = optimal_flow(mdp, policy, known_transitions=known_transitions, tolerance=LIMIT_TOLERANCE)
    return ExactValues(
        problem=choice.name,
        id=choice.id,
        structure=mdp.structure().kind,
        states=mdp.states,
        actions=mdp.actions,
        horizon=mdp.horizon,
        value=policy_value(mdp, policy),
        monte_carlo=return_variance(mdp, policy),
        on_policy=_finite(variance_of_visits(costs, occupancy(mdp, policy).sum(axis=0))),
        oracle=_finite(variance_of_visits(costs, oracle_visits)),
        limit=flow.limit,
        limit_gap=flow.gap,
        policy=_table(policy),
        oracle_behavior=_table(oracle),
        oracle_visits=_table(oracle_visits),
        optimal_visits=_table(occupancy(mdp, flow.behavior).sum(axis=0)),
    )


def _finite(number: float) -> float | None:
    return number if isfinite(number) else None


def _table(array: FloatArray) -> Pairs:
    table: Pairs = array.tolist()
    return table
