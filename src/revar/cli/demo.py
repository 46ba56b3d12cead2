"""`revar demo`: one policy evaluated after three ways to collect, and a report."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from revar.cli.outcome import check_report, run_stored, write_report

if TYPE_CHECKING:
    from revar.experiments.results import Results


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/demo"),
    show_default=True,
    help="Where the tables and the report go.",
)
def demo(out: Path) -> None:
    """Evaluate a policy on the gridworld after three ways to collect 1,000 episodes.

    Each way is simulated 500 times. The first run of each is shown as a user would see it: a
    value with an interval. The mean squared errors of all runs say what the choice of actions
    bought.

    \b
    Example:
      revar demo
    """
    from revar.experiments.library import built_in

    experiment = built_in("demo")
    check_report(experiment)
    results = run_stored(experiment, out, seed=0, quick=False)
    page = write_report(results, out)
    _show(results)
    click.echo(f"report: {page}")


def _show(results: "Results") -> None:
    from rich.console import Console
    from rich.table import Table

    from revar.estimators import Estimate
    from revar.reports.answers import answer_of
    from revar.reports.summary import error_ratio, final

    facts = results.manifest.facts[0]
    series = {each.strategy: each for each in results.series}
    budget = results.experiment.budgets()[0]
    table = Table(
        title=f"The policy's value on the {facts.problem} is {facts.value:.4f}; "
        f"estimated from {budget:,} episodes",
        caption="Value and interval: what the first of the runs reports. K·MSE: mean squared "
        f"error times episodes, over {results.experiment.runs} runs; at best {facts.limit:.2f}.",
    )
    table.add_column("collected with")
    for heading in ("value", "95% interval", "K·MSE", "error of on-policy / this"):
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
            str(final(each)),
            "" if name == "on-policy" else str(error_ratio(series["on-policy"], each)),
        )
    console = Console()
    console.print(table)
    for sentence in answer_of(results)[1:]:
        console.print(sentence, highlight=False)
