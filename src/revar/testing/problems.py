"""Contracts of problems."""

from collections.abc import Callable
from math import isfinite

import numpy as np

from revar.model.task import checked_policy
from revar.problems import Problem
from revar.simulation.simulate import simulate
from revar.testing.expectations import contract, expect, identical
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
    policy = checked_policy(problem.mdp, problem.policy)
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
