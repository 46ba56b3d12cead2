"""A progress bar for long simulations, in a terminal or a notebook."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(description: str, unit: str = "episodes") -> Iterator[Callable[..., None]]:
    """A rich bar with the time left, to be given as `progress`; gone when the work is done.

    It is called with what is done, what there is to do, both in the unit of the budget, and, if
    that changes, a description.

    Parameters
    ----------
    description
        What stands before the bar.
    unit
        What is counted.

    Examples
    --------
    with revar.progress_bar("tree") as progress:
        revar.simulate(mdp, policy, "flow", episodes=1000, runs=1000, progress=progress)
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(description, total=None)

        def show(done: float, total: float, what: str = "") -> None:
            bars.update(
                bar,
                completed=done,
                total=total,
                description=f"{description} [dim]{escape(what)}[/dim]" if what else description,
            )

        yield show
