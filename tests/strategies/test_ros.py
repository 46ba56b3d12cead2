"""Robust on-policy sampling: frequencies approach the target policy faster than samples do."""

import numpy as np
import pytest

from revar import occupancy, simulate
from revar.problems import Problem, problems
from revar.testing.problems import crossroads

PROBLEMS = [crossroads(), *(problems.find(name)() for name in ("bandit", "tree", "gridworld"))]
BUDGETS = np.array([107, 1_007, 10_007])  # no share of them is a whole number


def distances(problem: Problem, strategy: str, episodes: int) -> np.ndarray:
    """|T(s,a)/T(s) - pi(a|s)| summed over actions, a mean over states as pi visits them, [run]."""
    visits = simulate(
        problem.mdp, problem.policy, strategy, episodes=episodes, runs=40, checkpoints=[episodes]
    ).visits
    total = visits.sum(axis=2, keepdims=True)
    apart = np.abs(visits / np.maximum(total, 1) - problem.policy).sum(axis=2)
    entered = occupancy(problem.mdp, problem.policy).sum(axis=(0, 2))
    return np.asarray(apart @ (entered / entered.sum()))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_frequencies_approach_the_policy_like_one_over_n(problem: Problem) -> None:
    """Zhong et al. (2022): sampling error 1/n, against 1/sqrt(n) of on-policy sampling."""
    slopes = {}
    for strategy in ("ros", "on-policy"):
        means = [distances(problem, strategy, int(count)).mean() for count in BUDGETS]
        slopes[strategy] = np.polyfit(np.log(BUDGETS), np.log(means), 1)[0]
        if strategy == "ros":
            closest = means[-1]
    assert slopes["ros"] == pytest.approx(-1.0, abs=0.1)
    assert slopes["on-policy"] == pytest.approx(-0.5, abs=0.1)
    assert closest < 0.1 * means[-1]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_no_action_falls_behind_by_more_than_a_few_visits(problem: Problem) -> None:
    visits = simulate(problem.mdp, problem.policy, "ros", episodes=3_000, runs=5).visits
    owed = problem.policy * visits.sum(axis=2, keepdims=True) - visits
    assert np.abs(owed).max() <= problem.mdp.actions - 1


def test_on_a_bandit_nothing_is_left_of_the_sampling_of_actions() -> None:
    """Monte Carlo pays for the draw of the arm as well; matched arms pay for their noise alone."""
    bandit = problems.find("bandit")(deviations=np.full(5, 0.2))
    noise = float(np.sum(bandit.policy * bandit.mdp.reward_std**2))
    result = simulate(bandit.mdp, bandit.policy, "ros", episodes=500, runs=2_000, checkpoints=[500])
    # The rarest arms' counts are off by one in 25; on-policy Monte Carlo has 0.1005, this 0.04.
    assert abs(500 * result.mse[0] - noise) < 4 * 500 * result.mse_standard_error[0]
