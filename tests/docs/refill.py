"""Run pages, and write what they print and draw into them.

python -m tests.docs.refill                          the guides, and their notebooks
python -m tests.docs.refill docs/guides/cluster.md   these pages

Every `text` block after a `python` block becomes what that prints. A picture that a page draws and
shows is copied beside the page.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from tests.docs.notebooks import write_notebooks
from tests.docs.pages import ROOT, blocks, printed

GUIDES = ROOT / "docs" / "guides"


def refill(page: str, outputs: list[str]) -> str:
    """The page with these outputs, one for each of its Python blocks."""
    lines, found = page.splitlines(), blocks(page)
    shown = [i for i, block in enumerate(found) if block.language == "python"]
    # From the end, so that line numbers stay right.
    for i, output in reversed(list(zip(shown, outputs, strict=True))):
        for after in found[i + 1 : i + 2]:
            if after.language == "text":
                lines[after.first : after.end] = output.splitlines()
    return "\n".join(lines) + "\n"


def main(paths: list[Path]) -> None:
    """Refill these pages."""
    for path in paths:
        page = path.read_text()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            path.write_text(refill(page, printed(page, folder)))
            for picture in re.findall(r"^!\[.*\]\(([\w.]+)\)$", page, re.MULTILINE):
                if (folder / picture).exists():
                    shutil.copyfile(folder / picture, path.parent / picture)
        print(path.relative_to(ROOT))
    write_notebooks()


if __name__ == "__main__":
    main([Path(name).resolve() for name in sys.argv[1:]] or sorted(GUIDES.glob("*.md")))
