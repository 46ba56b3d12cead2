"""Measure every ratio, show the table, and write it to benchmarks/results.

A missed target is reported in its row and is no error: times depend on the machine.
"""

from pathlib import Path

from rich.console import Console

from benchmarks import (  # noqa: F401 - they register
    collection,
    critic_fitting,
    service,
    simulation,
    workers,
)
from benchmarks.machine import facts
from benchmarks.registry import BENCHMARKS, NotMeasuredError
from benchmarks.report import Row, as_json, markdown, screen_table

RESULTS = Path(__file__).with_name("results")


def main() -> None:
    """Run all benchmarks, one after the other."""
    console = Console()
    machine = facts()
    rows = []
    for entry in BENCHMARKS:
        with console.status(entry.name):
            try:
                rows.append(Row(entry, entry.measure()))
            except NotMeasuredError as error:
                rows.append(Row(entry, None, str(error)))
    console.print(screen_table(rows))
    console.print(", ".join(f"{name}: {value}" for name, value in machine.items()))
    RESULTS.mkdir(exist_ok=True)
    for name, text in (
        ("latest.md", markdown(rows, machine)),
        ("latest.json", as_json(rows, machine) + "\n"),
    ):
        (RESULTS / name).write_text(text)
        console.print(f"wrote {RESULTS.name}/{name}")


if __name__ == "__main__":
    main()
