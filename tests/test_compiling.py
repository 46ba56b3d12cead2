"""Compiling is said while it happens, and done once even where the package cannot be written to."""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event
from rich.console import Console
from rich.text import Text

import revar
from revar import progress
from revar.compilation import plain_function, watch_compiling
from revar.model.arrays import Layers
from revar.model.structure import expand
from revar.theory.flow_steps import accelerated_sweeps

COMPILE = """
from revar import find_problem
from revar.compilation import plain_function, watch_compiling
from revar.simulation import world
told = []
with watch_compiling(told.append):
    world.World.of(find_problem("bandit").mdp)
print(world.__file__, bool(told))
"""


def compile_something() -> None:
    inner = numba.njit(lambda number: number + 1)
    assert numba.njit(lambda number: inner(number) * 2)(3) == 8


def test_nested_compilations_are_told_once() -> None:
    told: list[bool] = []
    with watch_compiling(told.append):
        compile_something()
        compile_something()
    compile_something()
    assert told == [True, False, True, False]


def test_the_bar_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    @contextmanager
    def recording(*_: Any) -> Iterator[Any]:
        yield lambda *what: shown.append(what)

    monkeypatch.setattr(progress, "_bar", recording)
    with revar.progress_bar("flow") as show:
        compile_something()
        show(3, 10, "collecting")
        compile_something()
    assert shown == [
        (0, None, "compiling (first run only)"),
        (0, None, ""),
        (3, 10, "collecting"),
        (3, 10, "compiling (first run only)"),
        (3, 10, "collecting"),
    ]


def test_compiling_tells_nothing_of_the_time_left() -> None:
    """A minute of it before the first of a hundred episodes would tell of an hour and a half."""
    now = [0.0]

    def last_line(*shown: tuple[float, int, str]) -> str:
        file = io.StringIO()
        console = Console(file=file, force_terminal=True, width=100, get_time=lambda: now[0])
        with progress._bar("flow", "episodes", console) as show:
            for now[0], done, what in shown:
                show(done, 100, what)
        return Text.from_ansi(file.getvalue().replace("\r", "\n")).plain.strip().splitlines()[-1]

    compiling = [(0.0, 0, ""), (1.0, 1, ""), (2.0, 2, progress.COMPILING)]
    assert re.search(r"compiling \(first run only\).* 2/100 episodes$", last_line(*compiling))
    line = last_line(*compiling, (62.0, 2, ""), (63.0, 3, ""), (64.0, 4, ""))
    assert line.endswith("4/100 episodes 0:01:36")


def test_machine_code_is_kept_in_the_users_cache(tmp_path: Path) -> None:
    """Where the package's folders take no new files, as those of a system's Python."""
    package = tmp_path / "revar"
    source = Path(revar.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in package.rglob("*.py")}:
        (folder / "__pycache__").touch()  # a file: no folder can be made, not even by root
    cache = tmp_path / "cache"

    def start() -> str:
        return subprocess.run(
            [sys.executable, "-c", COMPILE],
            env={**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(cache)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    place = package / "simulation" / "world.py"
    assert start() == f"{place} True\n"
    assert list(cache.rglob("world.*.nbc"))
    assert start() == f"{place} False\n"


class Modules(event.Listener):
    """The modules of all functions that are compiled."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def on_start(self, event: Any) -> None:
        self.names.add(event.data["dispatcher"].py_func.__module__)

    def on_end(self, event: Any) -> None:
        pass


def test_layers_and_sweeps_bring_no_texts_and_no_sorting_along() -> None:
    """numba's own are compiled with every caller: a slice that is assigned takes a second."""
    mdp = revar.find_problem("bandit").mdp
    outcomes, policy = mdp.arrays.outcomes, np.full((1, mdp.actions), 1.0 / mdp.actions)
    compile_anew: Any = numba.njit
    seen = Modules()
    with event.install_listener("numba:compile", seen):
        layers = compile_anew(plain_function(expand))(
            outcomes, mdp.arrays.initial, policy > 0.0, mdp.horizon
        )
        compile_anew(plain_function(accelerated_sweeps))(
            *(outcomes, mdp.arrays.initial, Layers(*layers), policy, policy, 1.0, policy[None], 1)
        )
    assert "numba.np.arrayobj" in seen.names
    assert not seen.names & {"numba.cpython.unicode", "numba.misc.quicksort"}
