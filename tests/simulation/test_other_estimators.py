"""Estimators that need whole episodes, through simulate."""

import numpy as np
import pytest
from numpy.typing import NDArray

from revar import Dataset, Task, VisitStatistics, simulate
from revar.errors import InputError
from revar.estimators import estimators, find_estimator
from revar.problems import problems
from revar.simulation.result import SimulationResult
from revar.strategies import Selection, find_strategy, strategies
from revar.testing.problems import crossroads

PROBLEM = crossroads()
POINTS = [2, 15, 60]
NEEDING_EPISODES = [name for name in estimators.ids() if find_estimator(name).needs_episodes]
ON_POLICY = {"monte-carlo": "Monte Carlo", "corrected-return": "the corrected return"}
OFF_POLICY = [name for name in NEEDING_EPISODES if name not in ON_POLICY]


def returns_of(data: Dataset, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """The discounted sum of each episode."""
    return np.array(
        [
            sum(0.9**t * reward for t, reward in enumerate(rewards[first:last].tolist()))
            for first, last in zip(data.start[:-1], data.start[1:], strict=True)
        ]
    )


@pytest.mark.parametrize("compiled", [None, False])
def test_monte_carlo_is_the_mean_of_returns(compiled: bool | None) -> None:
    result = simulate(
        PROBLEM.mdp,
        PROBLEM.policy,
        "on-policy",
        episodes=60,
        runs=3,
        checkpoints=POINTS,
        estimator="monte-carlo",
        keep_episodes=True,
        compiled=compiled,
    )
    assert result.estimator == "monte-carlo"
    for run, data in enumerate(result.datasets):
        returns = returns_of(data, data.rewards)
        for i, count in enumerate(POINTS):
            part = returns[:count]
            assert result.estimates[run, i] == pytest.approx(part.mean(), rel=1e-12)
            error = part.std(ddof=1) / np.sqrt(count)
            assert result.standard_errors[run, i] == pytest.approx(error, rel=1e-12)


def test_importance_sampling_reweighs_returns() -> None:
    result = simulate(
        PROBLEM.mdp,
        PROBLEM.policy,
        "uniform",
        episodes=60,
        runs=3,
        checkpoints=POINTS,
        estimator="importance-sampling",
        keep_episodes=True,
    )
    for run, data in enumerate(result.datasets):
        ratio = PROBLEM.policy[data.states, data.actions] / data.propensities
        weight = np.multiply.reduceat(ratio, data.start[:-1])
        weighted = weight * returns_of(data, data.rewards)
        for i, count in enumerate(POINTS):
            assert result.estimates[run, i] == pytest.approx(weighted[:count].mean(), rel=1e-12)


@pytest.mark.parametrize("estimator", OFF_POLICY)
def test_off_policy_estimators_find_the_value(estimator: str) -> None:
    result = simulate(
        PROBLEM.mdp,
        PROBLEM.policy,
        "uniform",
        episodes=100,
        runs=200,
        checkpoints=[100],
        estimator=estimator,
    )
    errors = result.estimates[:, 0] - result.true_value
    assert abs(errors.mean()) < 4 * errors.std(ddof=1) / np.sqrt(200)


@pytest.mark.parametrize("compiled", [None, False])
def test_checkpoints_too_early_for_an_estimator_stay_empty(compiled: bool | None) -> None:
    result = simulate(
        PROBLEM.mdp,
        PROBLEM.policy,
        "uniform",
        episodes=20,
        runs=2,
        checkpoints=[1, 2, 20],
        estimator="doubly-robust",
        compiled=compiled,
    )
    assert np.isnan(result.estimates[:, 0]).all()
    assert np.isnan(result.standard_errors[:, 0]).all()
    assert np.isfinite(result.estimates[:, 1:]).all()


@pytest.mark.parametrize("strategy", strategies.ids())
@pytest.mark.parametrize("estimator", NEEDING_EPISODES)
def test_tracked_data_is_refused_before_anything_is_played(estimator: str, strategy: str) -> None:
    tree = problems.find("tree")(3)
    task = Task.of(tree.mdp, tree.policy, budget=4)
    plan = find_strategy(strategy).plan(task, VisitStatistics(tree.mdp.states, tree.mdp.actions))

    def attempt() -> SimulationResult:
        return simulate(tree.mdp, tree.policy, strategy, episodes=4, runs=1, estimator=estimator)

    if plan.selection is not Selection.SAMPLE:
        expected = (
            f"estimator '{estimator}' needs the probability of every action, and strategy "
            f"'{strategy}' chooses deterministically; use 'certainty-equivalence'"
        )
        with pytest.raises(InputError, match=expected):
            attempt()
    elif estimator in ON_POLICY and not np.array_equal(plan.scores[0], tree.policy):
        with pytest.raises(InputError, match=f"{ON_POLICY[estimator]} needs on-policy data"):
            attempt()
    else:
        assert np.isfinite(attempt().estimates[:, -1]).all()
