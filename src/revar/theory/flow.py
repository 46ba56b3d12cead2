"""Optimal flow: the smallest possible K*MSE on any finite-horizon model, with a certificate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.limits import Limits, check_limits
from revar.model.mdp import TabularMDP
from revar.model.records import in_a_line
from revar.model.structure import reachable_layers
from revar.model.task import check_question
from revar.theory.costs import combination_costs, find_leader, one_step_costs, weighted_sum
from revar.theory.flow_steps import (
    accelerated_sweeps,
    best_mixture,
    best_reply,
    flow_of,
    mix,
    objective,
)
from revar.theory.limited_flow import LimitedSolver
from revar.theory.proportions import fallback_shares
from revar.theory.restrictions import Restrictions

# Work before the solver gives up on the tolerance and reports the gap it has reached.
MOST_SWEEPS = 200_000
FIRST_SWEEPS = 16
# A weight of zero could never grow again; this one takes less than its share from the bound.
LEAST_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class OptimalFlow:
    """The best way to collect, what it achieves, and how far from the best it can be.

    `weights` says how much each combination of the question matters; of Best, each difference of a
    policy to the leader, whose own weight is zero. Where a cost is given, the limit is K*MSE times
    the cost of an episode: the error times what was spent.
    """

    behavior: FloatArray  # [L, S, A]
    limit: float  # K*MSE under the behavior; of Best, the largest over its squared gap
    gap: float  # no behavior has a K*MSE below limit - gap
    weights: FloatArray  # [Q]
    cost: float = 1.0  # what an episode costs, 1 where no cost is given

    __repr__ = in_a_line


def optimal_flow(
    mdp: TabularMDP,
    question: Any,
    *,
    known_transitions: bool = False,
    tolerance: float = 1e-4,
    cost: Any = None,
    limits: Limits | None = None,
) -> OptimalFlow:
    """Minimise sum C/X over all behaviors, to a certified gap.

    Accelerated sweeps move the bulk of the flow; steps towards the best reply (Frank and Wolfe
    1956) raise what the sweeps have starved, and each of them bounds the optimum from below: for
    any prices p, K*MSE >= (sum sqrt(C p))^2 / (the most that an episode can earn at prices p).
    For Best the largest of several such sums is minimised: any weighted mean of them bounds it, and
    weights rise on the largest until they balance.

    Parameters
    ----------
    mdp
        The model.
    question
        A policy [S, A], or a Question.
    known_transitions
        Whether transitions are known, so that only the noise of rewards counts.
    tolerance
        The certified gap, as a share of the limit.
    cost
        What a visit costs: "steps" (1 each) or an array [S, A]; then the error times the cost of an
        episode is minimised.
    limits
        What the behavior may not do.
    """
    if not tolerance > 0.0:
        raise InputError(f"tolerance is {tolerance}; it must be positive")
    asked = check_question(mdp, question)
    if asked.combinations.best:
        costs = combination_costs(mdp, asked, known_transitions)
    else:
        costs = one_step_costs(mdp, asked, known_transitions=known_transitions)[None]
    solver: _Solver | LimitedSolver
    if cost is None and check_limits(limits).none:
        start = 0.5 * (fallback_shares(asked.policy) + 1.0 / mdp.actions)
        solver = _Solver(mdp, costs, np.repeat(start[None], mdp.horizon, axis=0))
    else:
        solver = LimitedSolver(Restrictions(mdp, asked, cost, limits), costs)
    solver.solve(tolerance)
    weights = asked.combinations.weights
    if asked.combinations.best:
        weights = np.insert(solver.weights, find_leader(mdp, asked.policies)[0], 0.0)
    return OptimalFlow(solver.behavior, solver.limit, solver.gap, weights, solver.cost)


class _Solver:
    """The flow at hand, the largest of its objectives, and the best lower bound so far."""

    def __init__(self, mdp: TabularMDP, objectives: FloatArray, behavior: FloatArray) -> None:
        self.objectives = objectives  # [Q, S, A], the costs of each
        self.weights = np.full(len(objectives), 1.0 / len(objectives))  # [Q]
        self.values = np.zeros(len(objectives))  # [Q]
        self.costs = weighted_sum(self.weights, objectives)
        everything = np.ones(self.costs.shape, dtype=bool)
        layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, everything, mdp.horizon)
        self.model = (mdp.arrays.outcomes, mdp.arrays.initial, layers)
        self.none = np.zeros(self.costs.shape)  # no visits so far
        self.behavior = behavior
        self.flow = np.zeros(behavior.shape)
        self.visits = np.zeros(self.costs.shape)
        self.prices = np.zeros(self.costs.shape)
        self.spare = np.zeros((2, mdp.states + 1))
        self.value = 0.0  # the weighted mean of `values`
        self.bound = 0.0
        self.cost = 1.0

    @property
    def limit(self) -> float:
        return float(self.values.max())

    @property
    def gap(self) -> float:
        return max(0.0, self.limit - self.bound)

    def solve(self, tolerance: float) -> None:
        if not np.any(self.costs > 0):
            return
        # Half of the gap is left to weights that are not balanced yet.
        own_tolerance = tolerance if len(self.weights) == 1 else 0.5 * tolerance
        sweeps, done = FIRST_SWEEPS, 0
        while True:
            self.sweep(sweeps)
            self.step_to_replies(sweeps, own_tolerance)
            self.measure()
            done += sweeps
            if self.gap <= tolerance * self.limit or done >= MOST_SWEEPS:
                return
            # What is missing more: a better flow for these weights, or better weights?
            if self.value - self.bound >= self.limit - self.value:
                sweeps *= 2
            self.balance()

    def measure(self) -> None:
        """Every objective at the visits at hand."""
        for number, costs in enumerate(self.objectives):
            self.values[number] = objective(costs, self.none, 1.0, self.visits, self.prices)

    def balance(self) -> None:
        """Raise the weights of the largest objectives: w F^2, made to sum to 1.

        Of all weights these maximise sum sqrt(w w' F^2), which is a bound of sum sqrt(C p) from
        below, exact at the old weights: at the prices at hand the bound on the optimum rises.
        """
        if len(self.weights) == 1:
            return
        raised = self.weights * (self.values / self.limit) ** 2
        raised = np.maximum(raised / raised.sum(), LEAST_WEIGHT)
        self.weights = raised / raised.sum()
        self.costs = weighted_sum(self.weights, self.objectives)

    def sweep(self, count: int) -> None:
        accelerated_sweeps(*self.model, self.costs, self.none, 1.0, self.behavior, count)
        flow_of(*self.model, self.behavior, self.flow, self.visits, self.spare)

    def step_to_replies(self, most: int, tolerance: float) -> None:
        outcomes, initial, layers = self.model
        reply = np.zeros(self.behavior.shape)
        reply_flow = np.zeros(self.behavior.shape)
        reply_visits = np.zeros(self.costs.shape)
        for _ in range(most):
            self.value = objective(self.costs, self.none, 1.0, self.visits, self.prices)
            earned = best_reply(outcomes, initial, layers, self.prices, reply, self.spare)
            # At these prices sum sqrt(C p) is the value itself.
            self.bound = max(self.bound, self.value**2 / earned)
            if self.value - self.bound <= tolerance * self.value:
                return
            flow_of(*self.model, reply, reply_flow, reply_visits, self.spare)
            share = best_mixture(self.costs, self.none, 1.0, self.visits, reply_visits)
            mix(
                layers,
                self.behavior,
                self.flow,
                self.visits,
                reply_flow,
                reply_visits,
                share,
            )
        self.value = objective(self.costs, self.none, 1.0, self.visits, self.prices)
