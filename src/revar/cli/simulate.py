"""`revar simulate`: how well strategies do on a built-in problem."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from revar.engine.result import SimulationResult


@click.command()
@click.option("--problem", "problem_id", default="tree", show_default=True, help="Problem id.")
@click.option(
    "--strategy",
    "strategy_ids",
    multiple=True,
    default=("on-policy", "revar", "flow"),
    show_default=True,
    help="Strategy id; may be given several times.",
)
@click.option(
    "--estimator",
    default="certainty-equivalence",
    show_default=True,
    help="Estimator id.",
)
@click.option("--episodes", default=1000, show_default=True, help="Episodes of every run.")
@click.option("--runs", default=500, show_default=True, help="Independent runs.")
@click.option("--seed", default=0, show_default=True)
@click.option("--threads", type=int, default=None, help="Default: every core.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def simulate(
    problem_id: str,
    strategy_ids: tuple[str, ...],
    estimator: str,
    episodes: int,
    runs: int,
    seed: int,
    threads: int | None,
    as_json: bool,
) -> None:
    """Simulate collection strategies on a problem and compare their errors.

    Ctrl-C stops and reports the runs that were finished.

    \b
    Examples:
      revar simulate
      revar simulate --problem gridworld --strategy flow --strategy oracle --episodes 2000
      revar simulate --problem tree --strategy on-policy --estimator monte-carlo --json
    """
    import revar
    from revar.strategies import find_strategy

    problem = revar.find_problem(problem_id)
    strategies = [find_strategy(strategy_id) for strategy_id in strategy_ids]
    limit = revar.optimal_flow(problem.mdp, problem.policy, tolerance=1e-3).limit
    results = []
    for strategy in strategies:
        with revar.progress_bar(strategy.id) as progress:
            result = revar.simulate(
                problem.mdp,
                problem.policy,
                strategy,
                episodes=episodes,
                runs=runs,
                seed=seed,
                checkpoints=[episodes],
                estimator=estimator,
                threads=threads,
                progress=progress,
            )
        results.append(result)
        if not result.complete:
            break
    if as_json:
        click.echo(_json(problem_id, limit, results))
    else:
        _show(problem_id, episodes, limit, results)


def _show(problem_id: str, episodes: int, limit: float, results: "list[SimulationResult]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"{problem_id}, {episodes} episodes, value {results[0].true_value:.4f}",
        caption=f"K·MSE: mean squared error times episodes; the smallest possible is {limit:.4g}",
    )
    table.add_column("strategy")
    for heading in ("runs", "K·MSE", "± s.e.", "/ limit", "95% coverage", "without data"):
        table.add_column(heading, justify="right")
    for result in results:
        if result.runs == 0:
            table.add_row(result.strategy, "0", *["-"] * 5)
            continue
        error = episodes * result.mse[0]
        table.add_row(
            result.strategy,
            f"{result.runs}" + ("" if result.complete else " (stopped)"),
            f"{error:.4g}",
            f"{episodes * result.mse_standard_error[0]:.2g}",
            f"{error / limit:.2f}" if limit > 0 else "-",
            f"{result.coverage()[0]:.1%}",
            f"{result.unvisited_probability[:, 0].mean():.2%}",
        )
    Console().print(table)


def _json(problem_id: str, limit: float, results: "list[SimulationResult]") -> str:
    import json
    from math import isfinite

    def finite(number: float) -> float | None:
        """JSON has neither NaN nor infinity."""
        return float(number) if isfinite(number) else None

    rows = [
        {
            "problem": problem_id,
            "strategy": result.strategy,
            "estimator": result.estimator,
            "episodes": int(result.checkpoints[0]),
            "runs": result.runs,
            "complete": result.complete,
            "true_value": result.true_value,
            "limit": limit,
            "mse": finite(result.mse[0]),
            "mse_standard_error": finite(result.mse_standard_error[0]),
            "coverage": finite(result.coverage()[0]),
        }
        for result in results
        if result.runs > 0
    ]
    return json.dumps(rows, indent=1)
