"""The `revar` command: its subcommands, and how errors reach a person."""

import sys
from typing import Any

import click

from revar import __version__
from revar.cli.advise import advise
from revar.cli.campaign import campaign
from revar.cli.compare import compare
from revar.cli.demo import demo
from revar.cli.evaluate import evaluate
from revar.cli.list import list_ids
from revar.cli.report import report
from revar.cli.reproduce import reproduce
from revar.cli.serve import serve
from revar.errors import INTERRUPTED, InputError, MissingExtraError, RefusedError


class Commands(click.Group):
    """Ctrl-C that no command heard ends in a line and the exit code of an interrupt."""

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
      revar advise                how many episodes that will take
      revar compare               strategies and estimators at equal budgets
      revar reproduce all         the paper's experiments and those beyond it, with reports
      revar report results        the reports again, from stored results
      revar serve                 live campaigns over HTTP, with a dashboard
      revar campaign              create, look at, export and merge campaigns
      revar list                  what there is: problems, strategies, estimators
    """


revar.add_command(advise)
revar.add_command(campaign)
revar.add_command(compare)
revar.add_command(demo)
revar.add_command(evaluate)
revar.add_command(list_ids)
revar.add_command(report)
revar.add_command(reproduce)
revar.add_command(serve)


def main() -> None:
    """Run the command; bad input ends in one sentence and exit code 2, a refusal in code 1."""
    try:
        revar()
    except (InputError, MissingExtraError, RefusedError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1 if isinstance(error, RefusedError) else 2)
