"""A progress bar for long simulations, in a terminal or a notebook."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape as escape_html
from typing import Any

from revar.compilation import watch_compiling

COMPILING = "compiling (first run only)"
NOTEBOOK_SECONDS = 0.1  # between two updates of a bar in a notebook, at least

# Shows what is done, what there is to do, and a description.
Show = Callable[[float, float | None, str], None]


@contextmanager
def progress_bar(description: str, unit: str = "episodes") -> Iterator[Callable[..., None]]:
    """A bar with the time left, to be given as `progress`; gone when the work is done.

    It is called with what is done, what there is to do, both in the unit of the budget, and, if
    that changes, a description. While something is compiled the bar says so, and no time.

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

    console = Console(stderr=True)
    made = (
        _notebook_bar(description, unit) if console.is_jupyter else _bar(description, unit, console)
    )
    with made as show:
        last: tuple[float, float | None, str] = (0, None, "")

        def tell(done: float, total: float | None, what: str = "") -> None:
            nonlocal last
            last = (done, total, what)
            show(*last)

        def say_compiling(compiling: bool) -> None:
            done, total, what = last
            show(done, total, COMPILING if compiling else what)

        with watch_compiling(say_compiling):
            yield tell


@contextmanager
def _bar(description: str, unit: str, console: Any) -> Iterator[Show]:
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        def render(self, task: Any) -> Text:
            return Text() if task.fields["compiling"] else super().render(task)

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeLeft(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task(description, total=None, compiling=False)

        def show(done: float, total: float | None, what: str) -> None:
            compiling = what == COMPILING
            if bars.tasks[bar].fields["compiling"] and not compiling:
                bars.reset(bar, completed=int(done))  # compiling tells nothing of the pace
            bars.update(
                bar,
                completed=done,
                total=total,
                compiling=compiling,
                description=f"{description} [dim]{escape(what)}[/dim]" if what else description,
            )

        yield show


@contextmanager
def _notebook_bar(description: str, unit: str) -> Iterator[Show]:
    """The browser's own bar: rich would need ipywidgets for one."""
    from IPython.display import HTML, display

    handle: Any = display(HTML(escape_html(description)), display_id=True)
    began, shown, words = time.monotonic(), -1.0, ""

    def show(done: float, total: float | None, what: str) -> None:
        nonlocal began, shown, words
        now = time.monotonic()
        if now - shown < NOTEBOOK_SECONDS and what == words:
            return
        if words == COMPILING:
            began += now - shown  # compiling tells nothing of the pace
        shown, words = now, what
        text = " ".join(filter(None, (description, what)))
        if total is None:
            handle.update(HTML(f"<progress></progress> {escape_html(text)}"))
            return
        known = done > 0 and what != COMPILING
        left = (now - began) * (total - done) / done if known else None
        time_left = "" if left is None else f", {left:,.0f} s left"
        handle.update(
            HTML(
                f"<progress value='{done}' max='{total}'></progress> {escape_html(text)} "
                f"{done:,.6g} of {total:,.6g} {escape_html(unit)}{time_left}"
            )
        )

    try:
        yield show
    finally:
        handle.update(HTML(""))
