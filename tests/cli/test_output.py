import io

import pytest
from rich.console import Console

from revar.cli.output import split_table
from revar.reports.tables import Table


def shown(table: Table, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    for part in split_table(table, width):
        console.print(part)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


WIDE = Table(
    "A [wide] one",
    ("what", *(f"column {i}" for i in range(12))),
    (("first", *(f"{i}.25 ± 0.5" for i in range(12))), ("second", *("-" for _ in range(12)))),
    1,
    "A note [/on] it.",
)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_wide_tables_are_shown_in_parts(width: int) -> None:
    text = shown(WIDE, width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    for i in range(12):
        assert f"{i}.25 ± 0.5" in text
    # Title and note once; what a row is about beside every part of it.
    assert text.count("A [wide] one") == 1
    assert text.count("A note [/on] it.") == 1
    parts = text.count("first")
    assert parts == text.count("second")
    assert (parts == 1) == (width == 200)


def test_a_table_without_rows() -> None:
    assert "what" in shown(Table("None", ("what", "number"), (), 1), 80)
