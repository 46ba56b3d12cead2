"""`revar reproduce`: the paper's experiments and those beyond it, run and reported."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from revar.cli.engine import engine_of, engine_options
from revar.cli.outcome import check_report, echo_json, json_of, run_stored, show, write_report
from revar.errors import InputError

if TYPE_CHECKING:
    from revar.experiments.specification import Experiment


@click.command()
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--quick", is_flag=True, help="Fewer runs and episodes: minutes for all.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Results go to a folder of this one for each experiment.",
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
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    out: Path,
    specs: tuple[Path, ...],
    seed: int,
    threads: int | None,
    engine: str,
    address: str | None,
    no_report: bool,
    as_json: bool,
) -> None:
    """Run experiments, store their results and write a report for each.

    NAME is one of tree, gridworld, ablation, regret, examples, flow, coverage, peers, or all.
    What is finished is stored at once: after Ctrl-C the same command goes on where it was, and
    ends with the same tables. A finished experiment is not run again.

    \b
    Examples:
      revar reproduce tree --quick
      revar reproduce all --out results
      revar reproduce --spec my_experiment.toml
      revar reproduce peers --engine ray --address auto
    """
    chosen = _chosen(names, specs)
    if not no_report:
        for experiment in chosen:
            check_report(experiment)
    player = engine_of(engine, threads, address)
    machine = []
    for experiment in chosen:
        directory = out / experiment.name
        results = run_stored(
            experiment,
            directory,
            seed=seed,
            quick=quick,
            engine=player,
        )
        page = None if no_report else write_report(results, directory)
        if as_json:
            machine.append(json_of(results) | {"report": None if page is None else str(page)})
            continue
        show(results, first_only=len(chosen) > 1)
        click.echo(f"{'tables' if page is None else 'report'}: {page or directory}\n")
    if as_json:
        echo_json(machine)


def _chosen(names: tuple[str, ...], specs: tuple[Path, ...]) -> "list[Experiment]":
    from revar.experiments.library import PAPER, built_in
    from revar.experiments.specification import checked, read_experiment

    if not names and not specs:
        raise InputError(f"which experiment? Name one of {', '.join(PAPER)}, or all")
    wanted = dict.fromkeys(each for name in names for each in (PAPER if name == "all" else (name,)))
    chosen = [built_in(name) for name in wanted] + [read_experiment(path) for path in specs]
    for experiment in chosen:
        if [other.name for other in chosen].count(experiment.name) > 1:
            raise InputError(f"two experiments are called {experiment.name!r}")
    return [checked(experiment) for experiment in chosen]
