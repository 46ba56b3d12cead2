"""The site has every page and every public name, and loads nothing from elsewhere."""

import ast
import re
import shutil
from pathlib import Path

import pytest

import revar
from tests.browser import Browser
from tests.docs.pages import ROOT

CONFIGURATION = (ROOT / "mkdocs.yml").read_text()


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r": ([\w/]+\.md)$", CONFIGURATION, re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(listed) == len(set(listed))
    # Two are files of the root, which a hook adds.
    assert set(listed) == pages | {"contributing.md", "changelog.md"}


def test_every_public_name_is_in_the_reference() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    named = re.findall(r"^::: revar\.(\w+)$", pages, re.MULTILINE)
    assert sorted(named) == sorted(revar._HOMES)


@pytest.mark.parametrize("name", [name for name in revar._HOMES if name.endswith("Like")])
def test_aliases_of_types_are_explained(name: str) -> None:
    """By a text below them, which the reference shows."""
    home = ROOT / "src" / f"{revar._HOMES[name].replace('.', '/')}.py"
    body = ast.parse(home.read_text()).body
    (place,) = (
        i
        for i, each in enumerate(body)
        if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == name
    )
    below = body[place + 1]
    assert isinstance(below, ast.Expr) and isinstance(ast.literal_eval(below.value), str)


def test_nothing_is_asked_of_other_hosts() -> None:
    assert re.search(r"^  font: false", CONFIGURATION, re.MULTILINE)
    assert "http" not in CONFIGURATION
    for style in (ROOT / "docs").rglob("*.css"):
        assert not re.search(r"https?:|@import|url\(", style.read_text()), style


def test_the_search_has_a_worker_of_its_own_from_the_disk(browser: Browser, tmp_path: Path) -> None:
    """Browsers start none there; the plugin of the theme would fetch one from another host."""
    name = "iframe-worker.js"
    assert f"polyfills:\n    - javascripts/{name}" in CONFIGURATION
    shutil.copy(ROOT / "docs" / "javascripts" / name, tmp_path)
    (tmp_path / "worker.js").write_text(
        "addEventListener('message', told => postMessage(told.data + 1))"
    )
    (tmp_path / "page.html").write_text(
        f"""<body><script src="{name}"></script><script>
        const worker = new Worker("{tmp_path.as_uri()}/worker.js");
        worker.addEventListener("message", told => document.title += " " + told.data);
        for (const number of [1, 2]) worker.postMessage(number);
        </script>"""
    )
    browser.open((tmp_path / "page.html").as_uri())
    browser.until(lambda: browser.driver.title == "2 3")
    assert browser.problems() == []
