"""The smallest K*MSE as a convex program over occupancies, handed to a general solver."""

from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from revar import Difference, TabularMDP, occupancy, one_step_costs, policy_value
from revar.model.task import check_question
from tests.plain_model import Floats

cp: Any = import_module("cvxpy")  # what it annotates differs from version to version

# How far, relatively, the solver's optimum may lie from the true one.
ACCURACY = 2e-5


def smallest_error(mdp: TabularMDP, question: Any, *, known_transitions: bool = False) -> float:
    """min sum C / sum_t x_t over flows x [L, S, A]: what enters a state leaves it by an action.

    For Best the largest of several such sums is minimised. Flows, balances and visits are all
    measured in multiples of those of a mixture of the mean of the target policies and equal shares
    (the target policies' own may be zero): unscaled, the solver is content with results 0.7% off.
    """
    costs = _costs(mdp, question, known_transitions)
    needed = np.flatnonzero(costs.any(axis=0))
    if needed.size == 0:
        return 0.0
    steps = sparse.eye_array(mdp.horizon)
    before = sparse.eye_array(mdp.horizon, k=-1)
    leaving = sparse.kron(sparse.eye_array(mdp.states), np.ones((1, mdp.actions)))
    balance = sparse.kron(steps, leaving) - sparse.kron(before, mdp.transitions.T)
    entering = np.zeros(mdp.horizon * mdp.states)
    entering[: mdp.states] = mdp.initial
    summed = sparse.kron(np.ones((1, mdp.horizon)), sparse.eye_array(costs.shape[1]))

    policy = check_question(mdp, question).policy
    rows = np.where(policy.sum(axis=1, keepdims=True) > 0, policy, 1.0 / mdp.actions)
    unit = occupancy(mdp, 0.5 * (rows + 1.0 / mdp.actions)).ravel()
    possible = np.flatnonzero(unit)
    state_unit = sparse.kron(steps, leaving) @ unit
    present = np.flatnonzero(state_unit)
    visit_unit = (summed @ unit)[needed]
    in_units = sparse.diags_array(unit[possible])
    balance = _divided(balance.tocsr()[present][:, possible] @ in_units, state_unit[present])
    summed = _divided(summed.tocsr()[needed][:, possible] @ in_units, visit_unit)
    weights = costs[:, needed] / visit_unit
    largest = weights.sum(axis=1).max()

    flow = cp.Variable(possible.size, nonneg=True)
    problem = cp.Problem(
        cp.Minimize(cp.max((weights / largest) @ cp.inv_pos(summed @ flow))),
        [balance @ flow == entering[present] / state_unit[present]],
    )
    problem.solve(solver=cp.CLARABEL)
    if problem.status != cp.OPTIMAL:
        raise RuntimeError(f"the reference solver ends with status {problem.status}")
    return float(problem.value * largest)


def _costs(mdp: TabularMDP, question: Any, known: bool) -> Floats:
    """What each of the sums to minimise costs, [sums, S A]: one, but for Best."""
    asked = check_question(mdp, question)
    if not asked.combinations.best:
        return one_step_costs(mdp, asked, known_transitions=known).reshape(1, -1)
    values = [policy_value(mdp, policy) for policy in asked.policies]
    leader = int(np.argmax(values))
    rows = []
    for other, policy in enumerate(asked.policies):
        if other != leader:
            difference = Difference(asked.policies[leader], policy)
            costs = one_step_costs(mdp, difference, known_transitions=known)
            rows.append(costs.ravel() / (values[leader] - values[other]) ** 2)
    return np.stack(rows)


def _divided(matrix: sparse.csr_array, by: Floats) -> sparse.csr_array:
    """Every row divided by its own number."""
    return sparse.diags_array(1.0 / by) @ matrix
