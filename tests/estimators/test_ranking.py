"""Ranking: who leads, by how much, and what the intervals say about it."""

from dataclasses import replace

import numpy as np
import pytest

from revar.estimators.estimator import JointEstimate
from revar.estimators.ranking import Ranking, chance_text

NAMES = ("old", "new", "wild", "twin")


def ranking(values: list[float], errors: list[float]) -> Ranking:
    """Values with independent errors; quantiles 2 and 3."""
    joint = JointEstimate(np.array(values), np.diag(np.square(errors)), 50, np.zeros(len(values)))
    return Ranking(NAMES[: len(values)], joint, 2.0, 3.0)


def test_values_and_differences_have_quantiles_of_their_own() -> None:
    found = ranking([1.0, 3.0, 2.0], [0.3, 0.4, 0.0])
    assert found.leader == 1
    assert list(found.values) == ["old", "new", "wild"]
    assert found.values["old"].interval == pytest.approx((0.4, 1.6))
    assert list(found.differences) == ["old", "wild"]
    assert found.differences["old"].value == pytest.approx(2.0)
    assert found.differences["old"].interval == pytest.approx((0.5, 3.5))
    assert found.differences["wild"].interval == pytest.approx((1.0 - 1.2, 1.0 + 1.2))
    chances = found.chances_of_best
    assert list(chances) == ["old", "new", "wild"]
    assert max(chances, key=lambda name: chances[name]) == "new"


def test_verdicts() -> None:
    values, errors = [1.0, 3.0, 2.0, 2.99], [0.1, 0.01, 0.1, 0.01]
    found = ranking(values, errors)
    verdict = found.verdict()
    assert (verdict.leader, verdict.beaten) == ("new", ("old", "wild"))
    assert (verdict.equal, verdict.undecided) == ((), ("twin",))
    assert not verdict.decided
    assert str(verdict) == "new leads, but may not be better than twin"
    # The interval of new - twin is 0.01 +- 0.042.
    assert found.verdict(0.05).undecided == ("twin",)
    verdict = found.verdict(0.06)
    assert verdict.equal == ("twin",)
    assert verdict.decided
    assert str(verdict) == (
        "new and twin are the best: no difference to new larger than 0.06 (95% confidence)"
    )
    assert str(ranking([1.0, 3.0], [0.1, 0.1]).verdict()) == "new is the best (95% confidence)"
    tie = ranking([1.0, 1.0], [0.01, 0.01]).verdict(0.1)
    assert str(tie) == "no difference larger than 0.1 (95% confidence)"
    open_ = ranking([1.0, 1.1, 1.2], [1.0, 1.0, 1.0]).verdict(0.1)
    assert str(open_) == "wild leads, but may not be better than old and new"


def test_what_is_better_and_close_is_beaten() -> None:
    """A difference that is real and smaller than what matters is a difference all the same."""
    verdict = ranking([1.0, 1.05], [0.001, 0.001]).verdict(0.1)
    assert verdict.beaten == ("old",)


def test_without_enough_data_nothing_is_decided() -> None:
    verdict = ranking([1.0, 3.0], [np.inf, 0.1]).verdict(1e9)
    assert verdict.undecided == ("old",)
    # Two of a hundred episodes of `wild` rest on no data.
    found = ranking([1.0, 3.0, 2.0], [0.01, 0.01, 0.01])
    seen = replace(found.joint, unvisited_probability=np.array([0.01, 0.0, 0.02]))
    verdict = replace(found, joint=seen).verdict()
    assert (verdict.beaten, verdict.undecided) == (("old",), ("wild",))
    assert str(verdict) == "new leads, but too little is known of wild"


def test_intervals_of_differences_hold_together() -> None:
    joint = ranking([1.0, 3.0, 2.0], [1.0, 1.0, 1.0]).joint
    found = Ranking.of(NAMES[:3], joint)
    assert found.quantile == pytest.approx(1.959963984540054, rel=1e-12)
    # Two differences: 97.5 percent each, by the quantile 0.9875.
    assert found.quantile_of_differences == pytest.approx(2.241402727604947, rel=1e-12)


def test_chances_are_never_certain() -> None:
    shares = (0.0, 0.0004, 0.05, 0.5, 0.9, 0.992, 0.9996, 1.0)
    assert [chance_text(share) for share in shares] == [
        *("<0.1%", "<0.1%", "5.0%", "50.0%", "90.0%", "99.2%", ">99.9%", ">99.9%")
    ]
