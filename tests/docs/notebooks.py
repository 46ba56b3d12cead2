"""Guides as notebooks, made from the pages: `python -m tests.docs.notebooks` writes them.

A Python block is a cell of code, with what it prints and the picture that follows it as outputs;
everything else is text. Links lead to the pages of the site's source.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT, blocks

GUIDES = ROOT / "docs" / "guides"
PAGES = ("trained_policy", "two_versions", "rare_failures")
LINK = "[This page as a notebook]("  # is for the page alone
PICTURE = re.compile(r"^!\[.*\]\(([\w.]+\.png)\)$", re.MULTILINE)


def notebook_of(page: str, folder: Path) -> dict[str, Any]:
    """The notebook of a page whose pictures are in `folder`, in Jupyter's format."""
    cells: list[dict[str, Any]] = []
    lines, found = page.splitlines(), blocks(page)
    place = 0
    for i, block in enumerate(found):
        if block.language != "python":
            continue
        add_text(cells, lines[place : block.first - 1])
        after = found[i + 1] if i + 1 < len(found) and found[i + 1].language == "text" else None
        outputs = [printed_output(after.text)] if after and after.text else []
        place = (after or block).end + 1
        following = next((line for line in lines[place:] if line.strip()), "")
        picture = PICTURE.match(following)
        if picture:
            outputs.append(drawn_output((folder / picture[1]).read_bytes()))
            place = lines.index(following, place) + 1
        cells.append(
            {
                "cell_type": "code",
                "execution_count": None,
                "id": f"cell-{len(cells)}",
                "metadata": {},
                "outputs": outputs,
                "source": block.text.rstrip("\n"),
            }
        )
    add_text(cells, lines[place:])
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def add_text(cells: list[dict[str, Any]], lines: list[str]) -> None:
    """Add a cell of text, if there is any."""
    text = "\n".join(line for line in lines if not line.startswith(LINK)).strip("\n")
    if text:
        cells.append(
            {"cell_type": "markdown", "id": f"cell-{len(cells)}", "metadata": {}, "source": text}
        )


def printed_output(text: str) -> dict[str, Any]:
    """What a cell has printed."""
    return {"name": "stdout", "output_type": "stream", "text": text}


def drawn_output(picture: bytes) -> dict[str, Any]:
    """What a cell has drawn."""
    data = {"image/png": base64.b64encode(picture).decode()}
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def notebook_text(name: str) -> str:
    """The file of a guide's notebook."""
    page = (GUIDES / f"{name}.md").read_text()
    return json.dumps(notebook_of(page, GUIDES), indent=1, ensure_ascii=False) + "\n"


def write_notebooks() -> None:
    """Write all of them beside their pages."""
    for name in PAGES:
        (GUIDES / f"{name}.ipynb").write_text(notebook_text(name))


if __name__ == "__main__":
    write_notebooks()
