"""How close each strategy comes to the limit: the study behind docs/flow.md.

`python -m benchmarks.flow_study` writes benchmarks/results/flow_study.md and .json: K*MSE divided
by the limit, for every problem, strategy and budget K, each from its own runs with that budget.
benchmarks/small_budgets.py has fewer episodes, and leaves out each constant of flow in turn.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import revar
from benchmarks.machine import facts
from revar.problems import Problem, find_problem
from revar.strategies import ReducedVariance, Strategy

RESULTS = Path(__file__).with_name("results")
PROBLEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "tree": ("tree", {}),
    "grid, slip 0": ("gridworld", {"slip": 0.0}),
    "grid, slip 0.1": ("gridworld", {"slip": 0.1}),
    "grid, slip 0.3": ("gridworld", {"slip": 0.3}),
    "RiverSwim": ("riverswim", {}),
    "Garnet": ("garnet", {}),
    "bandit": ("bandit", {}),
}
STRATEGIES: dict[str, str | Strategy] = {
    "on-policy": "on-policy",
    "ReVar, c = 0": ReducedVariance(confidence_scale=0.0),
    "ReVar, c = 0.1": ReducedVariance(confidence_scale=0.1),
    "ReVar, c = 1": ReducedVariance(confidence_scale=1.0),
    "ReVar, c = 10": ReducedVariance(confidence_scale=10.0),
    "paper's oracle": "oracle",
    "flow": "flow",
    "flow-oracle": "flow-oracle",
}
# Only "flow" and the oracles are taken to this budget: ReVar's sweeps after every episode are slow.
LAST_BUDGET = 5000
BUDGETS = (20, 50, 100, 200, 500, 1000, LAST_BUDGET)


@dataclass(frozen=True)
class Cell:
    """One measured figure."""

    problem: str
    strategy: str
    episodes: int
    runs: int
    ratio: float  # K*MSE / limit
    standard_error: float
    coverage: float
    seconds: float


def measure(
    problem: Problem, limit: float, name: str, strategy: str | Strategy, episodes: int, runs: int
) -> Cell:
    """K*MSE over the limit at one budget."""
    began = time.perf_counter()
    result = revar.simulate(
        problem.mdp,
        problem.policy,
        strategy,
        episodes=episodes,
        runs=runs,
        seed=1,
        checkpoints=[episodes],
    )
    scale = episodes / limit
    return Cell(
        problem=problem.name,
        strategy=name,
        episodes=episodes,
        runs=runs,
        ratio=float(scale * result.mse[0]),
        standard_error=float(scale * result.mse_standard_error[0]),
        coverage=float(result.coverage()[0]),
        seconds=time.perf_counter() - began,
    )


def cells(
    strategies: dict[str, str | Strategy], budgets: tuple[int, ...], runs: int, console: Console
) -> Iterator[Cell]:
    """Every problem, strategy and budget in turn."""
    for label, (problem_id, options) in PROBLEMS.items():
        built = find_problem(problem_id, **options)
        problem = Problem(label, built.mdp, built.policy)
        limit = revar.optimal_flow(problem.mdp, problem.policy).limit
        for name, strategy in strategies.items():
            for episodes in budgets:
                if episodes == LAST_BUDGET and name.startswith("ReVar"):
                    continue
                with console.status(f"{label}, {name}, K = {episodes}"):
                    yield measure(problem, limit, name, strategy, episodes, runs)


def markdown(found: list[Cell]) -> str:
    """One table: a row a strategy, a column a problem, K*MSE / limit at each budget."""
    budgets = sorted({cell.episodes for cell in found})
    labels = list(dict.fromkeys(cell.problem for cell in found))
    by_key = {(cell.strategy, cell.problem, cell.episodes): cell for cell in found}
    error = max(cell.standard_error / cell.ratio for cell in found)
    lines = [
        f"K·MSE divided by the limit at K = {' / '.join(map(str, budgets))}; {found[0].runs} runs "
        f"a cell, standard errors at most {error:.1%} of the figure.",
        "",
        "| strategy | " + " | ".join(labels) + " |",
        "|---" * (len(labels) + 1) + "|",
    ]
    for name in dict.fromkeys(cell.strategy for cell in found):
        row = [
            " / ".join(
                f"{by_key[name, label, episodes].ratio:.2f}"
                if (name, label, episodes) in by_key
                else "-"
                for episodes in budgets
            )
            for label in labels
        ]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--strategy", help="measure this row alone and keep the others")
    options = parser.parse_args()
    console = Console()
    strategies = STRATEGIES
    kept: list[Cell] = []
    path = RESULTS / "flow_study.json"
    if options.strategy is not None:
        stored = json.loads(path.read_text())["cells"]
        kept = [Cell(**cell) for cell in stored if cell["strategy"] != options.strategy]
        strategies = {options.strategy: strategies[options.strategy]}
    found = [*kept, *cells(strategies, BUDGETS, options.runs, console)]
    RESULTS.mkdir(exist_ok=True)
    table = markdown(found)
    console.print(table, soft_wrap=True)
    (RESULTS / "flow_study.md").write_text(table)
    content = {"machine": facts(), "cells": [asdict(cell) for cell in found]}
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
