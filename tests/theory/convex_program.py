"""The smallest K*MSE as a convex program over occupancies, handed to a general solver."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from revar import Difference, TabularMDP, occupancy, one_step_costs, policy_value
from revar.model.task import check_question
from tests.plain_model import Floats
from tests.theory.random_models import Booleans

cp: Any = import_module("cvxpy")  # what it annotates differs from version to version

# How far, relatively, the solver's optimum may lie from the true one.
ACCURACY = 2e-5


@dataclass(frozen=True, eq=False)
class Conditions:
    """What collection costs and may not do, in plain arrays."""

    cost: Floats | None = None  # [S, A] of a visit
    forbidden: Booleans | None = None  # [S, A]
    caps: Floats | None = None  # [S, A] the largest shares
    sums: tuple[tuple[Floats, float], ...] = ()  # amounts [L, S, A], and the most of their sum


def smallest_error(
    mdp: TabularMDP,
    question: Any,
    *,
    known_transitions: bool = False,
    conditions: Conditions | None = None,
) -> float:
    """min sum C / sum_t x_t over flows x [L, S, A]: what enters a state leaves it by an action.

    With a cost the error times the cost of an episode: flows of any scale that cost as much as the
    unit's episode, and the error times that.

    For Best the largest of several such sums is minimised. Flows, balances and visits are all
    measured in multiples of those of a mixture of the mean of the target policies and equal shares
    (the target policies' own may be zero): unscaled, the solver is content with results 0.7% off.
    """
    given = Conditions() if conditions is None else conditions
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
    shares = 0.5 * (rows + 1.0 / mdp.actions)
    if given.forbidden is not None:
        shares = np.where(given.forbidden, 0.0, shares)
        shares /= shares.sum(axis=1, keepdims=True)
    unit = occupancy(mdp, shares).ravel()
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
    episodes = cp.Variable(nonneg=True)
    spent, rules = _rules(mdp, given, flow, episodes, unit)
    rules.append(balance @ flow == episodes * (entering[present] / state_unit[present]))
    problem = cp.Problem(
        cp.Minimize(cp.max((weights / largest) @ cp.inv_pos(summed @ flow))), rules
    )
    problem.solve(solver=cp.CLARABEL)
    if problem.status != cp.OPTIMAL:
        raise RuntimeError(f"the reference solver ends with status {problem.status}")
    return float(problem.value * largest * spent)


def _rules(
    mdp: TabularMDP, given: Conditions, flow: Any, episodes: Any, unit: Floats
) -> tuple[float, list[Any]]:
    """What the unit's episode costs, and constraints on flows in units."""
    possible = np.flatnonzero(unit)
    units = unit[possible]
    spent = 1.0
    rules = [episodes == 1.0]
    if given.cost is not None:
        cost = np.tile(given.cost.ravel(), mdp.horizon)[possible] * units
        spent = float(cost.sum())
        rules = [(cost / spent) @ flow == 1.0]
    if given.caps is not None:
        caps = np.tile(given.caps.ravel(), mdp.horizon)[possible]
        states = sparse.eye_array(mdp.horizon * mdp.states)
        pairs = sparse.kron(states, np.ones((1, mdp.actions))).tocsr()[:, possible]
        in_state = pairs.T @ (pairs @ sparse.diags_array(units))
        rules.append(flow <= _divided(sparse.diags_array(caps) @ in_state, units) @ flow)
    for amounts, most in given.sums:
        of_flow = amounts.ravel()[possible] * units
        size = np.abs(of_flow).sum()
        rules.append((of_flow / size) @ flow <= most / size * episodes)
    return spent, rules


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
