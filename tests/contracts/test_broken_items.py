"""Every contract catches what breaks it; otherwise passing it would mean nothing."""

from collections.abc import Callable
from math import isnan
from typing import Any

import pytest

from revar.model.statistics import VisitStatistics
from revar.strategies import OnPolicy
from revar.testing import ESTIMATOR_CHECKS, PROBLEM_CHECKS, STRATEGY_CHECKS
from revar.testing.plans import check_bad_rewards_are_refused
from tests.contracts.broken import BROKEN_ESTIMATORS, BROKEN_PROBLEMS, BROKEN_STRATEGIES

Check = Callable[[Callable[[], Any]], None]
KINDS: list[tuple[tuple[Check, ...], dict[str, Any]]] = [
    (STRATEGY_CHECKS, BROKEN_STRATEGIES),
    (ESTIMATOR_CHECKS, BROKEN_ESTIMATORS),
    (PROBLEM_CHECKS, BROKEN_PROBLEMS),
]
CASES = [
    pytest.param(check, broken, id=f"{check.__name__}-{broken.__name__}")
    for checks, examples in KINDS
    for check in checks
    for broken in examples.get(check.__name__, [])
]


@pytest.mark.parametrize(("check", "broken"), CASES)
def test_contracts_catch_what_breaks_them(check: Check, broken: Callable[[], Any]) -> None:
    with pytest.raises(AssertionError) as caught:
        check(broken)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_statistic_that_takes_nan_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    record_step = VisitStatistics.record_step

    def credulous(
        self: VisitStatistics, state: int, action: int, reward: float, successor: int
    ) -> None:
        record_step(self, state, action, 0.0 if isnan(reward) else reward, successor)

    monkeypatch.setattr(VisitStatistics, "record_step", credulous)
    with pytest.raises(AssertionError, match=r"a reward of nan under OnPolicy.*raises nothing"):
        check_bad_rewards_are_refused(OnPolicy)


def test_every_contract_has_something_that_breaks_it() -> None:
    caught = {check_bad_rewards_are_refused.__name__}
    for checks, examples in KINDS:
        names = {check.__name__ for check in checks}
        assert set(examples) <= names
        caught |= set(examples)
    # The contracts of parameters are shared: strategies stand for estimators there.
    assert {check.__name__ for checks, _ in KINDS for check in checks} == caught
