"""The best mixture of a few flows against a general solver."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from revar.theory.mixtures import MixedFunctions, best_mixture_of

cp: Any = import_module("cvxpy")


@pytest.mark.parametrize("seed", range(40))
def test_it_agrees_with_a_general_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, pairs = int(rng.integers(2, 25)), int(rng.integers(1, 30))
    questions, limits = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    costs = rng.exponential(size=(questions, pairs)) ** 2
    visits = rng.exponential(size=(count, pairs)) ** 2 * (rng.random((count, pairs)) < 0.5)
    visits[0] = 0.1 + rng.random(pairs)
    sums = rng.normal(size=(limits, count))
    sums[:, 0] = -0.05 - rng.random(limits)
    minimised = np.arange(questions + limits) < questions
    start = np.full(count, 1e-3 / count)
    start[0] += 1.0 - start.sum()

    shares = cp.Variable(count, nonneg=True)
    rules = [cp.sum(shares) == 1]
    if limits:
        rules.append(sums @ shares <= 0)
    problem = cp.Problem(cp.Minimize(cp.max(costs @ cp.inv_pos(visits.T @ shares))), rules)
    smallest = float(problem.solve(solver=cp.CLARABEL))

    functions = MixedFunctions(costs / smallest, visits, sums, minimised)
    found = best_mixture_of(functions, start, 1e-7)
    values, slopes = functions.values(found.shares)
    assert values[minimised].max() == pytest.approx(1.0, abs=2e-6)
    assert (values[~minimised] <= 1e-12).all()
    assert found.shares.sum() == pytest.approx(1.0, rel=1e-12)
    assert (found.shares > 0).all()
    # The multipliers prove it: no flow lowers the weighted sum.
    assert (found.multipliers >= 0).all()
    assert found.multipliers[minimised].sum() == pytest.approx(1.0, rel=1e-12)
    slope = found.multipliers @ slopes
    assert slope.min() >= slope @ found.shares - 1e-5


def test_the_most_room_below_limits() -> None:
    # Rows 2w - 1 and 1 - 3w in the share w of the first flow: equal at 0.4, where both are -0.2.
    found = best_mixture_of(
        MixedFunctions.of_sums(np.array([[1.0, -1.0], [-2.0, 1.0]])), np.array([0.5, 0.5]), 1e-10
    )
    assert found.shares == pytest.approx([0.4, 0.6], abs=1e-9)
    # Weights 0.6 and 0.4 make all mixtures equal.
    assert found.multipliers == pytest.approx([0.6, 0.4], abs=1e-9)
