"""Contracts of problems, and the small problems on which other contracts are checked."""

from collections.abc import Callable
from functools import cache
from math import isfinite

import numpy as np

from revar.model.mdp import TabularMDP
from revar.model.question import Best, Difference, Question, Values
from revar.model.statistics import VisitStatistics
from revar.model.task import Task, check_policy
from revar.model.trajectory import Dataset
from revar.problems import Problem, problems
from revar.simulation.simulate import simulate
from revar.testing.contracts import contract, expect, identical
from revar.theory.values import policy_value

Factory = Callable[[], Problem]

EPISODES = 50


def check_problem(factory: Factory) -> None:
    """Every contract of problems."""
    for check in PROBLEM_CHECKS:
        check(factory)


@contract
def check_builds_with_defaults(factory: Factory) -> None:
    """Called without arguments it gives a Problem with a name."""
    problem = factory()
    expect(isinstance(problem, Problem), f"{factory!r} builds {problem!r}, not a Problem")
    expect(isinstance(problem.name, str) and problem.name, f"{factory!r} gives no name")


@contract
def check_builds_the_same_twice(factory: Factory) -> None:
    """Nothing about it is left to chance: whatever is drawn has a seed."""
    one, other = factory(), factory()
    for name in ("states", "actions", "horizon", "discount", "reward_law"):
        expect(getattr(one.mdp, name) == getattr(other.mdp, name), f"{one.name}: {name} varies")
    for name in ("initial", "outcome_reward_mean", "outcome_reward_std"):
        expect(
            identical(getattr(one.mdp, name), getattr(other.mdp, name)),
            f"{one.name}: {name} varies",
        )
    for name, first, second in zip(
        one.mdp.outcomes._fields, one.mdp.outcomes, other.mdp.outcomes, strict=True
    ):
        expect(identical(first, second), f"{one.name}: {name} of its outcomes varies")
    expect(identical(one.policy, other.policy), f"{one.name}: the target policy varies")


@contract
def check_target_policy(factory: Factory) -> None:
    """The target policy is one of the model, and its value is finite."""
    problem = factory()
    policy = check_policy(problem.mdp, problem.policy)
    expect(identical(policy, problem.policy), f"{problem.name}: its policy is not an array [S, A]")
    value = policy_value(problem.mdp, policy)
    expect(isfinite(value), f"{problem.name}: the target policy's value is {value}")


@contract
def check_simulates(factory: Factory) -> None:
    """Data can be collected from it, by the target policy and adaptively."""
    problem = factory()
    for strategy in ("on-policy", "revar"):
        result = simulate(problem.mdp, problem.policy, strategy, episodes=EPISODES, runs=2)
        expect(
            np.all(np.isfinite(result.estimates)),
            f"{problem.name}: estimates of {strategy} are not finite",
        )
        visits = result.visits.sum(axis=(1, 2))
        expect(
            np.all(visits >= EPISODES) and np.all(visits <= EPISODES * problem.mdp.horizon),
            f"{problem.name}: {strategy} made {visits.tolist()} visits in {EPISODES} episodes",
        )


PROBLEM_CHECKS: tuple[Callable[[Factory], None], ...] = (
    check_builds_with_defaults,
    check_builds_the_same_twice,
    check_target_policy,
    check_simulates,
)


@cache
def sample_problems() -> tuple[Problem, ...]:
    """A tree, a grid, and a problem with everything that a model may have."""
    return problems.find("tree")(3), problems.find("gridworld")(3), crossroads()


def crossroads() -> Problem:
    """Two start states, endings, rewards by outcome, and a target policy with gaps.

    The target policy never takes action 2 in states 0 and 1, takes a single action in state 2,
    and has no row for state 4, to which only action 2 leads.
    """
    transitions = np.zeros((5, 3, 5))
    transitions[0, 0, [1, 2]] = 0.6, 0.4
    transitions[0, 1, [2, 3]] = 0.5, 0.3  # and ends with probability 0.2
    transitions[0, 2, 4] = 1.0
    transitions[1, 0, [2, 3]] = 0.9, 0.1
    transitions[1, 1, 0] = 1.0  # a way back
    transitions[1, 2, 4] = 1.0
    transitions[2, 1, 3] = 0.7
    transitions[3, :2, 1] = 0.5, 0.25
    transitions[4, :, 0] = 0.5
    rng = np.random.default_rng(0)
    mdp = TabularMDP(
        transitions,
        rng.normal(size=(5, 3, 6)),
        rng.exponential(size=(5, 3, 6)),
        [0.7, 0.3, 0.0, 0.0, 0.0],
        5,
        0.9,
        reward_law="two-point",
    )
    policy = np.array(
        [[0.8, 0.2, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 0.0]]
    )
    return Problem("crossroads", mdp, policy)


def questions_about(problem: Problem) -> tuple[Question, ...]:
    """Questions about the target policy and another one.

    The other leaves out the first of the actions of each state that has several.
    """
    other = problem.policy.copy()
    several = np.flatnonzero((other > 0).sum(axis=1) > 1)
    other[several, (other[several] > 0).argmax(axis=1)] = 0.0
    other[several] /= other[several].sum(axis=1, keepdims=True)
    policies = (problem.policy, other)
    return Difference(*policies), Values(policies, (1.0, 3.0)), Best(policies)


def task_of(problem: Problem, episodes: int) -> Task:
    """The problem's task, with the model."""
    return Task.of(problem.mdp, problem.policy, budget=episodes)


@cache
def on_policy_episodes(problem: Problem, episodes: int) -> Dataset:
    """Episodes of the target policy itself, with propensities."""
    result = simulate(
        problem.mdp, problem.policy, "on-policy", episodes=episodes, runs=1, keep_episodes=True
    )
    return result.datasets[0]


def statistics_of(problem: Problem, data: Dataset) -> VisitStatistics:
    """What is learned from the episodes."""
    statistics = VisitStatistics(problem.mdp.states, problem.mdp.actions)
    statistics.record_many(data)
    return statistics
