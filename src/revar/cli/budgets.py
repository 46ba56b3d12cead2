"""`revar simulate` where the budget is of steps or cost, or where collection is limited: a table.

Nothing is stored: experiments, which store their results, count episodes.
"""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from revar.cli.output import print_json, split_table
from revar.errors import InputError

if TYPE_CHECKING:
    from revar.experiments.experiment import StrategyChoice
    from revar.model.budget import Budget
    from revar.model.limits import Limits
    from revar.problems import Problem
    from revar.reports.tables import Table
    from revar.simulation.result import SimulationResult

TOLERANCE = 1e-3  # of the limits


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What a run may spend, and what it may not do: arguments of `simulate`."""

    budget: dict[str, Any]
    limits: "Limits | None"


@dataclass(frozen=True)
class Row:
    """What one strategy and estimator came to on one problem."""

    problem: str
    strategy: str
    estimator: str
    limit: float  # error x budget that no allowed behavior goes below
    result: "SimulationResult"


def simulate_and_show(
    problems: tuple[str, ...],
    strategies: "list[StrategyChoice]",
    conditions: Conditions,
    *,
    runs: int,
    seed: int,
    threads: int | None,
    as_json: bool,
) -> None:
    """Simulate every strategy, with each of its estimators, on every problem; print the errors."""
    from revar.experiments.experiment import build_problem, parse_choice
    from revar.problems import problems as known

    rows: list[Row] = []
    for text in problems:
        choice = parse_choice(text, known)
        rows += _rows(
            choice.name, build_problem(choice), strategies, conditions, runs, seed, threads
        )
    if as_json:
        print_json([_numbers(row) for row in rows])
        return
    console = Console()
    for part in split_table(_table(rows, conditions), console.width):
        console.print(part)


def _rows(
    name: str,
    problem: "Problem",
    strategies: "list[StrategyChoice]",
    conditions: Conditions,
    runs: int,
    seed: int,
    threads: int | None,
) -> list[Row]:
    import revar
    from revar.experiments.experiment import Choice, build_estimator, build_strategy

    limit = _limit(problem, conditions)
    rows = []
    for choice in strategies:
        for estimator in choice.estimators:
            assert isinstance(estimator, Choice)
            with _progress(f"{name}, {choice.name}", conditions) as progress:
                result = revar.simulate(
                    problem.mdp,
                    problem.question,
                    build_strategy(choice),
                    estimator=build_estimator(estimator),
                    limits=conditions.limits,
                    runs=runs,
                    seed=seed,
                    threads=threads,
                    progress=progress,
                    **conditions.budget,
                )
            if result.interrupted:
                raise KeyboardInterrupt
            rows.append(Row(name, choice.name, estimator.name, limit, result))
    return rows


def _limit(problem: "Problem", conditions: Conditions) -> float:
    import revar

    given = conditions.budget
    cost = "steps" if given.get("steps") is not None else given.get("cost")
    return revar.optimal_flow(
        problem.mdp, problem.question, tolerance=TOLERANCE, cost=cost, limits=conditions.limits
    ).limit


def _progress(description: str, conditions: Conditions) -> Any:
    import revar
    from revar.model.budget import check_budget

    if not sys.stderr.isatty():
        return nullcontext(None)
    return revar.progress_bar(description, check_budget(**conditions.budget).unit)


def _table(rows: list[Row], conditions: Conditions) -> "Table":
    from revar.model.budget import check_budget
    from revar.reports.tables import Table

    budget = check_budget(**conditions.budget)
    paid = ("spent",) if budget.unit == "cost" else ()
    return Table(
        title=f"Errors with {budget.text(budget.amount)} a run",
        headings=(
            *("problem", "strategy", "estimator", "episodes", "steps", *paid),
            *("B*MSE", "+-", "limit", "of limit", "coverage"),
        ),
        rows=tuple(_cells(row, budget) for row in rows),
        words=3,
        note="Means over the runs. B*MSE is the budget times the mean squared error; as budgets "
        "grow, no allowed behavior stays below the limit. Coverage is of 95% intervals.",
    )


def _cells(row: Row, budget: "Budget") -> tuple[str, ...]:
    result = row.result
    error, doubt = (
        budget.amount * float(each[-1]) for each in (result.mse, result.mse_standard_error)
    )
    used = [result.episodes, result.steps, *([result.spent] if budget.unit == "cost" else [])]
    return (
        *(row.problem, row.strategy, row.estimator),
        *(f"{each.mean():,.1f}" for each in used),
        *(f"{error:.4g}", f"{doubt:.2g}", f"{row.limit:.4g}"),
        f"{error / row.limit:.2f}" if row.limit > 0.0 else "-",
        f"{100.0 * float(result.coverage()[-1]):.1f}%",
    )


def _numbers(row: Row) -> dict[str, Any]:
    result = row.result
    return {
        "problem": row.problem,
        "strategy": row.strategy,
        "estimator": row.estimator,
        "unit": result.unit,
        "budget": float(result.checkpoints[-1]),
        "runs": result.runs,
        "episodes": float(result.episodes.mean()),
        "steps": float(result.steps.mean()),
        "spent": float(result.spent.mean()),
        "true_value": result.true_value,
        "limit": row.limit,
        "mse": float(result.mse[-1]),
        "mse_standard_error": float(result.mse_standard_error[-1]),
        "coverage": float(result.coverage()[-1]),
    }


def refuse_storing(output: Any, engine: str, address: str | None) -> None:
    """What is simulated here is not stored, nor given to a cluster."""
    if output is not None or engine != "local" or address is not None:
        raise InputError(
            "--output, --engine and --address are for budgets of episodes without limits; what is "
            "simulated here can be kept with --json > FILE"
        )
