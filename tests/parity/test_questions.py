"""Several target policies: the compiled loop against the plain one, and threads, and parts."""

from typing import Any

import numpy as np
import pytest

from revar import Best, Difference, Question, Values, simulate
from revar.estimators import CertaintyEquivalence, Estimator
from revar.problems import Problem
from revar.simulation.result import SimulationResult
from revar.strategies import Flow, OnPolicy, Strategy, strategies
from revar.testing.contracts import PER_RUN, expect_same_results
from tests.parity.models import PROBLEMS

NAMES = [
    *("tree", "gridworld", "riverswim", "crossroads"),
    *("layered-bernoulli", "general-two-point-by-outcome"),
]
KINDS = ("difference", "values", "best", "contrasts")


def question_of(problem: Problem, kind: str) -> Question:
    """About the target policy, one with other shares, and one that takes a single action."""
    policy = problem.policy
    rng = np.random.default_rng(2)
    weights = policy * rng.exponential(size=policy.shape)
    totals = weights.sum(axis=1, keepdims=True)
    shifted = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
    single = np.eye(policy.shape[1])[policy.argmax(axis=1)] * policy.any(axis=1, keepdims=True)
    if kind == "difference":
        return Difference(policy, shifted)
    if kind == "values":
        return Values([policy, shifted, single], [1.0, 0.5, 2.0])
    if kind == "best":
        return Best([policy, shifted, single])
    return Question([policy, shifted, single], [[1.0, -1.0, 0.0], [0.0, 0.5, -0.5]])


def played(
    name: str,
    kind: str,
    strategy: str | Strategy,
    estimator: str | Estimator = "certainty-equivalence",
    **options: Any,
) -> SimulationResult:
    problem = PROBLEMS[name]
    return simulate(
        problem.mdp,
        question_of(problem, kind),
        strategy,
        estimator=estimator,
        **{"episodes": 15, "runs": 2, "seed": 5, "keep_episodes": True, **options},
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("strategy_id", strategies.ids())
def test_strategies(strategy_id: str, name: str) -> None:
    compiled, plain = (played(name, "difference", strategy_id, compiled=c) for c in (None, False))
    expect_same_results(compiled, plain, f"{strategy_id} on {name}")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy_id", ["flow", "on-policy", "uniform", "ros", "revar"])
def test_questions(strategy_id: str, kind: str, name: str) -> None:
    compiled, plain = (
        played(name, kind, strategy_id, episodes=40, compiled=c) for c in (True, False)
    )
    expect_same_results(compiled, plain, f"{kind} with {strategy_id} on {name}")
    shape = () if kind == "difference" else (2,) if kind == "contrasts" else (3,)
    assert compiled.estimates.shape[2:] == shape
    assert np.shape(compiled.true_value) == shape


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", [Flow(known_transitions=True), OnPolicy()], ids=repr)
def test_known_transitions(strategy: Strategy, kind: str) -> None:
    known = CertaintyEquivalence(known_transitions=True)
    compiled, plain = (
        played("crossroads", kind, strategy, known, compiled=c) for c in (True, False)
    )
    expect_same_results(compiled, plain, f"{kind} with {strategy!r}, transitions known")


def test_shares_of_policies() -> None:
    strategy = OnPolicy(shares=(1, 2))
    compiled, plain = (
        played("gridworld", "difference", strategy, compiled=c) for c in (True, False)
    )
    expect_same_results(compiled, plain, repr(strategy))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy_id", ["flow", "on-policy"])
def test_threads_and_parts_change_nothing(strategy_id: str, kind: str) -> None:
    whole = played("gridworld", kind, strategy_id, runs=5, threads=1)
    threads = played("gridworld", kind, strategy_id, runs=5, threads=3)
    expect_same_results(whole, threads, f"{kind} with {strategy_id} on 1 and 3 threads")
    parts = [
        played("gridworld", kind, strategy_id, runs=count, first_run=first)
        for first, count in ((0, 2), (2, 3))
    ]
    for field in PER_RUN:
        joined = np.concatenate([getattr(part, field) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, field), strict=True)


def test_answers_are_combinations_of_the_values() -> None:
    result = played("gridworld", "contrasts", "flow", episodes=30)
    rows = np.array([[1.0, -1.0, 0.0], [0.0, 0.5, -0.5]])
    np.testing.assert_allclose(result.estimates, result.values @ rows.T, rtol=1e-12)
    variances = np.einsum("qj,rcjk,qk->rcq", rows, result.covariances, rows)
    finite = np.isfinite(variances)
    np.testing.assert_allclose(
        result.standard_errors[finite] ** 2, variances[finite], rtol=1e-9, atol=1e-15
    )
    assert np.isinf(result.standard_errors[~finite]).all()


def test_one_policy_asked_as_a_question_is_the_policy() -> None:
    problem = PROBLEMS["gridworld"]
    for strategy in ("flow", "on-policy", "revar"):
        asked, plain = (
            simulate(problem.mdp, question, strategy, episodes=20, runs=2, keep_episodes=True)
            for question in (Question([problem.policy], [[1.0]]), problem.policy)
        )
        expect_same_results(asked, plain, f"{strategy} asked for one value")
