"""Results on the terminal: sentences and tables for people, JSON for machines."""

import json
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from revar.experiments.results import Results
    from revar.reports.tables import Table

# Longer tables are left to the report.
MOST_ROWS = 30
WORD_WIDTH = 24  # of a column of words; longer ones are wrapped
PADDING = 2  # between columns


def print_results(results: "Results", *, first_only: bool = False) -> None:
    """Print the answer, the first table, and those of the others that are short."""
    from rich.console import Console

    from revar.reports.conclusions import answer_question
    from revar.reports.tables import make_tables

    console = Console()
    console.print(results.experiment.title, style="bold", markup=False, highlight=False)
    for sentence in answer_question(results):
        console.print(f"  {sentence}", markup=False, highlight=False)
    tables = make_tables(results)
    for place, table in enumerate(tables[:1] if first_only else tables):
        if place == 0 or len(table.rows) <= MOST_ROWS:
            for part in split_table(table, console.width):
                console.print(part)


def results_as_data(results: "Results") -> dict[str, Any]:
    """The results at the end of every series, as plain data."""
    from revar.reports.conclusions import answer_question
    from revar.reports.metrics import coverage

    manifest = results.manifest
    return {
        "experiment": results.experiment.name,
        "quick": manifest.quick,
        "digest": manifest.digest,
        "seed": manifest.seed,
        "versions": manifest.versions,
        "runs": results.experiment.runs,
        "answer": answer_question(results),
        "results": [
            {
                "problem": series.problem,
                "strategy": series.strategy,
                "estimator": series.estimator,
                "episodes": int(series.checkpoints[-1]),
                "runs": series.runs,
                "true_value": series.true_value,
                "limit": results.exact(series.problem).limit,
                "mse": float(series.mse[-1]),
                "mse_standard_error": float(series.mse_standard_error[-1]),
                "coverage": float(coverage(series, 0.95).value),
            }
            for series in results.series
        ],
    }


def print_json(content: Any) -> None:
    """Print plain data as JSON."""
    click.echo(json.dumps(_finite(content), indent=1, allow_nan=False, ensure_ascii=False))


def _finite(content: Any) -> Any:
    """The data with null in place of NaN and infinity, which JSON has not."""
    if isinstance(content, dict):
        return {name: _finite(part) for name, part in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(part) for part in content]
    if isinstance(content, float):
        return float(content) if isfinite(content) else None
    return content


def split_table(table: "Table", width: int) -> Iterator[Any]:
    """The table for a terminal of that width, in parts that repeat the columns of words.

    A table that is too wide is split, and never cut.
    """
    parts = list(_parts(table, width))
    for part in parts:
        yield _rich_table(table, part, first=part is parts[0], last=part is parts[-1])


def _parts(table: "Table", width: int) -> Iterator[list[int]]:
    """The columns of numbers of each part: as many as fit beside the words."""
    widths = [
        max(len(text) for text in (*(row[place] for row in table.rows), "", *heading.split()))
        for place, heading in enumerate(table.headings)
    ]
    words = sum(min(each, WORD_WIDTH) + PADDING for each in widths[: table.words])
    part: list[int] = []
    used = words
    for place in range(table.words, len(widths)):
        wanted = widths[place] + PADDING
        if part and used + wanted > width:
            yield part
            part, used = [], words
        part.append(place)
        used += wanted
    yield part


def _rich_table(table: "Table", part: list[int], *, first: bool, last: bool) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = RichTable(
        title=escape(table.title) if first else None,
        title_justify="left",
        caption=escape(table.note) if last else None,
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    places = [*range(table.words), *part]
    for place in places:
        word = place < table.words
        shown.add_column(
            escape(table.headings[place]),
            justify="left" if word else "right",
            overflow="fold",
            max_width=WORD_WIDTH if word else None,
            min_width=None if word else max((len(row[place]) for row in table.rows), default=0),
        )
    for row in table.rows:
        shown.add_row(*(escape(row[place]) for place in places))
    return shown
