"""The values of several policies at once: closed forms, simulation, and what follows from them."""

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats

from revar import (
    Best,
    Dataset,
    Difference,
    TabularMDP,
    Task,
    Trajectory,
    Values,
    VisitStatistics,
    find_problem,
    simulate,
)
from revar.errors import InputError
from revar.estimators import CertaintyEquivalence
from revar.estimators.estimator import JointEstimate
from revar.model.question import Question
from revar.simulation.result import SimulationResult
from tests import enumeration
from tests.plain_model import PlainModel
from tests.plain_simulation import dataset, split


def asked(question: Question, horizon: int, **options: Any) -> Task:
    return Task(question.policy, horizon, question=question, **options)


def test_two_policies_of_a_bandit_by_hand() -> None:
    rewards = {0: [1.0, 3.0], 1: [0.0, 3.0, 6.0]}  # means 2 and 3, variances 2 and 9
    data = Dataset.of([Trajectory.of([0], [a], [r]) for a, seen in rewards.items() for r in seen])
    question = Difference([[0.75, 0.25]], [[0.25, 0.75]])
    joint, found = CertaintyEquivalence().plug_in(asked(question, 1), data)
    np.testing.assert_allclose(joint.values, [2.25, 2.75], rtol=1e-12)
    # sum of pi_j pi_k s^2 / T, with s^2 / T of 1 and 3.
    np.testing.assert_allclose(found.covariance, [[0.75, 0.75], [0.75, 1.75]], rtol=1e-12)
    # Satterthwaite's (sum of parts)^2 / sum of parts^2 / (T - 1).
    freedom = [0.75**2 / (0.5625**2 + 0.1875**2 / 2), 1.75**2 / (0.0625**2 + 1.6875**2 / 2)]
    np.testing.assert_allclose(found.freedom, freedom, rtol=1e-12)
    wider = stats.t(freedom).ppf(0.975) / stats.norm.ppf(0.975)
    more = np.sqrt(wider**2 - 1.0)
    np.testing.assert_allclose(
        joint.covariance, found.covariance * (1.0 + np.outer(more, more)), rtol=1e-9
    )
    difference = CertaintyEquivalence().estimate(asked(question, 1), data)
    error = np.sqrt(0.75 * wider[0] ** 2 - 1.5 * (1 + more[0] * more[1]) + 1.75 * wider[1] ** 2)
    assert (difference.value, difference.standard_error) == pytest.approx((-0.5, error), rel=1e-9)
    assert difference == joint.difference(0, 1)
    assert joint.value_of(1).standard_error == pytest.approx(np.sqrt(1.75) * wider[1], rel=1e-9)
    assert joint.episodes == 5


# State 0 leads to state 1 in 6 of 8 episodes; there action 0 gave 1, 2, 3 and action 1 0, 4, 5.
TWO_STEPS = [
    *(Trajectory.of([0, 1], [0, 0], [0.0, reward]) for reward in (1.0, 2.0, 3.0)),
    *(Trajectory.of([0, 1], [0, 1], [0.0, reward]) for reward in (0.0, 4.0, 5.0)),
    *(Trajectory.of([0], [0], [0.0]) for _ in range(2)),
]
FORKS = Difference([[1.0, 0.0], [0.8, 0.2]], [[1.0, 0.0], [0.5, 0.5]])


def test_two_policies_that_share_a_transition_by_hand() -> None:
    # v_j = p m_j with m_j of 2.2 and 2.5; p(1 - p) / 7 m_j m_k + p^2 sum pi_j pi_k s^2 / 3.
    joint, found = CertaintyEquivalence().plug_in(asked(FORKS, 2), Dataset.of(TWO_STEPS))
    means = np.array([2.2, 2.5])
    np.testing.assert_allclose(joint.values, 0.75 * means, rtol=1e-12)
    shares = np.array([[0.8, 0.2], [0.5, 0.5]])
    at_the_fork = shares @ np.diag([1.0 / 3.0, 7.0 / 3.0]) @ shares.T
    expected = 0.1875 / 7 * np.outer(means, means) + 0.75**2 * at_the_fork
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-12)
    # With known transitions (p = 0.5) only rewards are uncertain.
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 0.5
    mdp = TabularMDP(transitions, 0.0, 1.0, [1.0, 0.0], 2)
    known = CertaintyEquivalence(known_transitions=True)
    joint, found = known.plug_in(Task.of(mdp, FORKS), Dataset.of(TWO_STEPS))
    np.testing.assert_allclose(joint.values, 0.5 * means, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, 0.25 * at_the_fork, rtol=1e-12)


def test_an_unknown_first_state_moves_both_policies_by_hand() -> None:
    # State 0 pays 1 in 3 of 4 episodes, state 1 pays 4 or 8 by action, without noise.
    once = [
        *(Trajectory.of([0], [0], [1.0]) for _ in range(6)),
        *(Trajectory.of([1], [action], [4.0 + 4.0 * action]) for action in (0, 1)),
    ]
    question = Difference([[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    joint, found = CertaintyEquivalence().plug_in(asked(question, 1), Dataset.of(2 * once))
    np.testing.assert_allclose(joint.values, [1.75, 2.75], rtol=1e-12)
    apart = np.array([[-0.75, 2.25], [-1.75, 5.25]])  # by policy and state, from its value
    expected = apart @ np.diag([0.75, 0.25]) @ apart.T / 16
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-12)
    np.testing.assert_allclose(found.freedom, 15.0, rtol=1e-12)
    known = asked(question, 1, initial=np.array([0.75, 0.25]))
    joint = CertaintyEquivalence().joint_estimate(known, Dataset.of(2 * once))
    np.testing.assert_array_equal(joint.covariance, np.zeros((2, 2)))
    # Single visits of state 1: its pairs take the spread of 1 and 4 (or 8) with chances 3/4 and
    # 1/4, seen once, next to 5 degrees of freedom without any variance.
    _, found = CertaintyEquivalence().plug_in(known, Dataset.of(once))
    alone = 0.25**2 * 0.1875 * np.array([9.0, 49.0]) / 6
    np.testing.assert_allclose(found.covariance, np.diag(alone), rtol=1e-12)


RUNS = 800


@pytest.fixture(scope="module")
def simulated() -> tuple[PlainModel, Question, VisitStatistics, Any]:
    """Runs of 200 episodes of a model whose rewards depend on the outcome, and the true values."""
    chance = np.array([[[0.0, 0.6, 0.4], [0.3, 0.3, 0.4]], [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]])
    mean = np.array([[[0.0, 2.0, -1.0], [1.0, -1.0, 0.0]], [[1.0, 0.0, 3.0], [0.0, 0.0, -2.0]]])
    policies = [np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.5, 0.5], [0.9, 0.1]])]
    initial = np.array([0.6, 0.4])
    model = PlainModel(chance, mean, np.full(mean.shape, 0.7), initial, 3, 0.9, policies[0])
    data = dataset(model, np.full((2, 2), 0.5), RUNS * 200, np.random.default_rng(4))
    statistics = VisitStatistics.for_model(model.mdp(), runs=RUNS)
    for run, part in enumerate(split(data, 200)):
        statistics.record_many(part, run=run)
    truth = np.array([enumeration.value(replace(model, policy=policy)) for policy in policies])
    return model, Difference(*policies), statistics, truth


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("first_state_known", [False, True])
def test_covariances_and_intervals_against_simulation(
    known: bool, first_state_known: bool, simulated: Any
) -> None:
    model, question, statistics, truth = simulated
    task = Task.of(model.mdp(), question)
    task = task if first_state_known else replace(task, initial=None)
    estimator = CertaintyEquivalence(known_transitions=known)
    joints = [estimator.joint_estimate(task, statistics, run=run) for run in range(RUNS)]
    errors = np.array([joint.values for joint in joints]) - truth
    products = errors[:, :, None] * errors[:, None, :]
    predicted = np.mean([joint.covariance for joint in joints], axis=0)
    reach = 4 * products.std(axis=0, ddof=1) / np.sqrt(RUNS)
    assert (np.abs(products.mean(axis=0) - predicted) < reach).all()
    # The errors go together, or the covariance would not be tested.
    assert (np.abs(predicted[0, 1]) > reach[0, 1]).all()
    differences = [joint.difference(0, 1).interval for joint in joints]
    covered = np.mean([low <= truth[0] - truth[1] <= high for low, high in differences])
    four_errors = 4 * np.sqrt(0.95 * 0.05 / RUNS)
    assert abs(covered - 0.95) < four_errors
    rows = [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]
    together = []
    for joint in joints:
        intervals = [estimate.interval for estimate in joint.simultaneous(rows)]
        exact = np.array(rows) @ truth
        together.append(
            all(low <= value <= high for value, (low, high) in zip(exact, intervals, strict=True))
        )
    # Bonferroni's intervals hold together at least as often as they say.
    assert np.mean(together) > 0.95 - four_errors


def test_equal_policies_have_no_difference() -> None:
    problem = find_problem("gridworld")
    data = simulate(
        problem.mdp, problem.policy, "flow", episodes=40, runs=1, keep_episodes=True
    ).datasets[0]
    task = Task.of(problem.mdp, Difference(problem.policy, problem.policy))
    joint = CertaintyEquivalence().joint_estimate(task, data)
    difference = joint.difference(0, 1)
    assert difference.value == 0.0
    # What rounding may leave of four equal terms, and no more.
    assert difference.standard_error == pytest.approx(2e-6 * joint.value_of(0).standard_error)
    single = CertaintyEquivalence().estimate(Task.of(problem.mdp, problem.policy), data)
    assert joint.value_of(0) == joint.value_of(1) == single
    # Shared to the draws' standard error: 0.0016 for a chance of one half.
    np.testing.assert_allclose(joint.chances_of_best(), 0.5, atol=4 * 0.0016)


def test_too_little_data_gives_infinite_standard_errors() -> None:
    # One visit each of two arms: nothing tells how much rewards vary. No visit of the third.
    data = Dataset.of([Trajectory.of([0], [0], [1.0]), Trajectory.of([0], [1], [2.0])])
    question = Values([[[1.0, 0.0, 0.0]], [[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]]])
    joint = CertaintyEquivalence().joint_estimate(asked(question, 1), data)
    for row in ([1, 0, 0], [0, 1, 0], [1, -1, 0], [1, -1, 1]):
        assert joint.combination(row).standard_error == np.inf
        assert joint.combination(row).interval == (-np.inf, np.inf)
    # All that is known of the third is what a visit usually pays, and that may be all wrong.
    alone = joint.combination([0, 0, 2.0])
    assert (alone.value, alone.standard_error, alone.unvisited_probability) == (3.0, 3.0, 1.0)
    np.testing.assert_allclose(joint.chances_of_best(), 1 / 3, rtol=1e-12)


@pytest.mark.parametrize("kind", [Difference, Values, Best])
def test_simulations_of_one_episode_have_no_nan(kind: Any) -> None:
    problem = find_problem("tree")
    other = np.full(problem.policy.shape, 0.5)
    policies = (problem.policy, other)
    question = Difference(*policies) if kind is Difference else kind(policies)
    results: list[SimulationResult] = [
        simulate(problem.mdp, question, "on-policy", episodes=3, runs=4, compiled=compiled)
        for compiled in (None, False)
    ]
    for result in results:
        assert not np.isnan(result.standard_errors).any()
        assert np.isinf(result.standard_errors[:, 0]).all()
        np.testing.assert_array_equal(result.standard_errors, results[0].standard_errors)


def joint_of(values: Any, covariance: Any) -> JointEstimate:
    return JointEstimate(np.array(values), np.array(covariance), 9, np.zeros(len(values)))


@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0, -2.0])
def test_the_chance_of_being_the_best_of_two(gap: float) -> None:
    joint = joint_of([1.0 + gap, 1.0], [[0.9, 0.2], [0.2, 0.5]])
    expected = NormalDist().cdf(gap / np.sqrt(0.9 + 0.5 - 0.4))
    four_errors = 4 * np.sqrt(expected * (1 - expected) / 100_000)
    chances = joint.chances_of_best()
    assert abs(chances[0] - expected) < four_errors
    assert chances.sum() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_array_equal(chances, joint.chances_of_best())


def test_values_that_are_known_to_be_equal_share_the_chance() -> None:
    joint = joint_of([1.0, 1.0, 0.5], np.zeros((3, 3)))
    assert joint.chances_of_best().tolist() == [0.5, 0.5, 0.0]
    # Their error is common to all three: the third stays behind.
    joint = joint_of([1.0, 1.0, 0.5], np.ones((3, 3)))
    np.testing.assert_allclose(joint.chances_of_best(), [0.5, 0.5, 0.0], atol=4 * 0.0016)


def test_simultaneous_intervals_are_wider() -> None:
    joint = joint_of([1.0, 2.0, 4.0], np.eye(3))
    rows = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    quantile = NormalDist().inv_cdf(1 - 0.05 / 6)
    for row, estimate in zip(rows, joint.simultaneous(rows), strict=True):
        single = joint.combination(row)
        assert (estimate.value, estimate.standard_error) == (single.value, single.standard_error)
        low, high = estimate.interval
        assert high - low == pytest.approx(2 * quantile * np.sqrt(2), rel=1e-12)
    (alone,) = joint.simultaneous(rows[0])
    assert alone.interval == pytest.approx(joint.combination(rows[0]).interval, rel=1e-12)


def test_a_task_with_several_answers_refers_to_the_joint_estimate() -> None:
    question = Values([[[1.0]], [[1.0]]])
    data = Dataset.of([Trajectory.of([0], [0], [1.0])])
    with pytest.raises(InputError) as caught:
        CertaintyEquivalence().estimate(asked(question, 1), data)
    assert str(caught.value) == "the task asks for 2 values at once; joint_estimate gives them"


@pytest.mark.parametrize("row", [[1.0], [1.0, 0.0, 0.0], [np.nan, 1.0], [[1.0, 0.0]], "ab"])
def test_coefficients_that_do_not_fit_are_refused(row: Any) -> None:
    with pytest.raises(InputError, match="coefficients") as caught:
        joint_of([1.0, 2.0], np.eye(2)).combination(row)
    assert "\n" not in str(caught.value)
