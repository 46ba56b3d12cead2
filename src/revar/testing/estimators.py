"""Contracts of estimators."""

from collections.abc import Callable
from dataclasses import replace
from math import isfinite

import numpy as np

from revar.estimators.estimator import Estimate, Estimator
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.model.trajectory import Dataset, Trajectory
from revar.problems import Problem
from revar.simulation.simulate import simulate
from revar.testing.contracts import (
    PARAMETER_CHECKS,
    STEPS,
    contract,
    expect,
    expect_refusal,
    identical,
)
from revar.testing.problems import on_policy_episodes, sample_problems, statistics_of, task_of
from revar.theory.values import policy_value

Factory = Callable[[], Estimator]

EPISODES = 400


def check_estimator(factory: Factory) -> None:
    """Every contract of estimators."""
    for check in ESTIMATOR_CHECKS:
        check(factory)


@contract
def check_good_data_gives_the_value(factory: Factory) -> None:
    """Target-policy episodes give finite numbers, and the true value within 5 standard errors."""
    estimator = factory()
    for problem, task, data in _samples():
        estimate = estimator.estimate(task, data)
        name = f"{estimator!r} on {problem.name}"
        truth = policy_value(problem.mdp, problem.policy)
        expect(isfinite(estimate.value), f"{name} estimates {estimate.value}")
        expect(
            isfinite(estimate.standard_error) and estimate.standard_error > 0,
            f"{name} has standard error {estimate.standard_error}",
        )
        expect(
            abs(estimate.value - truth) < 5 * estimate.standard_error,
            f"{name} estimates {estimate.value} +- {estimate.standard_error}; truth {truth}",
        )
        expect(
            estimate.episodes == EPISODES,
            f"{name} counts {estimate.episodes} of {EPISODES} episodes",
        )
        expect(
            0.0 <= estimate.unvisited_probability <= 1.0,
            f"{name} reports the probability {estimate.unvisited_probability}",
        )


@contract
def check_estimation_is_deterministic(factory: Factory) -> None:
    """The same data gives the same estimate, from any instance, and is not changed."""
    estimator = factory()
    for problem, task, data in _samples():
        before = {name: getattr(data, name).copy() for name in STEPS}
        first = estimator.estimate(task, data)
        for again in (estimator, factory()):
            expect(
                again.estimate(task, data) == first,
                f"{estimator!r} estimates differently from the same data of {problem.name}",
            )
        for name, values in before.items():
            expect(identical(values, getattr(data, name)), f"{estimator!r} changes {name}")


@contract
def check_order_does_not_matter(factory: Factory) -> None:
    """Episodes may come in any order.

    An estimator may deal them to `folds`, to hold each out of a model that it fits: a change of
    order that leaves every episode in its fold changes nothing but rounding, and any other at most
    one standard error.
    """
    estimator = factory()
    rng = np.random.default_rng(0)
    for problem, task, data in _samples():
        first = estimator.estimate(task, data)
        order = np.arange(EPISODES).reshape(-1, estimator.folds)
        alike = estimator.estimate(task, _reorder(data, rng.permutation(order).ravel()))
        name = f"the order of episodes matters to {estimator!r} on {problem.name}"
        for field in ("value", "standard_error", "unvisited_probability"):
            one, other = getattr(first, field), getattr(alike, field)
            expect(abs(one - other) <= 1e-9 * (1.0 + abs(one)), f"{name}: {field} {one} or {other}")
        shuffled = estimator.estimate(task, _reorder(data, rng.permutation(EPISODES)))
        expect(
            abs(first.value - shuffled.value) < first.standard_error,
            f"{name}: value {first.value} or {shuffled.value}",
        )


@contract
def check_bad_data_is_refused(factory: Factory) -> None:
    """Data that cannot belong to the task is refused with an InputError."""
    estimator = factory()
    for problem, task, data in _samples():
        states, actions, horizon = task.states, task.actions, task.horizon
        start = int(np.flatnonzero(problem.mdp.initial)[0])

        def episode(path: list[int], action: int, last: int = -1, share: float = 0.5) -> Trajectory:
            return Trajectory.of(
                path,
                [action] * len(path),
                [0.0] * len(path),
                last_successor=last,
                propensities=[share] * len(path),
            )

        cases = {
            "no episodes": [],
            "an episode longer than the horizon": [episode([start] * (horizon + 1), 0)],
            "a state that the policy does not cover": [episode([start, states], 0)],
            "a successor that the policy does not cover": [episode([start], 0, last=states)],
            "an action that there is not": [episode([start], actions)],
        }
        for name, bad in cases.items():
            mixed = Dataset.of([*data.head(3), *bad] if bad else [])
            with expect_refusal(f"{estimator!r} given {name} on {problem.name}"):
                estimator.estimate(task, mixed)


@contract
def check_kind_of_data(factory: Factory) -> None:
    """Statistics give what their episodes give, or are refused where episodes are needed.

    Where episodes are needed, so are propensities: tracked data is refused.
    """
    estimator = factory()
    for problem, task, data in _samples():
        statistics = statistics_of(problem, data)
        if not estimator.needs_episodes:
            expect(
                _close(estimator.estimate(task, statistics), estimator.estimate(task, data)),
                f"{estimator!r} estimates differently from statistics and from their episodes",
            )
            empty = VisitStatistics(task.states, task.actions)
            with expect_refusal(f"{estimator!r} given statistics of no episodes"):
                estimator.estimate(task, empty)
            continue
        with expect_refusal(f"{estimator!r} needs episodes and is given statistics"):
            estimator.estimate(task, statistics)
        tracked = replace(data, propensities=np.full(data.states.size, np.nan))
        with expect_refusal(f"{estimator!r} is given episodes without propensities"):
            estimator.estimate(task, tracked)


@contract
def check_least_episodes(factory: Factory) -> None:
    """With `least_episodes` episodes there is a value, with fewer a refusal."""
    estimator = factory()
    for problem, task, data in _samples():
        least = estimator.least_episodes
        estimate = estimator.estimate(task, data.head(least))
        expect(
            isfinite(estimate.value) and estimate.standard_error >= 0,
            f"{estimator!r} makes {estimate} of {least} episodes of {problem.name}",
        )
        with expect_refusal(f"{estimator!r} given {least - 1} episodes"):
            estimator.estimate(task, data.head(least - 1))


@contract
def check_simulation_uses_it(factory: Factory) -> None:
    """simulate gives, at every checkpoint, the estimate from the episodes up to it."""
    estimator = factory()
    for problem in sample_problems():
        points = [estimator.least_episodes, 10, 40]
        result = simulate(
            problem.mdp,
            problem.policy,
            "on-policy",
            episodes=40,
            runs=2,
            checkpoints=points,
            estimator=estimator,
            keep_episodes=True,
        )
        task = task_of(problem, 40)
        for run, data in enumerate(result.datasets):
            for i, count in enumerate(points):
                expected = estimator.estimate(task, data.head(count))
                found = Estimate(
                    result.estimates[run, i],
                    result.standard_errors[run, i],
                    count,
                    result.unvisited_probability[run, i],
                )
                expect(
                    _close(found, expected),
                    f"simulate with {estimator!r} gives {found} on {problem.name}; "
                    f"its episodes give {expected}",
                )


ESTIMATOR_CHECKS: tuple[Callable[[Factory], None], ...] = (
    *PARAMETER_CHECKS,
    check_good_data_gives_the_value,
    check_estimation_is_deterministic,
    check_order_does_not_matter,
    check_bad_data_is_refused,
    check_kind_of_data,
    check_least_episodes,
    check_simulation_uses_it,
)


def _samples() -> list[tuple[Problem, Task, Dataset]]:
    return [
        (problem, task_of(problem, EPISODES), on_policy_episodes(problem, EPISODES))
        for problem in sample_problems()
    ]


def _reorder(data: Dataset, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Dataset:
    return Dataset.of(data[int(episode)] for episode in order)


def _close(one: Estimate, other: Estimate) -> bool:
    return one.episodes == other.episodes and bool(
        np.allclose(
            [one.value, one.standard_error, one.unvisited_probability],
            [other.value, other.standard_error, other.unvisited_probability],
            rtol=1e-9,
            atol=1e-9,
        )
    )
