from math import log, sqrt

import numpy as np
import pytest

from revar import Task, VisitStatistics
from revar.errors import InputError
from revar.model.budget import Budget
from revar.model.trajectory import ENDED
from revar.strategies import ConfidenceBoundVariance, Selection

POLICY = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
REWARDS = {
    (0, 0): [1.0, 2.0, 4.0],
    (0, 1): [3.0],
    (1, 1): [-1.0, 1.0],
    (1, 2): [0.5, 0.5, 0.5, 0.5],
}


def statistics() -> VisitStatistics:
    seen = VisitStatistics(2, 3)
    for (state, action), rewards in REWARDS.items():
        for reward in rewards:
            seen.record_step(state, action, reward, ENDED)
    return seen


@pytest.mark.parametrize("bound", [0.5, 1.0, 3.0])
def test_the_index_is_the_papers(bound: float) -> None:
    task = Task(POLICY, 4, budget=Budget(25))
    plan = ConfidenceBoundVariance(reward_bound=bound).plan(task, statistics())
    n = 25 * 4
    logarithm = log(2 * 3 * n * (n + 1))
    for pair, rewards in REWARDS.items():
        visits = len(rewards)
        variance = float(np.var(rewards, ddof=1)) if visits > 1 else 0.0
        spread = sqrt(2 * POLICY[pair] * variance * logarithm / visits)
        index = (2 * bound + 4 * bound**2) * spread + 7 * logarithm / (3 * visits)
        assert plan.scores[0][pair] == pytest.approx(index, rel=1e-13)
    assert plan.scores.shape == (1, 2, 3)


def test_it_takes_the_largest_index_and_looks_again_after_every_step() -> None:
    plan = ConfidenceBoundVariance().plan(Task(POLICY, 4, budget=Budget(25)), statistics())
    assert plan.selection is Selection.LARGEST
    assert plan.lasts == 0
    assert plan.visits_first == 1


@pytest.mark.parametrize("bound", [0.0, -1.0, float("inf"), float("nan")])
def test_impossible_bounds_are_refused(bound: float) -> None:
    with pytest.raises(InputError, match=f"reward_bound is {bound}; it must be positive, finite"):
        ConfidenceBoundVariance(reward_bound=bound)


def test_the_budget_must_be_known() -> None:
    with pytest.raises(InputError, match="cb-var needs to know the number of episodes"):
        ConfidenceBoundVariance().plan(Task(POLICY, 4), statistics())
