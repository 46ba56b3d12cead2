"""Pages as programs: which of a page's code blocks are run, and what they must print.

Every block fenced as `python` is run, all blocks of a page in one program, in order. If the next
fenced block of the page is `text`, it is what that block prints, to the letter; otherwise the block
prints nothing. Code that is only shown is fenced under another name (`toml`, `sh`, `console`).
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = "```"
# Printed after each block, to tell their outputs apart: ASCII's record separator.
SEPARATOR = "\x1e\n"


@dataclass(frozen=True)
class Block:
    """A fenced block: the lines of the page from `first` up to, without it, `end`."""

    language: str
    first: int
    end: int
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    lines = page.splitlines()
    opened: int | None = None
    for number, line in enumerate(lines):
        if opened is None and line.startswith(FENCE):
            opened = number
        elif opened is not None and line.rstrip() == FENCE:
            first = opened + 1
            text = "".join(f"{part}\n" for part in lines[first:number])
            found.append(Block(lines[opened].removeprefix(FENCE).strip(), first, number, text))
            opened = None
    if opened is not None:
        raise ValueError(f"the block that begins on line {opened + 1} has no end")
    return found


def program(page: str) -> str:
    """The page as a program whose line numbers are those of the page."""
    lines = [""] * len(page.splitlines())
    for block in blocks(page):
        if block.language == "python":
            lines[block.first : block.end] = block.text.splitlines()
            lines[block.end] = f"print({SEPARATOR[:-1]!r})"
    return "\n".join(lines) + "\n"


def promised(page: str) -> list[str]:
    """What each Python block of the page prints, according to the page."""
    found = blocks(page)
    return [
        "".join(after.text for after in found[i + 1 : i + 2] if after.language == "text")
        for i, block in enumerate(found)
        if block.language == "python"
    ]


def printed(page: str, folder: Path) -> list[str]:
    """What each Python block prints when the page is run as a program in `folder`."""
    file = folder / "page.py"
    file.write_text(program(page))
    done = subprocess.run(
        [sys.executable, "-W", "error", file.name],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"lines of page.py are lines of the page\n{done.stderr}")
    return done.stdout.split(SEPARATOR)[:-1]
