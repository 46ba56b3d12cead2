"""Run pages, and write what they print and draw into them.

python -m tests.docs.refill                          the guides, and their notebooks
python -m tests.docs.refill docs/guides/cluster.md   these pages

Every `text` block after a `python` block becomes what that prints. A picture that a page draws and
shows is copied beside the page. Of the dashboard that the guide to live systems shows a picture is
taken in Chromium, where there is one.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser import browsing, programs
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


def take_dashboard(folder: Path) -> None:
    """Take the picture live_system.png of the campaign that the page has left in its folder."""
    found = programs()
    if found is None:
        return
    serve = ["-m", "revar", "serve", "--storage", "sqlite:///campaigns.db", "--port", "0"]
    with subprocess.Popen(
        [sys.executable, *serve], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as service:
        try:
            assert service.stdout is not None
            address = service.stdout.readline().split()[-1]
            with browsing(*found) as browser:
                browser.open(f"{address}/campaigns/carriers", width=1100)
                browser.find("svg")
                browser.resize(1100, 1000)
                browser.driver.save_screenshot(str(folder / "live_system.png"))
        finally:
            service.terminate()


def main(paths: list[Path]) -> None:
    """Refill these pages."""
    for path in paths:
        page = path.read_text()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            path.write_text(refill(page, printed(page, folder)))
            if path.name == "live_system.md":
                take_dashboard(folder)
            for picture in re.findall(r"^!\[.*\]\(([\w.]+)\)$", page, re.MULTILINE):
                if (folder / picture).exists():
                    shutil.copyfile(folder / picture, path.parent / picture)
        print(path.relative_to(ROOT))
    write_notebooks()


if __name__ == "__main__":
    main([Path(name).resolve() for name in sys.argv[1:]] or sorted(GUIDES.glob("*.md")))
