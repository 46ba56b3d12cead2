"""Contracts of strategies: all of them, and here what simulated results may depend on."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from revar.model.mdp import TabularMDP
from revar.problems import Problem
from revar.simulation.result import SimulationResult
from revar.simulation.simulate import simulate
from revar.strategies.strategy import Strategy
from revar.testing.contracts import (
    PARAMETER_CHECKS,
    PER_RUN,
    contract,
    expect,
    expect_same_results,
    identical,
)
from revar.testing.limits import LIMIT_CHECKS
from revar.testing.plans import PLAN_CHECKS
from revar.testing.problems import questions_about, sample_problems

Factory = Callable[[], Strategy]

EPISODES = 24
RUNS = 3


def check_strategy(factory: Factory) -> None:
    """Every contract of strategies."""
    for check in STRATEGY_CHECKS:
        check(factory)


@contract
def check_same_seed_same_result(factory: Factory) -> None:
    """The seed fixes every number, whichever instance plays, and another seed changes them."""
    for problem in sample_problems():
        first, second = _simulate(factory(), problem), _simulate(factory(), problem)
        expect_same_results(first, second, f"{factory()!r} twice with one seed on {problem.name}")
        other = _simulate(factory(), problem, seed=1)
        expect(
            not identical(first.estimates, other.estimates),
            f"{factory()!r} gives the same estimates with two seeds on {problem.name}",
        )


@contract
def check_threads_do_not_matter(factory: Factory) -> None:
    """One thread or several: the same numbers."""
    strategy = factory()
    for problem in sample_problems():
        one, several = (_simulate(strategy, problem, threads=count) for count in (1, RUNS))
        expect_same_results(one, several, f"{strategy!r} on 1 and {RUNS} threads, {problem.name}")


@contract
def check_runs_are_independent(factory: Factory) -> None:
    """A run is the same however many others are played, and differs from the others."""
    strategy = factory()
    for problem in sample_problems():
        few = _simulate(strategy, problem, runs=1)
        many = _simulate(strategy, problem)
        for name in PER_RUN:
            expect(
                identical(getattr(few, name), getattr(many, name)[:1]),
                f"{name} of a run of {strategy!r} on {problem.name} depend on the number of runs",
            )
        expect(
            np.unique(many.estimates[:, -1]).size == RUNS,
            f"runs of {strategy!r} on {problem.name} repeat each other",
        )


@contract
def check_compiled_agrees_with_plain(factory: Factory) -> None:
    """The compiled loop and plain Python: the same numbers, to the last bit.

    Of one target policy, and of two.
    """
    strategy = factory()
    for problem in sample_problems():
        for asked in (problem.policy, questions_about(problem)[0]):
            expect_same_results(
                _simulate(strategy, problem, asked=asked),
                _simulate(strategy, problem, asked=asked, compiled=False),
                f"{strategy!r} compiled and in plain Python on {problem.name}",
            )


@contract
def check_nothing_is_pickled(factory: Factory) -> None:
    """Simulation works with a strategy and a model that cannot be pickled."""
    strategy = factory()
    for problem in sample_problems():
        expect_same_results(
            _simulate(strategy, problem, threads=2),
            _simulate(
                _unpicklable_strategy(strategy),
                Problem(problem.name, _unpicklable_model(problem.mdp), problem.policy),
                threads=2,
            ),
            f"{strategy!r} that cannot be pickled on {problem.name}",
        )


STRATEGY_CHECKS: tuple[Callable[[Factory], None], ...] = (
    *PARAMETER_CHECKS,
    *PLAN_CHECKS,
    *LIMIT_CHECKS,
    check_same_seed_same_result,
    check_threads_do_not_matter,
    check_runs_are_independent,
    check_compiled_agrees_with_plain,
    check_nothing_is_pickled,
)


def _simulate(
    strategy: Strategy,
    problem: Problem,
    *,
    asked: Any = None,
    runs: int = RUNS,
    seed: int = 0,
    threads: int = 1,
    compiled: bool | None = None,
) -> SimulationResult:
    return simulate(
        problem.mdp,
        problem.policy if asked is None else asked,
        strategy,
        episodes=EPISODES,
        runs=runs,
        seed=seed,
        threads=threads,
        keep_episodes=True,
        compiled=compiled,
    )


def _refuse_pickling(self: object, protocol: object) -> str:
    raise AssertionError(f"{self!r} was pickled (protocol {protocol})")


def _unpicklable_strategy(strategy: Strategy) -> Strategy:
    kind = type(strategy)
    unpicklable = type(kind.__name__, (kind,), {"__reduce_ex__": _refuse_pickling})
    parameters = {field.name: getattr(strategy, field.name) for field in fields(strategy)}  # type: ignore[arg-type]
    made: Strategy = unpicklable(**parameters)
    return made


def _unpicklable_model(mdp: TabularMDP) -> TabularMDP:
    unpicklable = type("TabularMDP", (TabularMDP,), {"__reduce_ex__": _refuse_pickling})
    twin: TabularMDP = object.__new__(unpicklable)
    for name, value in vars(mdp).items():
        object.__setattr__(twin, name, value)
    return twin
