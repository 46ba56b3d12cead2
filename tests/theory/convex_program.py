"""The smallest K*MSE as a convex program over occupancies, handed to a general solver."""

from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from revar import TabularMDP, occupancy, one_step_costs
from tests.plain_model import Floats

cp: Any = import_module("cvxpy")  # what it annotates differs from version to version

# How far, relatively, the solver's optimum may lie from the true one.
ACCURACY = 2e-5


def smallest_error(mdp: TabularMDP, policy: Floats, *, known_transitions: bool = False) -> float:
    """min sum C / sum_t x_t over flows x [L, S, A]: what enters a state leaves it by an action.

    Flows, balances and visits are all measured in multiples of those of a mixture of the target
    policy and equal shares (the target policy's own may be zero): unscaled, the solver is content
    with results 0.7% off.
    """
    costs = one_step_costs(mdp, policy, known_transitions=known_transitions).ravel()
    needed = np.flatnonzero(costs)
    if needed.size == 0:
        return 0.0
    steps = sparse.eye_array(mdp.horizon)
    before = sparse.eye_array(mdp.horizon, k=-1)
    leaving = sparse.kron(sparse.eye_array(mdp.states), np.ones((1, mdp.actions)))
    balance = sparse.kron(steps, leaving) - sparse.kron(before, mdp.transitions.T)
    entering = np.zeros(mdp.horizon * mdp.states)
    entering[: mdp.states] = mdp.initial
    summed = sparse.kron(np.ones((1, mdp.horizon)), sparse.eye_array(costs.size))

    rows = np.where(policy.sum(axis=1, keepdims=True) > 0, policy, 1.0 / mdp.actions)
    unit = occupancy(mdp, 0.5 * (rows + 1.0 / mdp.actions)).ravel()
    possible = np.flatnonzero(unit)
    state_unit = sparse.kron(steps, leaving) @ unit
    present = np.flatnonzero(state_unit)
    visit_unit = (summed @ unit)[needed]
    in_units = sparse.diags_array(unit[possible])
    balance = _divided(balance.tocsr()[present][:, possible] @ in_units, state_unit[present])
    summed = _divided(summed.tocsr()[needed][:, possible] @ in_units, visit_unit)
    weight = costs[needed] / visit_unit

    flow = cp.Variable(possible.size, nonneg=True)
    problem = cp.Problem(
        cp.Minimize((weight / weight.sum()) @ cp.inv_pos(summed @ flow)),
        [balance @ flow == entering[present] / state_unit[present]],
    )
    problem.solve(solver=cp.CLARABEL)
    if problem.status != cp.OPTIMAL:
        raise RuntimeError(f"the reference solver ends with status {problem.status}")
    return float(problem.value * weight.sum())


def _divided(matrix: sparse.csr_array, by: Floats) -> sparse.csr_array:
    """Every row divided by its own number."""
    return sparse.diags_array(1.0 / by) @ matrix
