"""Contracts that every strategy, estimator, problem and storage must pass, for third parties too.

Each check is a function of a factory (a class, or any callable without arguments) that raises an
AssertionError naming what is broken. In a test suite of your own:

    @pytest.mark.parametrize("check", STRATEGY_CHECKS)
    def test_my_strategy(check):
        check(MyStrategy)
"""

from revar.testing.estimators import ESTIMATOR_CHECKS, check_estimator
from revar.testing.problems import PROBLEM_CHECKS, check_problem
from revar.testing.storages import STORAGE_CHECKS, check_storage
from revar.testing.strategies import STRATEGY_CHECKS, check_strategy

__all__ = [
    "ESTIMATOR_CHECKS",
    "PROBLEM_CHECKS",
    "STORAGE_CHECKS",
    "STRATEGY_CHECKS",
    "check_estimator",
    "check_problem",
    "check_storage",
    "check_strategy",
]
