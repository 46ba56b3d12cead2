"""Every item of every registry passes every contract; ids come from the registries alone."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from revar.estimators import CertaintyEquivalence, estimators
from revar.problems import problems
from revar.strategies import ReducedVariance, strategies
from revar.testing import (
    ESTIMATOR_CHECKS,
    PROBLEM_CHECKS,
    STRATEGY_CHECKS,
    check_estimator,
    check_problem,
    check_strategy,
)
from revar.testing.problems import crossroads

Check = Callable[[Callable[[], Any]], None]


@pytest.mark.parametrize("check", STRATEGY_CHECKS)
@pytest.mark.parametrize("strategy_id", strategies.ids())
def test_strategies(strategy_id: str, check: Check) -> None:
    check(strategies.find(strategy_id))


@pytest.mark.parametrize("check", ESTIMATOR_CHECKS)
@pytest.mark.parametrize("estimator_id", estimators.ids())
def test_estimators(estimator_id: str, check: Check) -> None:
    check(estimators.find(estimator_id))


@pytest.mark.parametrize("check", PROBLEM_CHECKS)
@pytest.mark.parametrize("problem_id", problems.ids())
def test_problems(problem_id: str, check: Check) -> None:
    check(problems.find(problem_id))


def test_ids_are_those_of_the_registries() -> None:
    for strategy_id in strategies.ids():
        assert strategies.find(strategy_id).id == strategy_id
    for problem_id in problems.ids():
        assert problems.find(problem_id)().name == problem_id


@pytest.mark.parametrize(
    "strategy",
    [
        ReducedVariance(confidence_scale=0.0),
        ReducedVariance(confidence_scale=0.1, replan_every=3),
        ReducedVariance(known_transitions=True, initial_visits=2),
    ],
    ids=repr,
)
def test_strategies_with_other_parameters(strategy: ReducedVariance) -> None:
    check_strategy(lambda: strategy)


def test_estimators_with_other_parameters() -> None:
    check_estimator(lambda: CertaintyEquivalence(known_transitions=True))


def test_the_sample_with_everything_is_a_problem_itself() -> None:
    check_problem(crossroads)


def test_contracts_do_without_a_test_framework() -> None:
    script = "import sys, revar.testing; print('pytest' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "False"
