"""`revar list`: the ids that other commands take."""

from typing import Any

import click

from revar.registry import Registry


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
