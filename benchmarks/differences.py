"""The error of a difference with flow against its limit, and how often its intervals hold.

`python -m benchmarks.deciding_study` writes it down beside what deciding takes.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import revar
from revar.model.arrays import FloatArray
from revar.simulation.result import SimulationResult
from revar.theory.costs import one_step_costs, variance_of_visits
from revar.theory.values import occupancy

CONFIDENCE = 0.95
MEASURED_AT = (500, 1000)  # episodes


@dataclass(frozen=True)
class Accuracy:
    """The estimated difference of two policies after a number of episodes with flow."""

    pair: str
    episodes: int
    runs: int
    limit: float  # K*variance
    ratio: float  # K*variance over the limit
    standard_error: float  # of the ratio
    by_visits: float  # K sum C/T over the limit, mean: the ratio without the noise of outcomes
    coverage: float
    on_policy_apart: float  # by theory, half of the episodes each: K*variance over the limit
    on_policy_pooled: float
    seconds: float


def measure_differences(runs: int) -> Iterator[Accuracy]:
    """Error and coverage of differences with flow, each budget from its own runs."""
    graph = revar.find_problem("garnet", states=12)
    mdp, policy = graph.mdp, graph.policy
    other = np.random.default_rng(1).dirichlet(np.ones(mdp.actions), size=mdp.states)
    grid = revar.find_problem("gridworld").mdp
    lake = revar.from_gymnasium("FrozenLake-v1", discount=0.99)
    yield from measure_pair("gridworld, A - B", grid, grid_policy(0.45), grid_policy(0.35), runs)
    yield from measure_pair("Garnet, 30% apart", mdp, policy, 0.7 * policy + 0.3 * other, runs)
    yield from measure_pair(
        "FrozenLake, ε = 0.2 - 0.3", lake, lake_policy(0.2), lake_policy(0.3), runs
    )


def measure_pair(
    name: str, mdp: revar.TabularMDP, first: FloatArray, second: FloatArray, runs: int
) -> Iterator[Accuracy]:
    """Error and coverage of one difference."""
    question = revar.Difference(first, second)
    limit = revar.optimal_flow(mdp, question, tolerance=1e-3).limit
    costs = one_step_costs(mdp, question)
    alone = [revar.estimation_variance(mdp, policy, policy) for policy in (first, second)]
    in_turn = 0.5 * (occupancy(mdp, first) + occupancy(mdp, second)).sum(axis=0)
    for episodes in MEASURED_AT:
        began = time.perf_counter()
        result = simulate(mdp, question, "flow", [episodes], runs)
        scale = episodes / limit
        by_visits = [variance_of_visits(costs, visits) for visits in result.visits]
        yield Accuracy(
            pair=name,
            episodes=episodes,
            runs=runs,
            limit=limit,
            ratio=float(scale * result.mse[0]),
            standard_error=float(scale * result.mse_standard_error[0]),
            by_visits=float(scale * np.mean(by_visits)),
            coverage=float(result.coverage(CONFIDENCE)[0]),
            on_policy_apart=2.0 * sum(alone) / limit,
            on_policy_pooled=variance_of_visits(costs, in_turn) / limit,
            seconds=time.perf_counter() - began,
        )


def simulate(
    mdp: revar.TabularMDP,
    question: object,
    strategy: str,
    times: list[int],
    runs: int,
    seed: int = 0,
) -> SimulationResult:
    """Runs with estimates at all looks."""
    return revar.simulate(
        mdp, question, strategy, episodes=times[-1], runs=runs, seed=seed, checkpoints=times
    )


def grid_policy(common: float) -> FloatArray:
    """The gridworld's policy that goes right and down with probability `common` each."""
    return revar.find_problem("gridworld", common=common).policy


def lake_policy(epsilon: float) -> FloatArray:
    """The optimal policy of the lake, soft by epsilon."""
    return revar.find_problem("frozenlake", epsilon=epsilon).policy


def difference_lines(accuracies: list[Accuracy]) -> list[str]:
    """A table of differences."""
    lines = [
        f"The difference of two policies with flow, {accuracies[0].runs:,} runs a row, each from "
        f"its own budget. K times the mean squared error over its limit, and K·Σ C/T over it, "
        f"the error that belongs to the visits made, which has little noise; beside what theory "
        f"says of on-policy episodes, half of them each.",
        "",
        "| difference | K | limit | flow over the limit | by its visits | 95% interval holds "
        "| on-policy, pooled | on-policy, apart |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.pair} | {each.episodes} | {each.limit:.4g} | {each.ratio:.3f} ± "
        f"{each.standard_error:.3f} | {each.by_visits:.3f} | {each.coverage:.1%} "
        f"| {each.on_policy_pooled:.2f} | {each.on_policy_apart:.2f} |"
        for each in accuracies
    ]
    return lines
