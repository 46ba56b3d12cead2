"""The compiled loop against the plain one: the same bits, for everything that can be simulated."""

from collections.abc import Iterator

import pytest

from revar import simulate
from revar.estimators import CertaintyEquivalence, Estimator, estimators
from revar.problems import Problem
from revar.simulation.result import SimulationResult
from revar.strategies import ReducedVariance, Strategy, strategies
from revar.testing.contracts import expect_same_results
from tests.parity.models import LAWS, PROBLEMS

EPISODES = 15


def both(
    problem: Problem, strategy: str | Strategy, estimator: str | Estimator = "certainty-equivalence"
) -> Iterator[SimulationResult]:
    """The same simulation, compiled and plain."""
    for compiled in (None, False):
        yield simulate(
            problem.mdp,
            problem.policy,
            strategy,
            episodes=EPISODES,
            runs=2,
            seed=5,
            estimator=estimator,
            keep_episodes=True,
            compiled=compiled,
        )


def test_the_models_have_every_law_and_kind_of_start_and_ending() -> None:
    models = [problem.mdp for problem in PROBLEMS.values()]
    assert {mdp.reward_law for mdp in models} == set(LAWS)
    assert {mdp.structure().kind for mdp in models} == {"bandit", "tree", "layered", "general"}
    assert {mdp.rewards_depend_on_outcome for mdp in models} == {False, True}
    assert {(mdp.initial > 0).sum() > 1 for mdp in models} == {False, True}
    assert {mdp.discount for mdp in models} >= {0.5, 0.9, 1.0}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("strategy_id", strategies.ids())
def test_strategies(strategy_id: str, name: str) -> None:
    compiled, plain = both(PROBLEMS[name], strategy_id)
    expect_same_results(compiled, plain, f"{strategy_id} on {name}")


@pytest.mark.parametrize("strategy_id", ["on-policy", "uniform", "cb-var", "oracle", "revar"])
def test_the_papers_strategies_are_compiled(strategy_id: str) -> None:
    """Otherwise the comparison above would be of the plain loop with itself."""
    problem = PROBLEMS["tree"]
    result = simulate(
        problem.mdp, problem.policy, strategy_id, episodes=EPISODES, runs=1, compiled=True
    )
    assert result.complete


VARIANTS = [
    ReducedVariance(confidence_scale=0.0),
    ReducedVariance(confidence_scale=0.1, replan_every=4),
    ReducedVariance(replan_every=100),
    ReducedVariance(known_transitions=True),
    ReducedVariance(confidence_scale=0.0, known_transitions=True, replan_every=2),
    ReducedVariance(initial_visits=2, failure_probability=0.5),
]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("strategy", VARIANTS, ids=repr)
def test_variants_of_revar(strategy: ReducedVariance, name: str) -> None:
    compiled, plain = both(PROBLEMS[name], strategy)
    expect_same_results(compiled, plain, f"{strategy!r} on {name}")


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("strategy_id", ["on-policy", "revar"])
def test_transitions_known_to_the_estimator(strategy_id: str, name: str) -> None:
    known = CertaintyEquivalence(known_transitions=True)
    compiled, plain = both(PROBLEMS[name], strategy_id, known)
    expect_same_results(compiled, plain, f"{strategy_id} on {name}, transitions known")


@pytest.mark.parametrize("name", ["tree", "gridworld", "crossroads", "general-bernoulli"])
@pytest.mark.parametrize("estimator_id", estimators.ids())
def test_estimators(estimator_id: str, name: str) -> None:
    compiled, plain = both(PROBLEMS[name], "on-policy", estimator_id)
    expect_same_results(compiled, plain, f"{estimator_id} on {name}")
