"""What the pages name is there: functions, make targets, files, ids."""

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from revar.estimators import estimators
from revar.problems import problems
from revar.registry import Registry
from revar.strategies import strategies
from tests.docs.pages import PAGES, ROOT

NAMED = [*PAGES, ROOT / "CHANGELOG.md"]


def resolve(dotted: str) -> object:
    """The object of a dotted name: the longest importable module, then attributes."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(dotted)


@pytest.mark.parametrize("page", NAMED, ids=lambda page: page.name)
def test_dotted_names_exist(page: Path) -> None:
    for name in re.findall(r"`(revar(?:\.\w+)+)(?:\([^`]*\))?`", page.read_text()):
        resolve(name)


@pytest.mark.parametrize("page", NAMED, ids=lambda page: page.name)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make (\w+)`", page.read_text())) <= targets


@pytest.mark.parametrize("page", NAMED, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", NAMED, ids=lambda page: page.name)
def test_source_files_exist(page: Path) -> None:
    """Paths in backticks: from the root of the repository, or within src/revar."""
    for path in re.findall(r"`([\w/]+/[\w./]*\w\.(?:py|c|md|toml|yml))`", page.read_text()):
        assert (ROOT / path).exists() or (ROOT / "src" / "revar" / path).exists(), path


@pytest.mark.parametrize("registry", [strategies, estimators, problems], ids=lambda r: r.kind)
def test_ids_in_the_readme_exist(registry: Registry[Any]) -> None:
    kind = registry.package.removeprefix("revar.")
    row = re.search(rf"^\| {kind} \|(.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert row is not None
    ids = re.findall(r"`([\w-]+)`", row[1])
    assert ids
    assert set(ids) <= set(registry.ids())


@pytest.mark.parametrize("page", ["README.md", "docs/first_steps.md"])
def test_extras_are_named(page: str) -> None:
    """All that a user may want, and none that there is not."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = set(settings["project"]["optional-dependencies"]) - {"dev", "docs"}
    install = (ROOT / page).read_text().partition("## Install\n")[2].partition("\n## ")[0]
    if page == "README.md":
        rows = re.findall(r"^\| (`.*`) \| \w.* \|$", install, re.MULTILINE)
        assert set(re.findall(r"`(\w+)`", " ".join(rows))) == extras
    else:
        assert extras - {"solver"} <= set(re.findall(r"`(\w+)`", install))
