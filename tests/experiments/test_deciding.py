"""The rule of benchmarks/deciding_study.py is that of rankings; a small version of the study."""

import numpy as np
import pytest
from benchmarks.deciding_study import APART, FLOW, Contest, decide, measure_deciding

import revar
from revar.estimators.estimator import JointEstimate
from revar.estimators.ranking import Ranking


def test_the_rule_is_that_of_rankings() -> None:
    rng = np.random.default_rng(0)
    names = ("a", "b", "c")
    values = rng.normal(size=(40, 5, 3))
    factors = 0.3 * rng.normal(size=(40, 5, 3, 3))
    covariances = factors @ np.swapaxes(factors, 2, 3)
    covariances[0, 0] = np.nan  # no estimate yet
    leaders, place = decide(values, covariances, 2.0)
    decided = np.zeros((40, 5), dtype=bool)
    for run, look in np.ndindex(40, 5):
        joint = JointEstimate(values[run, look], covariances[run, look], 1, np.zeros(3))
        verdict = Ranking(names, joint, 2.0, 2.0).verdict()
        decided[run, look] = verdict.decided
        if place[run] == look:
            assert names[leaders[run]] == verdict.leader
    assert not decided[0, 0]
    expected = np.where(decided.any(axis=1), decided.argmax(axis=1), 5)
    np.testing.assert_array_equal(place, expected)
    assert 0 < np.mean(place < 5) < 1


@pytest.mark.parametrize("way", [FLOW, APART])
def test_a_best_policy_that_is_far_ahead_is_named_at_the_first_look(way: str) -> None:
    problem = revar.find_problem("bandit", deviations=[0.1] * 5)
    policies = [np.eye(5)[[arm]] * 0.8 + 0.04 for arm in np.argsort(problem.mdp.reward_mean[0])]
    contest = Contest("arms", problem.mdp, policies[-2:], {way: 300})
    found = measure_deciding(contest, way, 20)
    assert found.row == ("arms", way, 20, 300)
    assert (found.wrong, found.undecided) == (0.0, 0.0)
    assert found.episodes == (100, 100, 100)
    assert found.optimum < 100
