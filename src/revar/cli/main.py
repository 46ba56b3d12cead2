"""The `revar` command: its subcommands, and how errors reach a person."""

import sys

import click

from revar import __version__
from revar.cli.compare import compare
from revar.cli.demo import demo
from revar.cli.list import list_ids
from revar.cli.report import report
from revar.cli.reproduce import reproduce
from revar.errors import InputError, MissingExtraError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="revar")
def revar() -> None:
    """Collect data so that a policy's value is known with the smallest error.

    \b
    Examples:
      revar demo                  what choosing the actions buys, on one problem
      revar compare               strategies and estimators at equal budgets
      revar reproduce all         the paper's experiments and those beyond it, with reports
      revar report results        the reports again, from stored results
      revar list                  what there is: problems, strategies, estimators
    """


revar.add_command(compare)
revar.add_command(demo)
revar.add_command(list_ids)
revar.add_command(report)
revar.add_command(reproduce)


def main() -> None:
    """Run the command; bad input ends in one sentence and exit code 2."""
    try:
        revar()
    except (InputError, MissingExtraError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
