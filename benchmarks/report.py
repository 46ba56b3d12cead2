"""Results as a table on the screen, as Markdown and as JSON."""

import json
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from benchmarks.registry import Benchmark, Ratio


@dataclass(frozen=True)
class Row:
    """A benchmark with its answer, or with the reason why there is none."""

    benchmark: Benchmark
    ratio: Ratio | None
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Met, MISSED, not measured, or nothing where there is no target."""
        if self.ratio is None:
            return "not measured"
        if self.benchmark.target is None:
            return ""
        return "met" if self.benchmark.met(self.ratio) else "MISSED"

    @property
    def value(self) -> str:
        """The ratio to about three digits."""
        if self.ratio is None:
            return ""
        value = self.ratio.value
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    @property
    def costs(self) -> str:
        """What stands above and below the line."""
        return self.reason if self.ratio is None else f"{self.ratio.over}; {self.ratio.under}"


HEADINGS = ("ratio of times", "measured", "target", "", "costs")


def screen_table(rows: list[Row]) -> Table:
    """For people at a terminal."""
    table = Table(title="Speed as ratios, measured in one run")
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading == "measured" else "left")
    for row in rows:
        colour = {"met": "green", "MISSED": "red"}.get(row.verdict, "yellow")
        verdict = f"[{colour}]{row.verdict}[/{colour}]"
        table.add_row(row.benchmark.name, row.value, row.benchmark.rule, verdict, row.costs)
    return table


def markdown(rows: list[Row], machine: dict[str, str]) -> str:
    """For the repository."""
    lines = [
        "# Speed as ratios, measured in one run",
        "",
        "Written by `make bench`. Ratios compare like with like on one machine; times alone do not",
        "carry over to another. Each time is the best of several repetitions in which the two",
        "sides take turns. It is CPU time, except where threads are compared, and services or",
        "workers: there it is the time that passes, of the round with the middle ratio.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        "|---|---:|---|---|---|",
        *(
            f"| {row.benchmark.name} | {row.value} | {row.benchmark.rule} | {row.verdict} | "
            f"{row.costs} |"
            for row in rows
        ),
        "",
        "How each was measured:",
        "",
        *(f"- {row.benchmark.name}: {row.ratio.how}." for row in rows if row.ratio),
        "",
        "| machine | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in machine.items()),
        "",
    ]
    return "\n".join(lines)


def as_json(rows: list[Row], machine: dict[str, str]) -> str:
    """For programs."""
    return json.dumps({"machine": machine, "results": [_record(row) for row in rows]}, indent=2)


def _record(row: Row) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": row.benchmark.name,
        "target": row.benchmark.target,
        "at_most": row.benchmark.at_most,
        "verdict": row.verdict,
    }
    if row.ratio is None:
        return {**record, "reason": row.reason}
    return {
        **record,
        "ratio": row.ratio.value,
        "over_seconds": row.ratio.over.seconds,
        "under_seconds": row.ratio.under.seconds,
        "unit": row.ratio.over.unit,
        "how": row.ratio.how,
    }
