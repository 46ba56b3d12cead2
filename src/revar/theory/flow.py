"""Optimal flow: the smallest possible K*MSE on any finite-horizon model, with a certificate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.structure import reachable_layers
from revar.model.task import check_policy
from revar.theory.costs import one_step_costs
from revar.theory.flow_steps import (
    accelerated_sweeps,
    best_mixture,
    best_reply,
    flow_of,
    mix,
    objective,
)
from revar.theory.proportions import fallback_shares

# Work before the solver gives up on the tolerance and reports the gap it has reached.
MOST_SWEEPS = 200_000
FIRST_SWEEPS = 16


@dataclass(frozen=True, eq=False)
class OptimalFlow:
    """The best way to collect, what it achieves, and how far from the best it can be."""

    behavior: FloatArray  # [L, S, A]
    limit: float  # K*MSE under the behavior
    gap: float  # no behavior has a K*MSE below limit - gap


def optimal_flow(
    mdp: TabularMDP, policy: Any, *, known_transitions: bool = False, tolerance: float = 1e-4
) -> OptimalFlow:
    """Minimise sum C/X over all behaviors, to a certified gap of `tolerance` times the limit.

    Accelerated sweeps move the bulk of the flow; steps towards the best reply (Frank and Wolfe
    1956) raise what the sweeps have starved, and each of them bounds the optimum from below: for
    any prices p, K*MSE >= (sum sqrt(C p))^2 / (the most that an episode can earn at prices p).
    """
    if not tolerance > 0.0:
        raise InputError(f"tolerance is {tolerance}; it must be positive")
    target = check_policy(mdp, policy)
    costs = one_step_costs(mdp, target, known_transitions=known_transitions)
    start = 0.5 * (fallback_shares(target) + 1.0 / mdp.actions)
    behavior = np.repeat(start[None], mdp.horizon, axis=0)
    if not np.any(costs > 0):
        return OptimalFlow(behavior, 0.0, 0.0)
    solver = _Solver(mdp, costs, behavior)
    sweeps, done = FIRST_SWEEPS, 0
    while True:
        solver.sweep(sweeps)
        solver.step_to_replies(sweeps, tolerance)
        done += sweeps
        if solver.gap <= tolerance * solver.value or done >= MOST_SWEEPS:
            return OptimalFlow(solver.behavior, solver.value, solver.gap)
        sweeps *= 2


class _Solver:
    """The flow at hand, its objective, and the best lower bound so far."""

    def __init__(self, mdp: TabularMDP, costs: FloatArray, behavior: FloatArray) -> None:
        everything = np.ones(costs.shape, dtype=bool)
        layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, everything, mdp.horizon)
        self.model = (mdp.arrays.outcomes, mdp.arrays.initial, layers)
        self.costs = costs
        self.none = np.zeros(costs.shape)  # no visits so far
        self.behavior = behavior
        self.flow = np.zeros(behavior.shape)
        self.visits = np.zeros(costs.shape)
        self.prices = np.zeros(costs.shape)
        self.spare = np.zeros((2, mdp.states + 1))
        self.value = np.inf
        self.bound = 0.0

    @property
    def gap(self) -> float:
        return max(0.0, self.value - self.bound)

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
            if self.gap <= tolerance * self.value:
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
