"""What several commands do with results: show them, write their report, print them as JSON."""

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from revar.experiments.engines import Engine
    from revar.experiments.results import Results
    from revar.experiments.specification import Experiment


def run_stored(
    experiment: "Experiment",
    directory: Path,
    *,
    seed: int,
    quick: bool,
    engine: "Engine | None" = None,
    kept: bool = True,
) -> "Results":
    """Run an experiment under a progress bar; an interrupt says how to go on, and leaves.

    `kept` tells whether the directory outlives the command.
    """
    import revar
    from revar.experiments.runner import run_experiment

    try:
        with revar.progress_bar(experiment.name) as progress:
            return run_experiment(
                experiment,
                directory,
                seed=seed,
                quick=quick,
                engine=engine,
                progress=progress,
            )
    except KeyboardInterrupt:
        where = (
            f" What is finished of {experiment.name!r} is stored in {directory}; the same command "
            f"goes on from there."
        )
        click.echo("Stopped." + (where if kept else ""), err=True)
        raise SystemExit(130) from None


def check_report(experiment: "Experiment") -> None:
    """Raise before anything is run if the report could not be written after it."""
    _load_report_extras()
    from revar.reports.page import check_report as check

    check(experiment)


def write_report(results: "Results", directory: Path) -> Path:
    """Write the page of an experiment; returns its path."""
    _load_report_extras()
    from revar.reports.page import write_report as write

    return write(results, directory)


# A table longer than this is left to the report.
MOST_ROWS = 30


def show(results: "Results", *, first_only: bool = False) -> None:
    """Print the answer and the tables, of several the short ones."""
    from rich.console import Console

    from revar.cli.terminal import terminal_tables
    from revar.reports.answers import answer_of
    from revar.reports.tables import tables_of

    console = Console()
    console.print(results.experiment.title, style="bold", markup=False, highlight=False)
    for sentence in answer_of(results):
        console.print(f"  {sentence}", markup=False, highlight=False)
    tables = tables_of(results)
    for place, table in enumerate(tables[:1] if first_only else tables):
        if place == 0 or len(table.rows) <= MOST_ROWS:
            for part in terminal_tables(table, console.width):
                console.print(part)


def json_of(results: "Results") -> dict[str, Any]:
    """The results at the end of every series, as plain data."""
    from revar.reports.answers import answer_of
    from revar.reports.summary import coverage

    manifest = results.manifest
    return {
        "experiment": results.experiment.name,
        "quick": manifest.quick,
        "digest": manifest.digest,
        "seed": manifest.seed,
        "versions": manifest.versions,
        "runs": results.experiment.runs,
        "answer": answer_of(results),
        "results": [
            {
                "problem": series.problem,
                "strategy": series.strategy,
                "estimator": series.estimator,
                "episodes": int(series.checkpoints[-1]),
                "runs": series.runs,
                "true_value": series.true_value,
                "limit": results.facts(series.problem).limit,
                "mse": _finite(series.mse[-1]),
                "mse_standard_error": _finite(series.mse_standard_error[-1]),
                "coverage": _finite(coverage(series, 0.95).value),
            }
            for series in results.series
        ],
    }


def echo_json(content: Any) -> None:
    """Print plain data as JSON."""
    click.echo(json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False))


def _finite(number: float) -> float | None:
    """JSON has neither NaN nor infinity."""
    return float(number) if isfinite(number) else None


def _load_report_extras() -> None:
    from revar.errors import require_extra

    require_extra("matplotlib", "plots")
    for module in ("plotly", "jinja2"):
        require_extra(module, "report")
