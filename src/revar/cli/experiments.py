"""Commands that run experiments and report them: `revar reproduce` and `report`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from revar.cli.options import engine_options, make_engine
from revar.cli.output import print_json, print_results, results_as_data
from revar.errors import INTERRUPTED, InputError
from revar.interrupts import defer_interrupts

if TYPE_CHECKING:
    from revar.experiments.engines import Engine
    from revar.experiments.experiment import Experiment
    from revar.experiments.results import Results


@click.command()
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--quick", is_flag=True, help="Fewer runs and episodes: minutes for all.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for the results; each experiment gets its own in it.",
)
@click.option(
    "--spec",
    "specs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A TOML file that declares an experiment of your own; may be given several times.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@engine_options
@click.option("--no-report", is_flag=True, help="Store the tables and write no page.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
@defer_interrupts()
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    output: Path,
    specs: tuple[Path, ...],
    seed: int,
    threads: int | None,
    engine_name: str,
    address: str | None,
    no_report: bool,
    as_json: bool,
) -> None:
    """Run experiments, store their results and write a report for each.

    NAME is one of tree, gridworld, ablation, regret, examples, flow, coverage, peers, compare,
    critics, or all. Finished parts are stored at once: after Ctrl-C the same command continues,
    and ends with the same tables. A finished experiment is not run again.

    \b
    Examples:
      revar reproduce tree --quick
      revar reproduce all --output results
      revar reproduce --spec my_experiment.toml
      revar reproduce peers --engine ray --address auto
    """
    chosen, with_critics = _choose_experiments(names, specs)
    if not no_report:
        for experiment in chosen:
            check_report(experiment)
    engine = make_engine(engine_name, threads, address)
    machine = []
    for experiment in chosen:
        directory = output / experiment.name
        results = run_and_store(
            experiment,
            directory,
            seed=seed,
            quick=quick,
            engine=engine,
        )
        page = None if no_report else write_report(results, directory)
        if as_json:
            machine.append(
                results_as_data(results) | {"report": None if page is None else str(page)}
            )
            continue
        print_results(results, first_only=len(chosen) > 1)
        click.echo(f"{'tables' if page is None else 'report'}: {page or directory}\n")
    if with_critics:
        from revar.cli.critics import reproduce_critics

        found = reproduce_critics(
            output, seed, quick, engine, report=not no_report, show=not as_json
        )
        machine.append(found)
    if as_json:
        print_json(machine)


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Also write everything as one Markdown page, with its figures in a folder beside it.",
)
def report(directory: Path, markdown: Path | None) -> None:
    """Write the reports of the experiments in DIRECTORY again, without running anything.

    DIRECTORY is what `revar reproduce --output` was given, or the folder of one experiment.

    \b
    Examples:
      revar report results
      revar report results/tree
      revar report results --markdown docs/results.md
    """
    from revar.cli.critics import report_critics
    from revar.experiments.critic_results import holds_critic_study
    from revar.experiments.experiment import PAPER
    from revar.experiments.results import MANIFEST, read_results

    places = [path.parent for path in (directory / MANIFEST, *directory.glob(f"*/{MANIFEST}"))]
    found = [place for place in places if (place / MANIFEST).exists()]
    if not found:
        raise InputError(f"{directory} holds no finished experiment")
    order = {name: rank for rank, name in enumerate(PAPER)}
    studies = [place for place in found if holds_critic_study(place)]
    loaded = [(place, read_results(place)) for place in found if place not in studies]
    loaded.sort(key=lambda each: (order.get(each[1].experiment.name, len(order)), str(each[0])))
    for place, results in loaded:
        click.echo(f"report: {write_report(results, place)}")
    for place in studies:
        click.echo(f"report: {report_critics(place)}")
    if markdown is not None:
        from revar.reports.pages import write_markdown

        write_markdown([results for _, results in loaded], markdown)
        click.echo(f"page: {markdown}")


def run_and_store(
    experiment: "Experiment",
    directory: Path,
    *,
    seed: int,
    quick: bool,
    engine: "Engine | None" = None,
    kept: bool = True,
) -> "Results":
    """Run an experiment under a progress bar; an interrupt ends the command and says how to go on.

    `kept` says whether the directory outlives the command.
    """
    import revar
    from revar.experiments.runner import run_experiment

    with (
        say_how_to_go_on(experiment.name, directory if kept else None),
        revar.progress_bar(experiment.name) as progress,
    ):
        return run_experiment(
            experiment,
            directory,
            seed=seed,
            quick=quick,
            engine=engine,
            progress=progress,
        )


@contextmanager
def say_how_to_go_on(name: str, directory: Path | None) -> Iterator[None]:
    """End the command at an interrupt; where a directory is kept, the same command goes on."""
    try:
        yield
    except KeyboardInterrupt:
        where = (
            f" What is finished of {name!r} is stored in {directory}; the same command goes on "
            f"from there."
        )
        click.echo("Stopped." + (where if directory is not None else ""), err=True)
        raise SystemExit(INTERRUPTED) from None


def check_report(experiment: "Experiment") -> None:
    """Raise if the report could not be written, before anything is run."""
    load_report_extras()
    from revar.reports.pages import check_report as check

    check(experiment)


def write_report(results: "Results", directory: Path) -> Path:
    """Write the page of an experiment; returns its path."""
    load_report_extras()
    from revar.reports.pages import write_report as write

    return write(results, directory)


def load_report_extras() -> None:
    """Raise if what reports are made with is not installed."""
    from revar.errors import require_extra

    for module in ("matplotlib", "plotly", "jinja2"):
        require_extra(module, "plots,report")


def _choose_experiments(
    names: tuple[str, ...], specs: tuple[Path, ...]
) -> "tuple[list[Experiment], bool]":
    """The experiments that are named, and whether the study of critics is among them."""
    from revar.experiments.experiment import (
        CRITICS,
        PAPER,
        check_experiment,
        load_built_in,
        read_experiment,
    )

    if not names and not specs:
        raise InputError(f"which experiment? Name one of {', '.join((*PAPER, CRITICS))}, or all")
    with_critics = CRITICS in names or "all" in names
    named = [name for name in names if name != CRITICS]
    wanted = dict.fromkeys(each for name in named for each in (PAPER if name == "all" else (name,)))
    chosen = [load_built_in(name) for name in wanted] + [read_experiment(path) for path in specs]
    for experiment in chosen:
        if [other.name for other in chosen].count(experiment.name) > 1:
            raise InputError(f"two experiments are called {experiment.name!r}")
    return [check_experiment(experiment) for experiment in chosen], with_critics
