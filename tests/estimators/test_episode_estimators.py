"""Monte Carlo, importance sampling and doubly robust estimation: what they share.

Unbiasedness and standard errors are checked exactly, by listing every sample of one or two
episodes of a small model without reward noise, and by simulation on a larger one with noise.
"""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from revar import Dataset, Task, Trajectory, VisitStatistics, return_variance
from revar.errors import InputError
from revar.estimators import (
    DoublyRobust,
    Estimate,
    Estimator,
    ImportanceSampling,
    MonteCarlo,
    PerDecisionImportanceSampling,
    WeightedImportanceSampling,
)
from revar.model.trajectory import ENDED
from revar.problems import problems
from tests import enumeration
from tests.plain_model import Floats, PlainModel
from tests.plain_simulation import dataset, plain, split

SAMPLED = [
    ImportanceSampling(),
    WeightedImportanceSampling(),
    PerDecisionImportanceSampling(),
    DoublyRobust(),
]
BY_ID = {estimator.id: estimator for estimator in (MonteCarlo(), *SAMPLED)}


def by_id(*ids: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("estimator", [BY_ID[i] for i in ids], ids=ids)


def small_model() -> PlainModel:
    """Two states, two actions, two steps; twelve ways an episode can go; no reward noise."""
    chance = np.array([[[0.0, 0.7, 0.3], [1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0], [0.0, 0.5, 0.5]]])
    mean = np.array([[[0.0, 1.0, -2.0], [3.0, 0.0, 0.0]], [[0.0, 0.0, 5.0], [0.0, -1.0, 4.0]]])
    policy = np.array([[0.8, 0.2], [0.3, 0.7]])
    initial = np.array([0.6, 0.4])
    return PlainModel(chance, mean, np.zeros(mean.shape), initial, 2, 0.9, policy)


BEHAVIOR = np.array([[0.5, 0.5], [0.6, 0.4]])


def trajectory(model: PlainModel, behavior: Floats, path: enumeration.Path) -> Trajectory:
    states, actions, outcomes = (list(column) for column in zip(*path.steps, strict=True))
    last = ENDED if outcomes[-1] == model.states else outcomes[-1]
    return Trajectory.of(
        states,
        actions,
        [model.mean[step] for step in path.steps],
        last_successor=last,
        propensities=[behavior[s, a] for s, a in zip(states, actions, strict=True)],
    )


@cache
def samples(episodes: int, on_policy: bool) -> list[tuple[float, Dataset]]:
    """Every sample of that many episodes, with its probability."""
    model = small_model()
    behavior = model.policy if on_policy else BEHAVIOR
    single = [
        (path.probability, trajectory(model, behavior, path))
        for path in enumeration.paths(model, behavior)
    ]
    return [
        (
            float(np.prod([probability for probability, _ in chosen])),
            Dataset.of([episode for _, episode in chosen]),
        )
        for chosen in product(single, repeat=episodes)
    ]


def exact_moments(estimator: Estimator, episodes: int, on_policy: bool) -> tuple[float, ...]:
    """Mean and mean square error of the estimate, and mean of its squared standard error."""
    model = small_model()
    task = Task.of(model.mdp(), model.policy)
    value = enumeration.value(model)
    mean = error = reported = 0.0
    for probability, data in samples(episodes, on_policy):
        estimate = estimator.estimate(task, data)
        mean += probability * estimate.value
        error += probability * (estimate.value - value) ** 2
        reported += probability * estimate.standard_error**2
    return mean, error, reported


def test_the_listed_samples_are_all_there_are() -> None:
    for episodes, on_policy in product((1, 2), (False, True)):
        every = samples(episodes, on_policy)
        assert len(every) == 12**episodes
        assert sum(probability for probability, _ in every) == pytest.approx(1.0, rel=1e-12)


@by_id("importance-sampling", "per-decision-importance-sampling")
def test_importance_sampling_is_unbiased(estimator: Estimator) -> None:
    value = enumeration.value(small_model())
    mean, _, reported = exact_moments(estimator, 1, on_policy=False)
    assert mean == pytest.approx(value, rel=1e-12)
    assert reported == np.inf  # one episode says nothing about its spread
    mean, error, reported = exact_moments(estimator, 2, on_policy=False)
    assert mean == pytest.approx(value, rel=1e-12)
    assert reported == pytest.approx(error, rel=1e-12)


def test_monte_carlo_is_unbiased() -> None:
    model = small_model()
    mean, error, reported = exact_moments(MonteCarlo(), 2, on_policy=True)
    assert mean == pytest.approx(enumeration.value(model), rel=1e-12)
    assert reported == pytest.approx(error, rel=1e-12)
    assert error == pytest.approx(return_variance(model.mdp(), model.policy) / 2, rel=1e-12)


@pytest.mark.parametrize("on_policy", [False, True])
def test_doubly_robust_estimation_is_unbiased(on_policy: bool) -> None:
    mean, _, _ = exact_moments(DoublyRobust(), 2, on_policy)
    assert mean == pytest.approx(enumeration.value(small_model()), rel=1e-12)


@by_id("importance-sampling", "weighted-importance-sampling", "per-decision-importance-sampling")
def test_on_policy_all_are_monte_carlo(estimator: Estimator) -> None:
    model = small_model()
    task = Task.of(model.mdp(), model.policy)
    data = dataset(model, model.policy, 30, np.random.default_rng(0))
    found, expected = estimator.estimate(task, data), MonteCarlo().estimate(task, data)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-12)


@pytest.mark.parametrize("estimator", [MonteCarlo(), ImportanceSampling(), DoublyRobust()])
def test_episodes_that_were_broken_off_are_refused(estimator: Estimator) -> None:
    task = Task(policy=np.array([[1.0]]), horizon=5)
    part = Trajectory.of([0, 0], [0, 0], [1.0, 1.0], last_successor=0, propensities=[1.0, 1.0])
    message = "needs whole episodes; episode 0 stops after 2 of 5 steps without having ended"
    with pytest.raises(InputError, match=message):
        estimator.estimate(task, Dataset.of([part, part]))


def test_estimates_by_hand() -> None:
    # Ratios 0.8/0.5 and 0.3/0.6 in the first episode, 0.2/0.5 in the second.
    model = small_model()
    task = Task.of(model.mdp(), model.policy)
    data = Dataset.of(
        [
            Trajectory.of([0, 1], [0, 0], [1.0, 5.0], propensities=[0.5, 0.6]),
            Trajectory.of([0], [1], [3.0], propensities=[0.5]),
        ]
    )
    first, second = (0.8 / 0.5) * (0.3 / 0.6), 0.2 / 0.5
    returns = np.array([1.0 + 0.9 * 5.0, 3.0])
    ordinary = ImportanceSampling().estimate(task, data)
    terms = np.array([first, second]) * returns
    assert ordinary.value == pytest.approx(terms.mean(), rel=1e-12)
    assert ordinary.standard_error == pytest.approx(abs(terms[0] - terms[1]) / 2, rel=1e-12)
    weighted = WeightedImportanceSampling().estimate(task, data)
    expected = (first * returns[0] + second * returns[1]) / (first + second)
    assert weighted.value == pytest.approx(expected, rel=1e-12)
    by_decision = PerDecisionImportanceSampling().estimate(task, data)
    terms = np.array([1.6 * 1.0 + first * 0.9 * 5.0, second * 3.0])
    assert by_decision.value == pytest.approx(terms.mean(), rel=1e-12)
    assert by_decision.episodes == 2


RUNS = 800
EPISODES = 100


@cache
def simulated() -> tuple[PlainModel, float, list[Dataset]]:
    """Many samples of the paper's tree, cut to three levels, under a mild behavior."""
    problem = problems.find("tree")(3, discount=0.9)
    model = plain(problem.mdp, problem.policy)
    behavior = 0.5 * problem.policy + 0.25
    data = dataset(model, behavior, RUNS * EPISODES, np.random.default_rng(5))
    return model, enumeration.value(model), list(split(data, EPISODES))


@cache
def estimates(estimator_id: str) -> list[Estimate]:
    model, _, runs = simulated()
    task = Task.of(model.mdp(), model.policy)
    return [BY_ID[estimator_id].estimate(task, data) for data in runs]


@pytest.mark.parametrize(
    "estimator_id", ["importance-sampling", "per-decision-importance-sampling", "doubly-robust"]
)
def test_simulated_estimates_are_unbiased(estimator_id: str) -> None:
    _, value, _ = simulated()
    found = np.array([estimate.value for estimate in estimates(estimator_id)])
    assert abs(found.mean() - value) < 4 * found.std(ddof=1) / np.sqrt(RUNS)


@pytest.mark.parametrize("estimator", SAMPLED, ids=lambda estimator: estimator.id)
def test_standard_errors_are_as_large_as_the_errors(estimator: Estimator) -> None:
    _, value, _ = simulated()
    found = estimates(estimator.id)
    surplus = np.array([(e.value - value) ** 2 - e.standard_error**2 for e in found])
    # Squared errors and squared standard errors agree on average, within 4 standard errors of
    # their mean difference, and that is itself a small part of them.
    noise = surplus.std(ddof=1) / np.sqrt(RUNS)
    assert noise < 0.1 * np.mean([e.standard_error**2 for e in found])
    assert abs(surplus.mean()) < 4 * noise


def test_monte_carlo_s_standard_errors_are_as_large_as_its_errors() -> None:
    model, value, _ = simulated()
    task = Task.of(model.mdp(), model.policy)
    data = dataset(model, model.policy, RUNS * EPISODES, np.random.default_rng(6))
    found = [MonteCarlo().estimate(task, part) for part in split(data, EPISODES)]
    values = np.array([estimate.value for estimate in found])
    variance = return_variance(model.mdp(), model.policy) / EPISODES
    assert abs(values.mean() - value) < 4 * np.sqrt(variance / RUNS)
    squares = (values - value) ** 2
    assert abs(squares.mean() - variance) < 4 * squares.std(ddof=1) / np.sqrt(RUNS)
    reported = np.array([estimate.standard_error**2 for estimate in found])
    assert abs(reported.mean() - variance) < 4 * reported.std(ddof=1) / np.sqrt(RUNS)


def test_weighted_importance_sampling_is_consistent() -> None:
    model, value, _ = simulated()
    task = Task.of(model.mdp(), model.policy)
    behavior = 0.5 * model.policy + 0.25
    errors = []
    for episodes in (1000, 100_000):
        data = dataset(model, behavior, episodes, np.random.default_rng(7))
        estimate = WeightedImportanceSampling().estimate(task, data)
        assert abs(estimate.value - value) < 4 * estimate.standard_error
        errors.append(estimate.standard_error)
    # A hundred times the episodes, a tenth of the error; the first is known to a few percent.
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.2)


def test_doubly_robust_estimation_is_less_noisy_than_per_decision() -> None:
    robust = np.var([estimate.value for estimate in estimates("doubly-robust")])
    by_decision = np.var(
        [estimate.value for estimate in estimates("per-decision-importance-sampling")]
    )
    # A ratio of two variances of 800 runs has standard error sqrt(4/800) = 0.07.
    assert robust < 0.7 * by_decision


def test_doubly_robust_estimation_without_noise_or_chance_is_exact() -> None:
    # Once both halves have seen every pair, the fitted model is the truth and no ratio matters.
    problem = problems.find("tree")(3, low_variance=0.0, high_variance=0.0)
    model = plain(problem.mdp, problem.policy)
    data = dataset(model, np.full((7, 2), 0.5), 200, np.random.default_rng(8))
    estimate = DoublyRobust().estimate(Task.of(problem.mdp, problem.policy), data)
    assert estimate.value == pytest.approx(enumeration.value(model), rel=1e-12)
    assert estimate.standard_error == pytest.approx(0.0, abs=1e-14)


NAMES = {
    "monte-carlo": "Monte Carlo",
    "importance-sampling": "importance sampling",
    "weighted-importance-sampling": "weighted importance sampling",
    "per-decision-importance-sampling": "per-decision importance sampling",
    "doubly-robust": "doubly robust estimation",
}


def refusal(estimator: Estimator, data: Any) -> str:
    model = small_model()
    with pytest.raises(InputError) as caught:
        estimator.estimate(Task.of(model.mdp(), model.policy), data)
    return str(caught.value)


@by_id(*NAMES)
def test_tracked_data_is_refused(estimator: Estimator) -> None:
    sampled = Trajectory.of([0, 1], [0, 1], [0.0, 0.0], propensities=[0.8, 0.7])
    tracked = Trajectory.of([0, 1], [0, 1], [0.0, 0.0], propensities=[0.8, np.nan])
    assert refusal(estimator, Dataset.of([sampled, sampled, tracked])) == (
        f"{NAMES[estimator.id]} needs the probability of every action taken; step 1 of episode 2 "
        f"was chosen deterministically (tracked data has no propensities; use certainty "
        f"equivalence)"
    )


@by_id(*NAMES)
def test_statistics_are_not_enough(estimator: Estimator) -> None:
    assert refusal(estimator, VisitStatistics(2, 2)) == (
        f"{NAMES[estimator.id]} needs whole episodes (a Dataset), not visit statistics"
    )


@by_id(*NAMES)
def test_no_episodes_are_not_enough(estimator: Estimator) -> None:
    assert refusal(estimator, Dataset.of([])) == (
        f"{NAMES[estimator.id]} needs at least one episode"
    )


def episode(*states: int, action: int = 0) -> Dataset:
    count = len(states)
    return Dataset.of(
        [Trajectory.of(states, [action] * count, [0.0] * count, propensities=[0.5] * count)]
    )


@by_id(*NAMES)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (episode(0, 1, 1), "an episode has 3 steps; the horizon is 2"),
        (episode(0, action=2), "action 2 in the data; the policy has 2 actions"),
        (episode(0, 2), "state 2 in the data; the policy covers 2 states"),
    ],
)
def test_episodes_that_do_not_fit_are_refused(
    estimator: Estimator, data: Dataset, message: str
) -> None:
    assert refusal(estimator, data) == message


def test_monte_carlo_refuses_data_of_another_behavior() -> None:
    on_policy = Trajectory.of([0], [0], [1.0], propensities=[0.8])
    off_policy = Trajectory.of([0, 1], [0, 1], [1.0, 1.0], propensities=[0.8, 0.35])
    assert refusal(MonteCarlo(), Dataset.of([on_policy, off_policy])) == (
        "Monte Carlo needs on-policy data; step 1 of episode 1 was taken with 0.5 times the "
        "target policy's probability"
    )


def test_monte_carlo_refuses_actions_of_no_probability() -> None:
    model = replace(small_model(), policy=np.array([[1.0, 0.0], [0.3, 0.7]]))
    data = Dataset.of([Trajectory.of([0], [1], [1.0], propensities=[0.5])])
    with pytest.raises(InputError, match="step 0 of episode 0 took an action that the target"):
        MonteCarlo().estimate(Task.of(model.mdp(), model.policy), data)


def test_doubly_robust_estimation_needs_two_episodes() -> None:
    assert refusal(DoublyRobust(), episode(0, 1)) == (
        "doubly robust estimation needs at least two episodes"
    )


def test_weighted_importance_sampling_needs_some_weight() -> None:
    model = replace(small_model(), policy=np.array([[1.0, 0.0], [0.3, 0.7]]))
    data = Dataset.of([Trajectory.of([0], [1], [1.0], propensities=[0.5])] * 3)
    with pytest.raises(InputError, match="every one of these has ratio 0"):
        WeightedImportanceSampling().estimate(Task.of(model.mdp(), model.policy), data)
    # The others say what follows: none of these episodes is the policy's, so that all count 0.
    task = Task.of(model.mdp(), model.policy)
    assert ImportanceSampling().estimate(task, data).value == 0.0


def test_a_single_episode_has_an_unknown_error() -> None:
    model = small_model()
    task = Task.of(model.mdp(), model.policy)
    for estimator in SAMPLED[:3]:
        assert estimator.estimate(task, episode(0, 1)).standard_error == np.inf
