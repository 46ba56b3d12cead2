"""Commands run in this process, and optional modules that are taken away from them."""

import importlib
from typing import Any

import pytest
from click.testing import CliRunner, Result

from revar.cli import main
from revar.errors import InputError, MissingExtraError


def invoked(*arguments: str, columns: int = 120) -> Result:
    """The command on a terminal of that width."""
    return CliRunner().invoke(main.revar, arguments, env={"COLUMNS": str(columns)})


def output_of(*arguments: str, columns: int = 120) -> str:
    """What the command prints, all being well."""
    result = invoked(*arguments, columns=columns)
    if result.exception is not None:
        raise result.exception
    assert result.exit_code == 0
    return result.stdout


def refusal(*arguments: str) -> str:
    """The one sentence with which the command ends."""
    result = invoked(*arguments)
    assert isinstance(result.exception, InputError | MissingExtraError)
    assert result.stdout == ""
    assert "\n" not in str(result.exception)
    return str(result.exception)


def cells_of(output: str, *words: str) -> list[str]:
    """The cells of the first row of a table that begins with these words."""
    rows = (
        [cell.strip() for cell in line.split("  ") if cell.strip()] for line in output.splitlines()
    )
    return next(row for row in rows if tuple(row[: len(words)]) == words)


def take_away(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """As if these optional modules were not installed."""
    imported: Any = importlib.import_module

    def missing(name: str, package: str | None = None) -> Any:
        if name.partition(".")[0] in modules:
            raise ImportError(f"No module named {name!r}")
        return imported(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
