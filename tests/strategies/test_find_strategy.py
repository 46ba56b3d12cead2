import re

import pytest

from revar.errors import InputError
from revar.strategies import (
    ConfidenceBoundVariance,
    OnPolicy,
    Oracle,
    ReducedVariance,
    Uniform,
    find_strategy,
    strategies,
)


def test_the_papers_strategies_are_found_by_id() -> None:
    assert find_strategy("on-policy") == OnPolicy()
    assert find_strategy("uniform") == Uniform()
    assert find_strategy("cb-var") == ConfidenceBoundVariance(reward_bound=1.0)
    assert find_strategy("oracle") == Oracle()
    assert find_strategy("revar") == ReducedVariance(
        confidence_scale=1.0, failure_probability=0.05, replan_every=1
    )


def test_a_strategy_is_taken_as_it_is() -> None:
    chosen = ReducedVariance(confidence_scale=0.1)
    assert find_strategy(chosen) is chosen


def test_unknown_ids_name_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        find_strategy("onpolicy")
    assert str(caught.value) == "unknown strategy 'onpolicy'; did you mean 'on-policy'?"


@pytest.mark.parametrize("other", [3, None, ReducedVariance, [0.5, 0.5]])
def test_anything_else_is_refused(other: object) -> None:
    known = ", ".join(strategies.ids())
    expected = f"strategy is {other!r}; it must be an id (one of {known}) or a Strategy"
    with pytest.raises(InputError, match=re.escape(expected)):
        find_strategy(other)  # type: ignore[arg-type]
