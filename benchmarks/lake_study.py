"""What evaluation delivers on FrozenLake: the study behind docs/evaluate.md.

`python -m benchmarks.lake_study` writes benchmarks/results/lake_study.md and .json. It measures, in
simulations and through Gymnasium's own `env.step`, how often intervals hold, how far flow gets
ahead of the mean return and of on-policy collection, and what it costs to stop at a wanted
half-width.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.stats import binomtest, ks_2samp

import revar
from benchmarks.machine import facts
from revar.collection.checkpoints import checkpoint_times, quantile
from revar.model.arrays import FloatArray
from revar.simulation.result import SimulationResult

RESULTS = Path(__file__).with_name("results")
DISCOUNT = 0.99
LAKES = {4: "FrozenLake-v1", 8: "FrozenLake8x8-v1"}
SOFTNESS = (0.05, 0.2, 0.5)
# What theory says of the mean return against flow, from a first, coarser solution of the optimum.
PUBLISHED = dict(
    zip(
        [(s, e) for s in LAKES for e in SOFTNESS], (1.59, 1.72, 2.77, 1.29, 1.45, 3.04), strict=True
    )
)
COVERAGE_AT, RATIO_AT = 2000, 5000


@dataclass(frozen=True)
class Lake:
    """One lake with one target policy, and everything that was measured on it."""

    size: int
    epsilon: float
    value: float
    runs: int
    coverage: float  # of flow's intervals after COVERAGE_AT episodes
    ratio_runs: int  # for the figures after RATIO_AT episodes
    mean_return: float  # K*MSE, exact
    on_policy: float  # K*MSE of certainty equivalence, exact limit
    limit: float  # K*MSE of the best collection
    measured_mean_return: float  # K*MSE at RATIO_AT episodes
    measured_on_policy: float
    measured_flow: float
    measured_error: float  # of the ratio mean return / flow, relative
    real_runs: int
    real_coverage: float
    real_p_value: float  # of the two-sample test between environment and simulation
    seconds: float

    @property
    def ratio(self) -> float:
        """Mean return over flow, by theory."""
        return self.mean_return / self.limit

    @property
    def measured_ratio(self) -> float:
        """Mean return over flow, as measured."""
        return self.measured_mean_return / self.measured_flow


@dataclass(frozen=True)
class Stopping:
    """Stopping at a half-width: what the interval covers, allowing for checkpoints or not."""

    problem: str
    half_width: float
    runs: int
    coverage: float
    naive_coverage: float
    median_episodes: float
    reached: float  # share of runs that stopped before the budget


def lake_model(size: int) -> revar.TabularMDP:
    """The lake as Gymnasium's transition table has it."""
    return revar.from_gymnasium(LAKES[size], discount=DISCOUNT)


def soft_policy(size: int, epsilon: float) -> FloatArray:
    """The optimal policy, soft by epsilon."""
    return revar.find_problem("frozenlake", size=size, epsilon=epsilon).policy


def simulated(
    mdp: revar.TabularMDP,
    policy: FloatArray,
    strategy: str,
    episodes: int,
    runs: int,
    estimator: str = "certainty-equivalence",
) -> SimulationResult:
    """Runs with one estimate, at the end."""
    return revar.simulate(
        mdp,
        policy,
        strategy,
        episodes=episodes,
        runs=runs,
        seed=1,
        checkpoints=[episodes],
        estimator=estimator,
    )


def measured(size: int, epsilon: float, runs: int, ratio_runs: int, real_runs: int) -> Lake:
    """Everything on one lake."""
    began = time.perf_counter()
    mdp, policy = lake_model(size), soft_policy(size, epsilon)
    flow = simulated(mdp, policy, "flow", RATIO_AT, ratio_runs)
    on_policy = simulated(mdp, policy, "on-policy", RATIO_AT, ratio_runs)
    returns = simulated(mdp, policy, "on-policy", RATIO_AT, ratio_runs, "monte-carlo")
    relative = np.hypot(
        returns.mse_standard_error[0] / returns.mse[0], flow.mse_standard_error[0] / flow.mse[0]
    )
    twin = simulated(mdp, policy, "flow", COVERAGE_AT, runs)
    estimates, held = real_estimates(size, policy, float(flow.true_value), real_runs)
    return Lake(
        size=size,
        epsilon=epsilon,
        value=float(flow.true_value),
        runs=runs,
        coverage=float(twin.coverage()[0]),
        ratio_runs=ratio_runs,
        mean_return=revar.return_variance(mdp, policy),
        on_policy=revar.estimation_variance(mdp, policy, policy),
        limit=revar.optimal_flow(mdp, policy, tolerance=1e-3).limit,
        measured_mean_return=float(RATIO_AT * returns.mse[0]),
        measured_on_policy=float(RATIO_AT * on_policy.mse[0]),
        measured_flow=float(RATIO_AT * flow.mse[0]),
        measured_error=float(relative),
        real_runs=real_runs,
        real_coverage=float(np.mean(held)),
        real_p_value=float(ks_2samp(estimates, twin.estimates[:, 0]).pvalue),
        seconds=time.perf_counter() - began,
    )


def real_estimates(
    size: int, policy: FloatArray, truth: float, runs: int, episodes: int = COVERAGE_AT
) -> tuple[FloatArray, FloatArray]:
    """Estimates through Gymnasium's own step, and whether their intervals hold the truth."""
    results = [
        revar.evaluate(LAKES[size], policy, episodes=episodes, discount=DISCOUNT, seed=run)
        for run in range(runs)
    ]
    held = [result.interval[0] <= truth <= result.interval[1] for result in results]
    return np.array([result.value for result in results]), np.array(held, dtype=np.float64)


def stopped(
    label: str,
    mdp: revar.TabularMDP,
    policy: FloatArray,
    half_width: float,
    runs: int,
    budget: int = 5000,
) -> Stopping:
    """The rule of `evaluate(half_width=...)` applied to simulated runs at its checkpoints."""
    times = checkpoint_times(budget)
    result = revar.simulate(
        mdp, policy, "flow", episodes=budget, runs=runs, seed=2, checkpoints=times
    )

    def taken(z: float) -> tuple[FloatArray, FloatArray]:
        narrow = z * result.standard_errors <= half_width
        narrow &= result.unvisited_probability <= 0.01
        narrow[:, -1] = True
        place = np.argmax(narrow, axis=1)
        rows = np.arange(runs)
        error = np.abs(result.estimates[rows, place] - result.true_value)
        return error <= z * result.standard_errors[rows, place], place

    held, place = taken(quantile(0.95, times))
    naive, _ = taken(quantile(0.95))
    return Stopping(
        label,
        half_width,
        runs,
        float(held.mean()),
        float(naive.mean()),
        float(np.median(np.array(times)[place])),
        float(np.mean(place < len(times) - 1)),
    )


def stopping_cases(runs: int) -> Iterator[Stopping]:
    """Lakes and the project's own problems, at half-widths that are reached on the way."""
    for epsilon, half_width in ((0.05, 0.025), (0.2, 0.02), (0.5, 0.01)):
        yield stopped(
            f"FrozenLake 4 x 4, ε = {epsilon}",
            lake_model(4),
            soft_policy(4, epsilon),
            half_width,
            runs,
        )
    for problem_id, half_width in (("gridworld", 0.2), ("tree", 0.1)):
        problem = revar.find_problem(problem_id)
        yield stopped(problem_id, problem.mdp, problem.policy, half_width, runs)


def markdown(lakes: list[Lake], cases: list[Stopping]) -> str:
    """The tables of docs/evaluate.md."""
    first = lakes[0]
    lines = [
        f"Lakes, discount {DISCOUNT}, horizon 100 (4 x 4) and 200 (8 x 8). Simulated: {first.runs} "
        f"runs of {COVERAGE_AT} and {first.ratio_runs} of {RATIO_AT} episodes a cell; real: "
        f"{first.real_runs} runs of {COVERAGE_AT} episodes through Gymnasium's `env.step`.",
        "",
        f"| lake | ε | value | 95% interval holds, {COVERAGE_AT} episodes | real: holds "
        f"| real: same distribution, p | K·MSE at {RATIO_AT}: mean return / on-policy / flow "
        "| mean return over flow: theory | measured | first solution |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for lake in lakes:
        held = round(lake.real_coverage * lake.real_runs)
        low, high = binomtest(held, lake.real_runs).proportion_ci()
        lines.append(
            f"| {lake.size} x {lake.size} | {lake.epsilon} | {lake.value:.4f} "
            f"| {lake.coverage:.1%} "
            f"| {held} of {lake.real_runs} ({low:.0%} to {high:.0%}) | {lake.real_p_value:.2f} "
            f"| {lake.measured_mean_return:.4f} / {lake.measured_on_policy:.4f} / "
            f"{lake.measured_flow:.4f} | {lake.ratio:.2f} "
            f"| {lake.measured_ratio:.2f} ± {lake.measured_ratio * lake.measured_error:.2f} "
            f"| {PUBLISHED[lake.size, lake.epsilon]:.2f} |"
        )
    times = checkpoint_times(5000)
    lines += [
        "",
        f"Stopping at a half-width, checkpoints at {', '.join(map(str, times))} episodes, "
        f"{cases[0].runs} runs a row; z = {quantile(0.95, times):.3f} allows for all of them, "
        f"1.960 does not.",
        "",
        "| problem | half-width | stops before the budget | median episodes | interval holds "
        "| with z = 1.960 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {case.problem} | {case.half_width} | {case.reached:.0%} | {case.median_episodes:.0f} "
        f"| {case.coverage:.1%} | {case.naive_coverage:.1%} |"
        for case in cases
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the study; what is stored already is kept unless `--anew` is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--ratio-runs", type=int, help=f"at {RATIO_AT} episodes; default: --runs")
    parser.add_argument("--real-runs", type=int, default=100)
    parser.add_argument("--anew", action="store_true")
    options = parser.parse_args()
    console = Console()
    path = RESULTS / "lake_study.json"
    stored = json.loads(path.read_text()) if path.exists() and not options.anew else {}
    lakes = [Lake(**lake) for lake in stored.get("lakes", [])]
    done = {(lake.size, lake.epsilon) for lake in lakes}
    for size, epsilon in PUBLISHED:
        if (size, epsilon) not in done:
            with console.status(f"{size} x {size}, ε = {epsilon}"):
                ratio_runs = options.ratio_runs or options.runs
                lakes.append(measured(size, epsilon, options.runs, ratio_runs, options.real_runs))
            content = {"machine": facts(), "lakes": [asdict(lake) for lake in lakes]}
            path.write_text(json.dumps(content, indent=1) + "\n")
    cases = list(stopping_cases(options.runs))
    content = {
        "machine": facts(),
        "lakes": [asdict(lake) for lake in lakes],
        "stopping": [asdict(case) for case in cases],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    table = markdown(lakes, cases)
    (RESULTS / "lake_study.md").write_text(table)
    console.print(table, soft_wrap=True)


if __name__ == "__main__":
    main()
