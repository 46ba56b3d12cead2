"""The site has every page and every public name, and loads nothing from elsewhere."""

import re

import revar
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


def test_nothing_is_asked_of_other_hosts() -> None:
    assert re.search(r"^  font: false", CONFIGURATION, re.MULTILINE)
    assert "http" not in CONFIGURATION
    for style in (ROOT / "docs").rglob("*.css"):
        assert not re.search(r"https?:|@import|url\(", style.read_text()), style
