"""The mean return with a table as control variate: unbiased, and hardly ever worse."""

import numpy as np
import pytest
from scipy import stats

from revar import Dataset, Task, Trajectory, find_problem, policy_value, simulate
from revar.errors import InputError
from revar.estimators import MonteCarlo
from revar.estimators.corrected_return import (
    FOLDS,
    CorrectedReturn,
    corrected_returns,
    on_policy_steps,
)
from revar.model.statistics import VisitStatistics
from revar.model.structure import reachable_layers

RUNS = 400


@pytest.mark.parametrize(
    ("name", "episodes", "gains"), [("gridworld", 200, True), ("blackjack", 40, False)]
)
def test_it_is_unbiased_and_never_clearly_worse_than_the_mean_return(
    name: str, episodes: int, gains: bool
) -> None:
    problem = find_problem(name)
    truth = policy_value(problem.mdp, problem.policy)
    runs = 4 * RUNS if gains else RUNS
    errors = {}
    for estimator in ("corrected-return", "monte-carlo"):
        result = simulate(
            *(problem.mdp, problem.policy, "on-policy"),
            episodes=episodes,
            runs=runs,
            seed=18,
            checkpoints=[episodes],
            estimator=estimator,
        )
        errors[estimator] = result.estimates[:, -1] - truth
    corrected, plain = errors["corrected-return"], errors["monte-carlo"]
    assert abs(corrected.mean()) < 3 * corrected.std(ddof=1) / np.sqrt(runs)
    more = corrected**2 - 1.05 * plain**2
    assert more.mean() < 3 * more.std(ddof=1) / np.sqrt(runs)
    if gains:
        less = plain**2 - corrected**2
        assert less.mean() > 3 * less.std(ddof=1) / np.sqrt(runs)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    problem = find_problem("gridworld")
    result = simulate(
        *(problem.mdp, problem.policy, "on-policy"),
        episodes=30,
        runs=RUNS,
        seed=3,
        checkpoints=[30],
        estimator="corrected-return",
    )
    # Four standard errors of a frequency of 95 percent, and what a skewed mean of 30 may lack.
    assert result.coverage()[-1] > 0.95 - 4 * np.sqrt(0.95 * 0.05 / RUNS)


def bandit_task() -> Task:
    return Task(np.array([[0.5, 0.5]]), 1, initial=np.ones(1))


def pulls(actions: list[int], rewards: list[float], propensity: float = 0.5) -> Dataset:
    return Dataset.of(
        [
            Trajectory.of([0], [a], [r], propensities=[propensity])
            for a, r in zip(actions, rewards, strict=True)
        ]
    )


def test_by_hand_on_a_bandit() -> None:
    """Noise-free arms: tables of the other folds explain all, and the mean of arms is left."""
    rewards = [3.0, 7.0, 3.0, 7.0, 7.0, 3.0, 7.0, 3.0, 7.0, 7.0, 7.0, 7.0]
    data = pulls([int(r == 7.0) for r in rewards], rewards)
    found = CorrectedReturn().estimate(bandit_task(), data)
    assert found.value == pytest.approx(5.0, rel=1e-12)
    assert found.standard_error == pytest.approx(0.0, abs=1e-12)
    mean = MonteCarlo().estimate(bandit_task(), data)
    assert mean.value == pytest.approx(np.mean(rewards), rel=1e-12)
    assert found.episodes == len(rewards)


def test_a_table_that_is_nonsense_leaves_the_mean_return() -> None:
    """In half of the folds one arm pays, in the others the other: each is told the opposite."""
    actions = [a for _ in range(6) for a in (0, 1) for _ in range(FOLDS)]
    rewards = [float(a == i % 2) for i, a in enumerate(actions)]
    data = pulls(actions, rewards)
    found = CorrectedReturn().estimate(bandit_task(), data)
    assert found.value == pytest.approx(0.5, rel=1e-12)
    # As wide as Student's interval of the plain mean.
    freedom = len(rewards) - 1
    wider = stats.t(freedom).ppf(0.975) / stats.norm.ppf(0.975)
    expected = wider * np.std(rewards, ddof=1) / np.sqrt(len(rewards))
    assert found.standard_error == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(returns_of(bandit_task(), data), rewards)


def test_few_episodes_are_left_as_they_are() -> None:
    rewards = [float(i) for i in range(2 * FOLDS - 1)]
    data = pulls([i % 2 for i in range(len(rewards))], rewards)
    np.testing.assert_array_equal(returns_of(bandit_task(), data), rewards)


def returns_of(task: Task, data: Dataset) -> object:
    """The corrected returns themselves."""
    statistics = VisitStatistics(task.states, task.actions)
    statistics.record_many(data)
    outcomes = statistics.run_statistics(task.states).outcomes
    assert task.initial is not None
    layers = reachable_layers(outcomes, task.initial, task.policy > 0, task.horizon)
    steps = on_policy_steps(task, data)
    return corrected_returns(
        *(steps, outcomes, task.initial, True, task.policy, layers, task.discount)
    )


@pytest.mark.parametrize(
    ("propensity", "message"),
    [
        (
            0.25,
            "the corrected return needs on-policy data; step 0 of episode 0 was taken with 0.5 "
            "times the target policy's probability",
        ),
        (
            np.nan,
            "the corrected return needs the probability of every action taken; step 0 of episode 0 "
            "was chosen deterministically (tracked data has no propensities; use certainty "
            "equivalence)",
        ),
    ],
)
def test_other_behavior_is_refused(propensity: float, message: str) -> None:
    with pytest.raises(InputError) as caught:
        CorrectedReturn().estimate(bandit_task(), pulls([0, 1], [1.0, 2.0], propensity))
    assert str(caught.value) == message


def test_actions_that_the_policy_never_takes_are_refused() -> None:
    task = Task(np.array([[1.0, 0.0]]), 1, initial=np.ones(1))
    with pytest.raises(InputError) as caught:
        CorrectedReturn().estimate(task, pulls([0, 1], [1.0, 2.0], 1.0))
    assert str(caught.value).startswith("the corrected return needs on-policy data; step 0 of")


def test_statistics_are_refused() -> None:
    with pytest.raises(InputError, match="the corrected return needs whole episodes"):
        CorrectedReturn().estimate(bandit_task(), VisitStatistics(1, 2))
