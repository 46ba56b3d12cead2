"""`revar demo`: what choosing the actions buys, on one problem."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from revar.cli.experiments import check_report, run_and_store, write_report
from revar.errors import InputError, MissingExtraError, RefusedError
from revar.interrupts import defer_interrupts

if TYPE_CHECKING:
    from revar.experiments.results import Results


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/demo"),
    show_default=True,
    help="Folder for the tables and the report.",
)
@defer_interrupts()
def demo(output: Path) -> None:
    """Evaluate a policy on the gridworld after three ways to collect 1,000 episodes.

    Each way is simulated 500 times. The first run of each is shown as a user would see it: a
    value with an interval. The mean squared errors of all runs say what the choice of actions
    bought.

    \b
    Example:
      revar demo
    """
    from revar.experiments.experiment import load_built_in

    experiment = load_built_in("demo")
    why_no_report = ""
    try:
        check_report(experiment)
    except MissingExtraError as error:
        why_no_report = str(error)
    trouble = ""
    try:
        results = run_and_store(experiment, output, seed=0, quick=False)
    except (OSError, InputError) as error:
        # A disk that cannot be written to is no reason to show nothing.
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        trouble = f"{output} cannot be written ({cause.strerror or cause})"
        output = Path(tempfile.mkdtemp(prefix="revar-demo-"))
        results = run_and_store(experiment, output, seed=0, quick=False)
    page = None if why_no_report else write_report(results, output)
    _print_demo(results)
    if why_no_report:
        click.echo(f"tables: {output}; no report is written: {why_no_report}")
    else:
        click.echo(f"report: {page}")
    if trouble:
        raise RefusedError(f"{trouble}; the results are in {output}")


def _print_demo(results: "Results") -> None:
    from rich.console import Console
    from rich.table import Table

    from revar.estimators import Estimate
    from revar.reports.conclusions import answer_question
    from revar.reports.metrics import coverage, error_ratio, final

    exact = results.manifest.exact[0]
    series = {each.strategy: each for each in results.series}
    budget = results.experiment.budgets()[0]
    table = Table(
        title=f"The policy's value on the {exact.problem} is {exact.value:.4f}; "
        f"estimated from {budget:,} episodes",
        caption="Value and interval: what the first of the runs reports. Holds: the share of "
        f"{results.experiment.runs} runs whose interval has the value in it. K·MSE: their mean "
        f"squared error times episodes; at best {exact.limit:.2f}.",
    )
    table.add_column("collected with")
    for heading in ("value", "95% interval", "holds", "K·MSE", "error of on-policy / this"):
        table.add_column(heading, justify="right")
    for name, each in series.items():
        estimate = Estimate(
            float(each.estimates[0, -1]), float(each.standard_errors[0, -1]), budget
        )
        low, high = estimate.interval
        table.add_row(
            name,
            f"{estimate.value:.3f}",
            f"[{low:.3f}, {high:.3f}]".replace("[", r"\["),
            f"{coverage(each, estimate.confidence).value:.0%}",
            str(final(each)),
            "" if name == "on-policy" else str(error_ratio(series["on-policy"], each)),
        )
    console = Console()
    console.print(table)
    for sentence in answer_question(results)[1:]:
        console.print(sentence, highlight=False)
