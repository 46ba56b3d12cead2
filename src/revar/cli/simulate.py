"""`revar simulate`: any strategies and estimators on any problems."""

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from revar.cli.experiments import check_report, run_and_store, write_report
from revar.cli.options import engine_options, make_engine
from revar.cli.output import print_json, print_results, results_as_data

if TYPE_CHECKING:
    from revar.experiments.experiment import Experiment


@click.command()
@click.option(
    "--problem",
    "problems",
    multiple=True,
    default=("gridworld",),
    show_default=True,
    help="Problem id; may be given several times.",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    default=("on-policy", "revar", "flow"),
    show_default=True,
    help="Strategy id; may be given several times.",
)
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    default=("certainty-equivalence",),
    show_default=True,
    help="Estimator id; may be given several times. Pairs that do not fit are left out.",
)
@click.option(
    "--episodes",
    "budgets",
    multiple=True,
    type=click.IntRange(min=1),
    default=(1000,),
    show_default=True,
    help="Budget of every run; may be given several times, for separate collections.",
)
@click.option("--runs", default=500, show_default=True, type=click.IntRange(min=2))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@engine_options
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder for the tables, from which an interrupted run continues, and a report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def simulate(
    problems: tuple[str, ...],
    strategies: tuple[str, ...],
    estimators: tuple[str, ...],
    budgets: tuple[int, ...],
    runs: int,
    seed: int,
    threads: int | None,
    engine_name: str,
    address: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Simulate strategies on problems, and compare their errors at equal budgets.

    Ids are those of `revar list`. Options of a problem, strategy or estimator follow a colon.

    \b
    Examples:
      revar simulate
      revar simulate --problem tree --strategy oracle --strategy revar:confidence_scale=0.1
      revar simulate --problem gridworld:slip=0.3 --episodes 200 --episodes 2000 --output my_results
      revar simulate --strategy on-policy --estimator monte-carlo --estimator doubly-robust --json
    """
    experiment, left_out = _declare(problems, strategies, estimators, budgets, runs)
    for sentence in left_out:
        click.echo(f"left out: {sentence}", err=True)
    engine = make_engine(engine_name, threads, address)
    if output is None:
        with tempfile.TemporaryDirectory() as folder:
            results = run_and_store(
                experiment,
                Path(folder),
                seed=seed,
                quick=False,
                engine=engine,
                kept=False,
            )
        page = None
    else:
        check_report(experiment)
        results = run_and_store(experiment, output, seed=seed, quick=False, engine=engine)
        page = write_report(results, output)
    if as_json:
        print_json(results_as_data(results))
        return
    print_results(results)
    if page is not None:
        click.echo(f"report: {page}")


def _declare(
    problems: tuple[str, ...],
    strategies: tuple[str, ...],
    estimators: tuple[str, ...],
    budgets: tuple[int, ...],
    runs: int,
) -> "tuple[Experiment, list[str]]":
    """The experiment that the options declare, and a sentence for each pair that does not fit."""
    from revar.errors import InputError
    from revar.estimators import estimators as known_estimators
    from revar.experiments.experiment import (
        Experiment,
        StrategyChoice,
        build_strategy,
        check_experiment,
        parse_choice,
    )
    from revar.problems import problems as known_problems
    from revar.strategies import strategies as known_strategies

    asked = [parse_choice(text, known_estimators) for text in estimators]
    chosen, left_out = [], []
    for text in strategies:
        choice = parse_choice(text, known_strategies)
        valid = build_strategy(choice).estimators
        fitting = tuple(each for each in asked if each.id in valid)
        if not fitting:
            raise InputError(
                f"strategy {choice.name!r} fits none of these estimators; it fits "
                f"{', '.join(valid)}"
            )
        left_out += [
            f"strategy {choice.name!r} does not fit estimator {each.id!r}"
            for each in asked
            if each not in fitting
        ]
        chosen.append(StrategyChoice(id=choice.id, options=choice.options, estimators=fitting))
    command = ["revar", "simulate"]
    for option, given in (
        ("--problem", problems),
        ("--strategy", strategies),
        ("--estimator", estimators),
        ("--episodes", budgets),
    ):
        for each in given:
            command += [option, str(each)]
    command += ["--runs", str(runs)]
    experiment = Experiment(
        name="simulate",
        title="Simulation",
        question="Which of these ways to collect and estimate has the smallest error?",
        runs=runs,
        episodes=budgets[0] if len(budgets) == 1 else tuple(sorted(set(budgets))),
        problems=tuple(parse_choice(text, known_problems) for text in problems),
        strategies=tuple(chosen),
        answer="order",
        figures=("mse-curves", "scaled-curves"),
        tables=("errors", "exact"),
        command=shlex.join(command),
    )
    return check_experiment(experiment), left_out
