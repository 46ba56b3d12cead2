"""The problems on which the flow strategies are measured, against the smallest possible error."""

from functools import cache

from revar import optimal_flow, simulate
from revar.problems import Problem, problems
from revar.simulation.result import SimulationResult
from revar.strategies import Strategy
from tests.strategies.measured import Measured, predicted_mse, scaled_mse

PROBLEMS: dict[str, Problem] = {
    "tree": problems.find("tree")(),
    "grid, slip 0": problems.find("gridworld")(slip=0.0),
    "grid, slip 0.1": problems.find("gridworld")(slip=0.1),
    "grid, slip 0.3": problems.find("gridworld")(slip=0.3),
    "riverswim": problems.find("riverswim")(),
    "garnet": problems.find("garnet")(),
    "bandit": problems.find("bandit")(),
}
# The grids take long, and half the runs show as much there.
RUNS = {name: 1000 if name.startswith("grid") else 2000 for name in PROBLEMS}


@cache
def limit(name: str) -> float:
    """The smallest possible K*MSE with unknown transitions."""
    return optimal_flow(PROBLEMS[name].mdp, PROBLEMS[name].policy).limit


def played(
    name: str, strategy: str | Strategy, episodes: int, runs: int | None = None
) -> SimulationResult:
    """Runs with seed 0, estimated after the last episode."""
    return _simulated(name, strategy, episodes, runs or RUNS[name])


@cache
def _simulated(name: str, strategy: str | Strategy, episodes: int, runs: int) -> SimulationResult:
    return simulate(
        PROBLEMS[name].mdp,
        PROBLEMS[name].policy,
        strategy,
        episodes=episodes,
        runs=runs,
        seed=0,
        checkpoints=[episodes],
    )


def measured(
    name: str, strategy: str | Strategy, episodes: int, runs: int | None = None
) -> Measured:
    """K*MSE over the runs, in multiples of the limit."""
    return _over(scaled_mse(played(name, strategy, episodes, runs)), limit(name))


def predicted(name: str, strategy: str | Strategy, episodes: int) -> Measured:
    """K * sum C/T, from where the runs' visits went, in multiples of the limit."""
    return _over(predicted_mse(PROBLEMS[name], played(name, strategy, episodes)), limit(name))


def _over(error: Measured, unit: float) -> Measured:
    return Measured(error.mean / unit, error.error / unit)
