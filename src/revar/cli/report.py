"""`revar report`: pages from stored results."""

from pathlib import Path

import click

from revar.cli.outcome import write_report
from revar.errors import InputError


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Also write all of it as one Markdown page, with its figures in a folder beside it.",
)
def report(directory: Path, markdown: Path | None) -> None:
    """Write the reports of the experiments in DIRECTORY again. Nothing is run.

    DIRECTORY is what `revar reproduce --out` was given, or the folder of one experiment.

    \b
    Examples:
      revar report results
      revar report results/tree
      revar report results --markdown docs/results.md
    """
    from revar.experiments.library import PAPER
    from revar.experiments.results import MANIFEST, read_results

    places = [path.parent for path in (directory / MANIFEST, *directory.glob(f"*/{MANIFEST}"))]
    found = [place for place in places if (place / MANIFEST).exists()]
    if not found:
        raise InputError(f"{directory} holds no finished experiment")
    order = {name: rank for rank, name in enumerate(PAPER)}
    loaded = [(place, read_results(place)) for place in found]
    loaded.sort(key=lambda each: (order.get(each[1].experiment.name, len(order)), str(each[0])))
    for place, results in loaded:
        click.echo(f"report: {write_report(results, place)}")
    if markdown is not None:
        from revar.reports.markdown import write_markdown

        write_markdown([results for _, results in loaded], markdown)
        click.echo(f"page: {markdown}")
