"""The `revar` command: its subcommands, `revar list`, and how errors are shown."""

import os
import sys
from typing import Any

import click

from revar import __version__
from revar.cli.campaign_end import campaign
from revar.cli.compare import compare
from revar.cli.demo import demo
from revar.cli.evaluate import advise, evaluate
from revar.cli.experiments import report, reproduce
from revar.cli.serve import serve
from revar.cli.simulate import simulate
from revar.cli.wording import in_options
from revar.errors import INTERRUPTED, InputError, MissingExtraError, RefusedError
from revar.registry import Registry


class Commands(click.Group):
    """Subcommands; Ctrl-C ends in one line and the exit code of an interrupt."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="revar")
def revar() -> None:
    """Collect data so that a policy's value is known with the smallest error.

    \b
    Examples:
      revar demo                  what choosing the actions buys, on one problem
      revar evaluate              a policy's value in an environment, with an interval
      revar compare               which of several policies is the best
      revar advise                how many episodes that will take
      revar simulate              strategies and estimators on a model, at equal budgets
      revar reproduce all         the paper's experiments and those beyond it, with reports
      revar report results        the reports again, from stored results
      revar serve                 live campaigns over HTTP, with a dashboard
      revar campaign              create, show, export, merge, extend and close campaigns
      revar list                  what there is: problems, strategies, estimators
    """


@click.command("list")
@click.argument("kind", required=False, type=click.Choice(["problems", "strategies", "estimators"]))
def list_ids(kind: str | None) -> None:
    """List problems, strategies and estimators by id, each with its first line.

    \b
    Examples:
      revar list
      revar list problems
    """
    from rich.console import Console
    from rich.table import Table

    from revar.estimators import estimators
    from revar.problems import problems
    from revar.strategies import strategies

    registries: dict[str, Registry[Any]] = {
        "problems": problems,
        "strategies": strategies,
        "estimators": estimators,
    }
    console = Console()
    for name, registry in registries.items():
        if kind not in (None, name):
            continue
        table = Table(title=name, title_justify="left", show_header=False, box=None)
        for item_id in registry.ids():
            summary = (registry.find(item_id).__doc__ or "").strip().partition("\n")[0]
            table.add_row(f"[bold]{item_id}[/bold]", summary)
        console.print(table)


for command in (
    *(advise, campaign, compare, demo, evaluate),
    *(list_ids, report, reproduce, serve, simulate),
):
    revar.add_command(command)


def main() -> None:
    """Run the command; bad input ends in one sentence and exit code 2.

    What is refused as things stand, and what a disk or a pipe does not take, in code 1.
    """
    try:
        revar()
    except (InputError, MissingExtraError, RefusedError) as error:
        click.echo(f"Error: {in_options(str(error))}", err=True)
        sys.exit(1 if isinstance(error, RefusedError) else getattr(error, "exit_code", 2))
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        click.echo(f"Error: {where}{error.strerror or error}", err=True)
        _drop_output()
        sys.exit(1)


def _drop_output() -> None:
    """Let nothing that was printed, and not taken, be tried once more when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
