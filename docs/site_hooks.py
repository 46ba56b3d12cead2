"""Hooks of MkDocs: pages of the root, numbers kept whole, nothing from elsewhere, no stray star."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

OUTSIDE = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
LOADS = re.compile(
    r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=[\"']?(https?:)?//[^>]*>"
)
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
EMPHASIS = re.compile(r"<em>(.*?)</em>", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, with links as they are from docs/."""
    root = Path(config.config_file_path).parent
    for page, source in OUTSIDE.items():
        text = (root / source).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Keep a number of a table on one line with its standard error."""
    return CELL.sub(lambda cell: cell[0].replace(" ± ", "\u00a0±\u00a0"), html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would load something from another host, or that has stars for text."""
    found = LOADS.search(output)
    if found:
        raise PluginError(f"{page.file.src_path} loads from another host: {found[0]}")
    for text in EMPHASIS.findall(output):
        if text.count("[") != text.count("]") or text.count("(") != text.count(")"):
            raise PluginError(f"{page.file.src_path}: a star of {text!r} is for emphasis")
    return output
