"""Exact values of a problem: the policy's value, and the errors that theory predicts."""

from math import isfinite

import msgspec
import numpy as np

from revar.experiments.experiment import Choice, build_problem
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.theory.costs import (
    best_split_variance,
    estimation_variance,
    one_step_costs,
    variance_of_visits,
)
from revar.theory.flow import optimal_flow
from revar.theory.proportions import sampling_proportions
from revar.theory.values import occupancy, policy_value, return_variance

# Relative accuracy to which the limit is certified.
LIMIT_TOLERANCE = 1e-3
FLOWS = ("flow", "flow-oracle")  # strategies that come to the limit

Pairs = list[list[float]]  # [state][action]


class Alone(msgspec.Struct, frozen=True, kw_only=True):
    """What theory says of one policy of a difference, had it all episodes to itself."""

    value: float
    on_policy: float | None
    limit: float


class ExactValues(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exact values of a problem. Errors are K*MSE for large budgets K; None is infinite.

    Of a difference, `policy` is the mean of the two, and on-policy episodes follow each in turn.
    """

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
    alone: tuple[Alone, ...] = ()  # of the policies of a difference

    def expected(self, strategy: str, *, apart: bool = False) -> float | None:
        """K*MSE that the strategy of that id comes to; None if it is infinite or not known."""
        if apart and self.alone:
            errors = self._alone(strategy)
            return None if errors is None else len(errors) * sum(errors)
        return self.limit if strategy in FLOWS else self.scaled_errors().get(strategy)

    def best_split(self, strategy: str) -> float | None:
        """The same apart, if the policies' shares of the episodes are the best ones."""
        errors = self._alone(strategy)
        return None if errors is None else best_split_variance(np.array(errors))

    def _alone(self, strategy: str) -> list[float] | None:
        errors = [each.limit if strategy in FLOWS else each.on_policy for each in self.alone]
        known = [error for error in errors if error is not None]
        if strategy not in (*FLOWS, "on-policy") or len(known) < len(errors):
            return None
        return known

    def scaled_errors(self) -> dict[str, float]:
        """The closed-form lines of a plot, by name."""
        lines = {"on-policy": self.on_policy, "oracle": self.oracle, "limit": self.limit}
        return {name: error for name, error in lines.items() if error is not None}


def compute_exact_values(choice: Choice, *, known_transitions: bool) -> ExactValues:
    """Compute what theory says of a problem."""
    problem = build_problem(choice)
    mdp, question = problem.mdp, problem.question
    costs = one_step_costs(mdp, question, known_transitions=known_transitions)
    oracle = sampling_proportions(mdp, question.policy).behavior
    oracle_visits = occupancy(mdp, oracle).sum(axis=0)
    flow = optimal_flow(
        mdp, question, known_transitions=known_transitions, tolerance=LIMIT_TOLERANCE
    )
    row = question.combinations.coefficients[0]  # [J]
    values = np.array([policy_value(mdp, policy) for policy in question.policies])
    returns = np.array([return_variance(mdp, policy) for policy in question.policies])
    # The policies have an equal share of the episodes each.
    in_turn = np.mean([occupancy(mdp, policy).sum(axis=0) for policy in question.policies], axis=0)
    return ExactValues(
        problem=choice.name,
        id=choice.id,
        structure=mdp.structure().kind,
        states=mdp.states,
        actions=mdp.actions,
        horizon=mdp.horizon,
        value=float(row @ values),
        monte_carlo=float(row.size * (row**2 @ returns)),
        on_policy=_finite(variance_of_visits(costs, in_turn)),
        oracle=_finite(variance_of_visits(costs, oracle_visits)),
        limit=flow.limit,
        limit_gap=flow.gap,
        policy=_table(question.policy),
        oracle_behavior=_table(oracle),
        oracle_visits=_table(oracle_visits),
        optimal_visits=_table(occupancy(mdp, flow.behavior).sum(axis=0)),
        alone=tuple(
            _compute_alone(mdp, policy, known_transitions=known_transitions)
            for policy in (question.policies if row.size > 1 else ())
        ),
    )


def _compute_alone(mdp: TabularMDP, policy: FloatArray, *, known_transitions: bool) -> Alone:
    flow = optimal_flow(mdp, policy, known_transitions=known_transitions, tolerance=LIMIT_TOLERANCE)
    on_policy = estimation_variance(mdp, policy, policy, known_transitions=known_transitions)
    return Alone(value=policy_value(mdp, policy), on_policy=_finite(on_policy), limit=flow.limit)


def _finite(number: float) -> float | None:
    return number if isfinite(number) else None


def _table(array: FloatArray) -> Pairs:
    table: Pairs = array.tolist()
    return table
