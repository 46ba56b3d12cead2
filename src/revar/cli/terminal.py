"""Tables of a report on a terminal: one that is too wide is shown in parts, none is cut."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from revar.reports.tables import Table

WORD_WIDTH = 24  # of a column of words; longer ones are folded
PADDING = 2  # between columns


def terminal_tables(table: "Table", width: int) -> Iterator[Any]:
    """The table for a terminal of that width, in parts that repeat the columns of words."""
    parts = list(_parts(table, width))
    for part in parts:
        yield _rich(table, part, first=part is parts[0], last=part is parts[-1])


def _parts(table: "Table", width: int) -> Iterator[list[int]]:
    """The columns of numbers that stand beside the words, as many at a time as fit."""
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


def _rich(table: "Table", part: list[int], *, first: bool, last: bool) -> Any:
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
