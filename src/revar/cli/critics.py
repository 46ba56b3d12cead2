"""`revar reproduce critics`: the study of critics, its results on the terminal, its report."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from revar.cli.experiments import load_report_extras, say_how_to_go_on
from revar.cli.output import split_table

if TYPE_CHECKING:
    from revar.experiments.critic_results import CriticResults
    from revar.experiments.engines import Engine


def reproduce_critics(
    output: Path, seed: int, quick: bool, engine: "Engine", *, report: bool, show: bool
) -> dict[str, Any]:
    """Run the study, or what is missing of it; its results as plain data."""
    import revar
    from revar.errors import require_extra
    from revar.experiments.critic_results import run_critic_study
    from revar.experiments.critics import load_critic_study

    require_extra("gymnasium", "gym")
    if report:
        load_report_extras()
    from revar.reports.critics import critics_as_data, write_critic_report

    study = load_critic_study()
    directory = output / study.name
    with say_how_to_go_on(study.name, directory), revar.progress_bar(study.name) as progress:
        results = run_critic_study(
            study, directory, seed=seed, quick=quick, engine=engine, progress=progress
        )
    page = write_critic_report(results, directory) if report else None
    if show:
        _print(results)
        click.echo(f"{'tables' if page is None else 'report'}: {page or directory}\n")
    return critics_as_data(results) | {"report": None if page is None else str(page)}


def report_critics(directory: Path) -> Path:
    """Write the report of a finished study again."""
    load_report_extras()
    from revar.experiments.critic_results import read_critic_results
    from revar.reports.critics import write_critic_report

    return write_critic_report(read_critic_results(directory), directory)


def _print(results: "CriticResults") -> None:
    from rich.console import Console

    from revar.reports.critics import answer_critics, critic_tables

    console = Console()
    console.print(results.experiment.title, style="bold", markup=False, highlight=False)
    for sentence in answer_critics(results):
        console.print(f"  {sentence}", markup=False, highlight=False)
    for table in critic_tables(results):
        for part in split_table(table, console.width):
            console.print(part)
