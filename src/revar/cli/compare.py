"""`revar compare`: any strategies and estimators on any problems."""

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from revar.cli.engine import engine_of, engine_options
from revar.cli.outcome import check_report, echo_json, json_of, run_stored, show, write_report

if TYPE_CHECKING:
    from revar.experiments.specification import Experiment


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
    help="Budget of every run; several budgets are several collections.",
)
@click.option("--runs", default=500, show_default=True, type=click.IntRange(min=2))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@engine_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Keep the tables, so that an interrupted run can go on, and write a report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def compare(
    problems: tuple[str, ...],
    strategies: tuple[str, ...],
    estimators: tuple[str, ...],
    budgets: tuple[int, ...],
    runs: int,
    seed: int,
    threads: int | None,
    engine: str,
    address: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare the errors of strategies with each other, at equal budgets.

    Ids are those of `revar list`. Options of a problem, strategy or estimator follow a colon.

    \b
    Examples:
      revar compare
      revar compare --problem tree --strategy oracle --strategy revar:confidence_scale=0.1
      revar compare --problem gridworld:slip=0.3 --episodes 200 --episodes 2000 --out my_results
      revar compare --strategy on-policy --estimator monte-carlo --estimator doubly-robust --json
    """
    experiment, left_out = _declared(problems, strategies, estimators, budgets, runs)
    for sentence in left_out:
        click.echo(f"left out: {sentence}", err=True)
    player = engine_of(engine, threads, address)
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            results = run_stored(
                experiment,
                Path(folder),
                seed=seed,
                quick=False,
                engine=player,
                kept=False,
            )
        page = None
    else:
        check_report(experiment)
        results = run_stored(experiment, out, seed=seed, quick=False, engine=player)
        page = write_report(results, out)
    if as_json:
        echo_json(json_of(results))
        return
    show(results)
    if page is not None:
        click.echo(f"report: {page}")


def _declared(
    problems: tuple[str, ...],
    strategies: tuple[str, ...],
    estimators: tuple[str, ...],
    budgets: tuple[int, ...],
    runs: int,
) -> "tuple[Experiment, list[str]]":
    """The experiment that the options declare, and the pairs that do not fit."""
    from revar.errors import InputError
    from revar.estimators import estimators as known_estimators
    from revar.experiments.specification import (
        Experiment,
        StrategyChoice,
        build_strategy,
        checked,
        parsed_choice,
    )
    from revar.problems import problems as known_problems
    from revar.strategies import strategies as known_strategies

    asked = [parsed_choice(text, known_estimators) for text in estimators]
    chosen, left_out = [], []
    for text in strategies:
        choice = parsed_choice(text, known_strategies)
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
    command = ["revar", "compare"]
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
        name="compare",
        title="Comparison",
        question="Which of these ways to collect and estimate has the smallest error?",
        runs=runs,
        episodes=budgets[0] if len(budgets) == 1 else tuple(sorted(set(budgets))),
        problems=tuple(parsed_choice(text, known_problems) for text in problems),
        strategies=tuple(chosen),
        answer="order",
        figures=("mse-curves", "scaled-curves"),
        tables=("errors", "exact"),
        command=shlex.join(command),
    )
    return checked(experiment), left_out
