from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from revar import (
    Dataset,
    Task,
    Trajectory,
    VisitStatistics,
    one_step_costs,
    policy_value,
)
from revar.errors import InputError
from revar.estimators import CertaintyEquivalence
from revar.estimators.certainty_equivalence import widen
from revar.problems import problems
from tests import enumeration
from tests.plain_filling import (
    Observed,
    error_of,
    filled,
    filled_rewards,
    filled_where_known,
)
from tests.plain_model import MODELS, Floats, PlainModel
from tests.plain_simulation import counts, dataset, plain, split

models = st.builds(
    lambda kind, seed, by_outcome: MODELS[kind](seed, by_outcome=by_outcome),
    st.sampled_from(sorted(MODELS)),
    st.integers(0, 10_000),
    st.booleans(),
)


def uniform(model: PlainModel) -> Floats:
    return np.full((model.states, model.actions), 1.0 / model.actions)


def task_of(model: PlainModel, **changes: Any) -> Task:
    return replace(Task.of(model.mdp(), model.policy), **changes)


def rewards_by_outcome(model: PlainModel, data: Dataset) -> dict[tuple[int, int, int], Any]:
    """The raw rewards of every (state, action, outcome) that was seen."""
    seen: dict[tuple[int, int, int], Any] = {}
    for state, action, reward, successor in zip(
        data.states, data.actions, data.rewards, data.successors, strict=True
    ):
        outcome = model.states if successor < 0 else int(successor)
        seen.setdefault((int(state), int(action), outcome), []).append(float(reward))
    return seen


def empirical(model: PlainModel, data: Dataset) -> PlainModel:
    """The model that the data describes; a pair without data pays nothing and ends."""
    shape = model.chance.shape
    count, mean, std = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for place, rewards in rewards_by_outcome(model, data).items():
        count[place] = len(rewards)
        mean[place], std[place] = np.mean(rewards), np.std(rewards)
    visits = count.sum(axis=2, keepdims=True)
    count[:, :, -1] += visits[:, :, 0] == 0
    return replace(model, chance=count / count.sum(axis=2, keepdims=True), mean=mean, std=std)


def unvisited(model: PlainModel, data: Dataset) -> set[tuple[int, int]]:
    seen = set(zip(data.states.tolist(), data.actions.tolist(), strict=True))
    pairs = {(s, a) for s in range(model.states) for a in range(model.actions)}
    return pairs - seen


@given(models, st.integers(0, 10_000), st.integers(1, 60))
def test_the_value_of_the_empirical_model(model: PlainModel, seed: int, episodes: int) -> None:
    data = dataset(model, uniform(model), episodes, np.random.default_rng(seed))
    found = CertaintyEquivalence().estimate(task_of(model), data)
    assert found.value == pytest.approx(filled(model, data).value, rel=1e-10, abs=1e-11)
    assert found.episodes == episodes
    if found.unvisited_probability == 0.0:
        expected = policy_value(empirical(model, data).mdp(), model.policy)
        assert found.value == pytest.approx(expected, rel=1e-10, abs=1e-11)


@given(models, st.integers(0, 10_000), st.integers(1, 60))
def test_known_transitions_leave_the_rewards_to_be_estimated(
    model: PlainModel, seed: int, episodes: int
) -> None:
    data = dataset(model, uniform(model), episodes, np.random.default_rng(seed))
    found = CertaintyEquivalence(known_transitions=True).estimate(task_of(model), data)
    slope = filled_where_known(model, data).slope
    means = filled_rewards(model, data, slope)[:, :, None]
    mixed = replace(model, mean=np.broadcast_to(means, model.chance.shape))
    expected = enumeration.value(mixed)
    assert found.value == pytest.approx(expected, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("known", [False, True])
def test_many_runs_against_plain_numpy(known: bool) -> None:
    problem = problems.find("gridworld")()
    model = plain(problem.mdp, problem.policy)
    task = Task.of(problem.mdp, problem.policy)
    data = dataset(model, model.policy, 5 * 40, np.random.default_rng(1))
    # The same stream of random numbers, counted instead of kept.
    plain_values = counts(model, model.policy, 200, 1, np.random.default_rng(1)).values(
        model, known_transitions=known
    )
    estimator = CertaintyEquivalence(known_transitions=known)
    assert estimator.estimate(task, data).value == pytest.approx(plain_values[0], rel=1e-12)
    statistics = VisitStatistics.for_model(problem.mdp, runs=5)
    for run, part in enumerate(split(data, 40)):
        statistics.record_many(part, run=run)
    for run, part in enumerate(split(data, 40)):
        from_run = estimator.estimate(task, statistics, run=run)
        from_data = estimator.estimate(task, part)
        assert from_run.value == pytest.approx(from_data.value, rel=1e-12)
        assert from_run.standard_error == pytest.approx(from_data.standard_error, rel=1e-12)
        assert from_run.unvisited_probability == from_data.unvisited_probability


@given(models, st.integers(0, 10_000), st.integers(1, 60), st.booleans())
def test_the_standard_error_is_that_of_the_delta_method(
    model: PlainModel, seed: int, episodes: int, known: bool
) -> None:
    data = dataset(model, uniform(model), episodes, np.random.default_rng(seed))
    estimator = CertaintyEquivalence(known_transitions=known)
    joint, found = estimator.plug_in(task_of(model), data)
    oracle = (filled_where_known if known else filled)(model, data)
    error = error_of(Observed.of(model, data), oracle)
    assert found.covariance[0, 0] == pytest.approx(error.variance, rel=1e-6, abs=1e-12)
    if np.isfinite(error.visits) and error.visits > 1e-20:
        assert found.freedom[0] == pytest.approx(error.freedom, rel=1e-6)
    wider = stats.t(found.freedom[0]).ppf(0.975) / stats.norm.ppf(0.975)
    reported = joint.value_of(0).standard_error
    assert reported == pytest.approx(wider * np.sqrt(error.variance), rel=1e-6, abs=1e-9)
    if found.unvisited[0] == 0.0:
        assert error.gaps == 0.0


@given(models, st.integers(0, 10_000), st.integers(1, 60))
def test_with_enough_data_it_is_the_root_of_costs_over_visits(
    model: PlainModel, seed: int, episodes: int
) -> None:
    data = dataset(model, uniform(model), episodes, np.random.default_rng(seed))
    visits = np.zeros((model.states, model.actions))
    np.add.at(visits, (data.states, data.actions), 1)
    _, found = CertaintyEquivalence().plug_in(task_of(model), data)
    costs = one_step_costs(empirical(model, data).mdp(), model.policy)
    if found.unvisited[0] == 0.0 and not ((visits == 1) & (filled(model, data).weights > 0)).any():
        with np.errstate(invalid="ignore"):
            expected = np.where(costs > 0, costs / (visits - 1), 0.0).sum()
        assert found.covariance[0, 0] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_widening_makes_normal_intervals_as_wide_as_students() -> None:
    covariance = np.array([[4.0, 1.0], [1.0, 9.0]])
    factors = stats.t([3.0, 8.0]).ppf(0.975) / stats.norm.ppf(0.975)
    more = np.sqrt(factors**2 - 1.0)
    wider = widen(covariance, np.array([3.0, 8.0]))
    np.testing.assert_allclose(wider, covariance * (1.0 + np.outer(more, more)), rtol=1e-12)
    np.testing.assert_allclose(wider.diagonal(), covariance.diagonal() * factors**2, rtol=1e-12)
    # What is added is a covariance, so that no combination gets a smaller error.
    assert (np.linalg.eigvalsh(wider - covariance) > 0.0).all()
    np.testing.assert_array_equal(widen(covariance, np.full(2, np.inf)), covariance)


@given(models, st.integers(0, 10_000), st.integers(1, 30))
def test_an_unknown_first_state_adds_its_own_variance(
    model: PlainModel, seed: int, episodes: int
) -> None:
    data = dataset(model, uniform(model), episodes, np.random.default_rng(seed))
    firsts = np.bincount(data.states[data.start[:-1]], minlength=model.states) / episodes
    estimator = CertaintyEquivalence()
    _, found = estimator.plug_in(task_of(model, initial=None), data)
    # The same as knowing that the frequencies are the truth, but for the added term.
    _, known = estimator.plug_in(task_of(model, initial=firsts), data)
    assert found.values[0] == pytest.approx(known.values[0], rel=1e-12, abs=1e-13)
    oracle = filled(replace(model, initial=firsts), data)
    values = oracle.table[0, :-1]
    added = firsts @ (values - firsts @ values) ** 2 / episodes
    assert found.covariance[0, 0] == pytest.approx(
        known.covariance[0, 0] + added, rel=1e-9, abs=1e-12
    )


@given(models, st.integers(0, 10_000), st.integers(1, 8))
def test_mass_without_data_against_enumeration(model: PlainModel, seed: int, episodes: int) -> None:
    data = dataset(model, uniform(model), episodes, np.random.default_rng(seed))
    missing = unvisited(model, data)
    task = task_of(model)
    found = CertaintyEquivalence(known_transitions=True).estimate(task, data)
    expected = enumeration.probability_of_meeting(model, missing)
    assert found.unvisited_probability == pytest.approx(expected, rel=1e-12, abs=1e-15)
    found = CertaintyEquivalence().estimate(task, data)
    expected = enumeration.probability_of_meeting(empirical(model, data), missing)
    assert found.unvisited_probability == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_mass_without_data_vanishes_once_all_is_seen() -> None:
    problem = problems.find("tree")(2)
    model = plain(problem.mdp, problem.policy)
    data = dataset(model, uniform(model), 200, np.random.default_rng(0))
    assert unvisited(model, data) == set()
    estimate = CertaintyEquivalence().estimate(Task.of(problem.mdp, problem.policy), data)
    assert estimate.unvisited_probability == 0.0


def test_one_observation_says_nothing_about_its_own_spread() -> None:
    problem = problems.find("tree")(2)
    task = Task.of(problem.mdp, problem.policy)
    alone = Dataset.of([Trajectory.of([0, 1], [0, 0], [1.0, 2.0])])
    estimate = CertaintyEquivalence().estimate(task, alone)
    assert estimate.standard_error == np.inf
    assert estimate.interval == (-np.inf, np.inf)
    # 0.95 * 0.95 of the policy's episodes go the way that was seen; it stands for the others.
    assert estimate.unvisited_probability == pytest.approx(1 - 0.95**2, rel=1e-12)
    assert estimate.value == pytest.approx(1.0 + 2.0, rel=1e-12)


COVERAGE_RUNS = 600


@pytest.mark.parametrize("on_policy", [False, True])
def test_intervals_cover_the_truth_as_often_as_they_say(on_policy: bool) -> None:
    # Rewards that depend on the outcome, so that the covariance in the costs matters.
    chance = np.array([[[0.0, 0.6, 0.4], [0.3, 0.3, 0.4]], [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]])
    mean = np.array([[[0.0, 2.0, -1.0], [1.0, -1.0, 0.0]], [[1.0, 0.0, 3.0], [0.0, 0.0, -2.0]]])
    policy = np.array([[0.7, 0.3], [0.4, 0.6]])
    initial = np.array([0.6, 0.4])
    model = PlainModel(chance, mean, np.full(mean.shape, 0.7), initial, 3, 0.9, policy)
    value = enumeration.value(model)
    behavior = policy if on_policy else uniform(model)
    data = dataset(model, behavior, COVERAGE_RUNS * 150, np.random.default_rng(3))
    statistics = VisitStatistics.for_model(model.mdp(), runs=COVERAGE_RUNS)
    for run, part in enumerate(split(data, 150)):
        statistics.record_many(part, run=run)
    for known, first_state_known in product((False, True), repeat=2):
        task = task_of(model) if first_state_known else task_of(model, initial=None)
        estimator = CertaintyEquivalence(known_transitions=known)
        estimates = [estimator.estimate(task, statistics, run=r) for r in range(COVERAGE_RUNS)]
        covered = np.mean([low <= value <= high for low, high in (e.interval for e in estimates)])
        squares = [((e.value - value) / e.standard_error) ** 2 for e in estimates]
        # Four standard errors of a frequency of 95 percent, and of a mean square of 1.
        assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / COVERAGE_RUNS)
        assert abs(np.mean(squares) - 1.0) < 4 * np.sqrt(2.0 / COVERAGE_RUNS)


@settings(max_examples=20)
@given(models, st.integers(0, 10_000))
def test_statistics_and_episodes_tell_the_same(model: PlainModel, seed: int) -> None:
    data = dataset(model, uniform(model), 20, np.random.default_rng(seed))
    statistics = VisitStatistics(0, model.actions)
    statistics.record_many(data)
    estimator, task = CertaintyEquivalence(), task_of(model)
    assert estimator.estimate(task, data) == estimator.estimate(task, statistics)


def test_the_same_statistics_serve_policies_of_different_size() -> None:
    statistics = VisitStatistics(0, 1)
    statistics.record(Trajectory.of([0], [0], [1.0]))
    estimator = CertaintyEquivalence()
    for states in (3, 1):
        assert estimator.estimate(Task(np.ones((states, 1)), 1), statistics).value == 1.0


def episode(*states: int, action: int = 0) -> Dataset:
    return Dataset.of([Trajectory.of(states, [action] * len(states), [0.0] * len(states))])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Dataset.of([]), "certainty equivalence needs at least one episode"),
        (VisitStatistics(2, 2), "certainty equivalence needs at least one episode"),
        (VisitStatistics(2, 3), "the data has 3 actions, the policy has 2"),
        (VisitStatistics(5, 2), "the data has 5 states, the target policy covers 2"),
        (episode(0, 1, 0, 1), "an episode has 4 steps; the horizon is 3"),
        (episode(0, action=2), "action 2 in the data; the policy has 2 actions"),
        (episode(0, 4), "state 4 in the data; the policy covers 2 states"),
    ],
)
def test_data_that_does_not_fit_is_refused(data: Any, message: str) -> None:
    task = Task(np.full((2, 2), 0.5), 3)
    with pytest.raises(InputError) as caught:
        CertaintyEquivalence().estimate(task, data)
    assert str(caught.value) == message


def test_known_transitions_need_the_model() -> None:
    task = Task(np.full((2, 2), 0.5), 3)
    with pytest.raises(InputError) as caught:
        CertaintyEquivalence(known_transitions=True).estimate(task, episode(0, 1))
    assert str(caught.value) == (
        "certainty equivalence with known transitions needs the true model, and this task has none"
    )


def test_runs_are_counted() -> None:
    statistics = VisitStatistics(1, 1, runs=2)
    statistics.record(Trajectory.of([0], [0], [1.0]), run=1)
    task = Task(np.ones((1, 1)), 1)
    assert CertaintyEquivalence().estimate(task, statistics, run=1).value == 1.0
    with pytest.raises(InputError, match="run 2 of statistics of 2 runs"):
        CertaintyEquivalence().estimate(task, statistics, run=2)
