"""`revar simulate`: any strategies and estimators on any problems."""

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from revar.cli.budgets import Conditions, refuse_storing, simulate_and_show
from revar.cli.experiments import check_report, run_and_store, write_report
from revar.cli.options import EPISODES, engine_options, make_engine
from revar.cli.output import print_json, print_results, results_as_data
from revar.cli.spending import limit_options, parse_cost, parse_limits, spending_options
from revar.errors import InputError
from revar.interrupts import defer_interrupts

if TYPE_CHECKING:
    from revar.experiments.experiment import Experiment, StrategyChoice

STRATEGIES = ("on-policy", "revar", "flow")
WITH_LIMITS = ("on-policy", "flow")  # these take any budget, and keep limits


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
    help="Strategy id; may be given several times. Default: on-policy, revar and flow; with a "
    "budget of cost, or limits, those of them that take these.",
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
    help=f"Budget of every run; may be given several times, for separate collections. Default: "
    f"{EPISODES}.",
)
@spending_options
@limit_options
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
@defer_interrupts()
def simulate(
    problems: tuple[str, ...],
    strategies: tuple[str, ...],
    estimators: tuple[str, ...],
    budgets: tuple[int, ...],
    steps: int | None,
    budget: float | None,
    cost: str | None,
    runs: int,
    seed: int,
    threads: int | None,
    engine_name: str,
    address: str | None,
    output: Path | None,
    as_json: bool,
    **limiting: Any,
) -> None:
    """Simulate strategies on problems, and compare their errors at equal budgets.

    Ids are those of `revar list`. Options of a problem, strategy or estimator follow a colon. With
    --steps, --budget or limits a table is printed, and nothing is stored.

    \b
    Examples:
      revar simulate
      revar simulate --problem tree --strategy oracle --strategy revar:confidence_scale=0.1
      revar simulate --problem gridworld:slip=0.3 --episodes 200 --episodes 2000 --output my_results
      revar simulate --problem gridworld --steps 10000 --min-return 95%
      revar simulate --budget 5000 --cost cost.npy --max-ratio 3 --json
      revar simulate --strategy on-policy --estimator monte-carlo --estimator doubly-robust --json
    """
    limits = parse_limits(**limiting)
    if limits is not None or any(each is not None for each in (steps, budget, cost)):
        refuse_storing(output, engine_name, address)
        takes_any = limits is not None or budget is not None
        simulate_and_show(
            problems,
            _choose(strategies or (WITH_LIMITS if takes_any else STRATEGIES), estimators),
            Conditions(budget=_one_budget(budgets, steps, budget, cost), limits=limits),
            runs=runs,
            seed=seed,
            threads=threads,
            as_json=as_json,
        )
        return
    experiment = _declare(
        problems, strategies or STRATEGIES, estimators, budgets or (EPISODES,), runs
    )
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


def _one_budget(
    budgets: tuple[int, ...], steps: int | None, budget: float | None, cost: str | None
) -> dict[str, Any]:
    """The budget as `revar.simulate` takes it."""
    if len(budgets) > 1:
        raise InputError("with --steps, --budget or limits give --episodes once at most")
    episodes = budgets[0] if budgets else None
    if all(each is None for each in (episodes, steps, budget, cost)):
        episodes = EPISODES
    return {"episodes": episodes, "steps": steps, "budget": budget, "cost": parse_cost(cost)}


def _choose(strategies: tuple[str, ...], estimators: tuple[str, ...]) -> "list[StrategyChoice]":
    """The strategies, each with the estimators that fit it; a sentence for each that does not."""
    from revar.estimators import estimators as known_estimators
    from revar.experiments.experiment import StrategyChoice, build_strategy, parse_choice
    from revar.strategies import strategies as known_strategies

    asked = [parse_choice(text, known_estimators) for text in estimators]
    chosen = []
    for text in strategies:
        choice = parse_choice(text, known_strategies)
        valid = build_strategy(choice).estimators
        fitting = tuple(each for each in asked if each.id in valid)
        if not fitting:
            raise InputError(
                f"strategy {choice.name!r} fits none of these estimators; it fits "
                f"{', '.join(valid)}"
            )
        for each in asked:
            if each not in fitting:
                sentence = f"strategy {choice.name!r} does not fit estimator {each.id!r}"
                click.echo(f"left out: {sentence}", err=True)
        chosen.append(StrategyChoice(id=choice.id, options=choice.options, estimators=fitting))
    return chosen


def _declare(
    problems: tuple[str, ...],
    strategies: tuple[str, ...],
    estimators: tuple[str, ...],
    budgets: tuple[int, ...],
    runs: int,
) -> "Experiment":
    """The experiment that the options declare."""
    from revar.experiments.experiment import Experiment, check_experiment, parse_choice
    from revar.problems import problems as known_problems

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
        strategies=tuple(_choose(strategies, estimators)),
        answer="order",
        figures=("mse-curves", "scaled-curves"),
        tables=("errors", "exact"),
        command=shlex.join(command),
    )
    return check_experiment(experiment)
