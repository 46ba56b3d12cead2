import numpy as np
import pytest

from revar import simulate
from revar.problems import problems
from revar.simulation.parallel import available_threads
from revar.simulation.result import SimulationResult
from revar.strategies import strategies
from revar.testing.contracts import expect_same_results

GRID = problems.find("gridworld")()


def simulated(strategy: str, threads: int | None, runs: int = 7) -> SimulationResult:
    return simulate(
        GRID.mdp,
        GRID.policy,
        strategy,
        episodes=60,
        runs=runs,
        seed=3,
        threads=threads,
        keep_episodes=True,
    )


@pytest.mark.parametrize("strategy", strategies.ids())
def test_results_do_not_depend_on_threads(strategy: str) -> None:
    one = simulated(strategy, 1)
    for threads in (2, 5, 20, None):
        expect_same_results(one, simulated(strategy, threads), f"{strategy} on {threads} threads")


def test_results_do_not_depend_on_other_runs() -> None:
    many, few = simulated("revar", 2), simulated("revar", 2, runs=3)
    assert np.array_equal(many.estimates[:3], few.estimates)
    assert np.array_equal(many.visits[:3], few.visits)
    assert np.unique(many.estimates[:, -1]).size == 7


def test_the_seed_matters() -> None:
    first = simulated("revar", 1)
    other = simulate(GRID.mdp, GRID.policy, "revar", episodes=60, runs=7, seed=4)
    assert not np.intersect1d(first.estimates, other.estimates).size


def test_there_is_at_least_one_thread() -> None:
    assert available_threads() >= 1
