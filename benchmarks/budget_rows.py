"""The rows of the study of budgets and limits: what is measured, and how."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import revar
from benchmarks.budget_problems import (
    Case,
    costly_river,
    frozen_lake,
    gridworld,
    rainy_taxi,
    rare_loss,
    slippery_cliff,
    taxi,
)
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.simulation.result import SimulationResult
from revar.strategies.flow import Flow
from revar.theory.costs import variance_of_visits

ON_POLICY_EPISODES = 2000  # which the budgets of steps are worth
NEGLIGIBLE = 0.01  # probability that rests on no data
REPLANNED = 20  # runs whose plans are made again, to look at their ratios
LARGE = ("Taxi", "Taxi, rain")  # whose plans take long
BUILD: dict[str, Callable[[], Case]] = {
    "FrozenLake, ε = 0.2": frozen_lake(0.2),
    "FrozenLake, ε = 0.5": frozen_lake(0.5),
    "FrozenLake, ε = 1": frozen_lake(1.0),
    "CliffWalking, slippery": slippery_cliff,
    "Taxi": taxi,
    "Taxi, rain": rainy_taxi,
    "gridworld": gridworld,
    "costly RiverSwim": costly_river,
    "rare loss": rare_loss,
}
Key = tuple[str, str, int]  # problem, what is measured, runs
Show = Callable[[str], None]  # takes what is under way


@dataclass(frozen=True)
class Spending:
    """A budget of steps, spent by one strategy."""

    problem: str
    what: str  # the strategy
    runs: int
    budget: int  # steps
    limit: float  # error times steps
    ratio: float | None  # budget times mean squared error, over the limit; None if that is 0
    ratio_error: float | None  # standard error of the ratio
    mse: float
    mse_error: float  # its standard error
    by_visits: float | None  # the ratio without the noise of outcomes, if the data suffices
    bias: float  # of the estimate, in its standard deviations
    episodes: float
    steps: float  # of an episode
    coverage: float
    seconds: float


@dataclass(frozen=True)
class Keeping:
    """Episodes that flow collected within a limit."""

    problem: str
    what: str  # the limit, in words
    runs: int
    episodes: int
    limit: float  # K*MSE at best, within the limit
    free: float  # without it
    ratio: float | None  # K*MSE over the limit
    ratio_error: float | None
    by_visits: float | None
    bias: float
    floor: float  # on the return; where there is none, the target policy's value
    mean_return: float
    return_error: float  # standard error of the mean over runs
    below: float  # share of the runs whose mean return is below the floor
    plan_ratio: float | None  # the largest to the target policy in the plans that were looked at
    coverage: float
    seconds: float


@cache
def build(name: str) -> Case:
    """A problem, made once."""
    return BUILD[name]()


def measure_spending(key: Key, show: Show) -> Spending:
    """One strategy with a budget of steps."""
    problem, strategy, _ = key
    mdp, policy = build(problem)
    budget = round(ON_POLICY_EPISODES * float(revar.occupancy(mdp, policy).sum()))
    tolerance = 1e-2 if problem in LARGE else 1e-3
    limit = revar.optimal_flow(mdp, policy, cost="steps", tolerance=tolerance).limit
    began = time.perf_counter()
    result = simulate(key, show, strategy, steps=budget, checkpoints=[budget])
    ratio, ratio_error, by_visits = over_limit(problem, result, budget, limit)
    return Spending(
        *key,
        budget=budget,
        limit=limit,
        ratio=ratio,
        ratio_error=ratio_error,
        mse=float(result.mse[0]),
        mse_error=float(result.mse_standard_error[0]),
        by_visits=by_visits,
        bias=bias_of(result),
        episodes=float(result.episodes.mean()),
        steps=float(result.steps.sum() / result.episodes.sum()),
        coverage=float(result.coverage()[0]),
        seconds=time.perf_counter() - began,
    )


def measure_keeping(key: Key, show: Show, limits: revar.Limits, episodes: int) -> Keeping:
    """Flow within a limit. Returns are those of the visits, without the noise of rewards."""
    problem, _, runs = key
    mdp, policy = build(problem)
    assert mdp.discount == 1.0  # visits do not tell when a reward came
    limit = revar.optimal_flow(mdp, policy, limits=limits, tolerance=1e-3).limit
    began = time.perf_counter()
    result = simulate(key, show, "flow", episodes=episodes, checkpoints=[episodes], limits=limits)
    ratio, ratio_error, by_visits = over_limit(problem, result, episodes, limit)
    returns = np.einsum("rsa,sa->r", result.visits, mdp.reward_mean) / result.episodes
    value = revar.policy_value(mdp, policy)
    floor = limits.least_return(value)
    least = value if floor is None else floor
    return Keeping(
        *key,
        episodes=episodes,
        limit=limit,
        free=revar.optimal_flow(mdp, policy, tolerance=1e-3).limit,
        ratio=ratio,
        ratio_error=ratio_error,
        by_visits=by_visits,
        bias=bias_of(result),
        floor=least,
        mean_return=float(returns.mean()),
        return_error=float(returns.std(ddof=1)) / runs**0.5,
        below=float(np.mean(returns < least)),
        plan_ratio=None if limits.max_ratio is None else largest_ratio(key, limits, episodes),
        coverage=float(result.coverage()[0]),
        seconds=time.perf_counter() - began,
    )


def simulate(key: Key, show: Show, strategy: str, **given: Any) -> SimulationResult:
    """The runs of a row; an interrupt ends the study, not the row alone."""
    problem, what, runs = key

    def progress(done: float, total: float) -> None:
        show(f"{problem}, {what}: {done / total:.0%}")

    result = revar.simulate(
        *build(problem), strategy, runs=runs, seed=1, progress=progress, **given
    )
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def over_limit(
    problem: str, result: SimulationResult, budget: int, limit: float
) -> tuple[float | None, float | None, float | None]:
    """Budget times error over the limit, its standard error, and the same by the visits made."""
    if limit == 0.0:
        return None, None, None
    scale = budget / limit
    by_visits = None
    if result.unvisited_probability.max() <= NEGLIGIBLE:
        costs = revar.one_step_costs(*build(problem))
        visited = np.maximum(result.visits, 1)
        errors = [variance_of_visits(costs, visits) for visits in visited]
        by_visits = float(scale * np.mean(errors))
    return float(scale * result.mse[0]), float(scale * result.mse_standard_error[0]), by_visits


def bias_of(result: SimulationResult) -> float:
    """The mean error over the standard deviation of estimates; 0 where they are exact."""
    errors = result.estimates[:, 0] - result.true_value
    deviation = float(errors.std(ddof=1))
    return float(errors.mean()) / deviation if deviation > 0.0 else 0.0


def largest_ratio(key: Key, limits: revar.Limits, episodes: int) -> float:
    """The largest share of an action over the target policy's, in all plans of some runs."""
    mdp, policy = build(key[0])
    result = revar.simulate(
        *(mdp, policy, "flow"),
        episodes=episodes,
        runs=min(REPLANNED, key[2]),
        seed=1,
        limits=limits,
        keep_episodes=True,
    )
    task = Task.of(mdp, policy, budget=episodes, limits=limits).without_model()
    largest = 0.0
    for dataset in result.datasets:
        statistics, done = VisitStatistics.for_model(mdp), 0
        while done < episodes:
            plan = Flow().plan(task, statistics)
            assert plan.lasts is not None
            allowed = np.broadcast_to(policy > 0, plan.scores.shape)
            assert not plan.scores[~allowed].any()
            ratios = plan.scores / np.where(policy > 0, policy, 1.0)
            largest = max(largest, float(ratios.max()))
            for number in range(done, min(done + plan.lasts, episodes)):
                statistics.record(dataset[number])
            done += plan.lasts
    return largest
