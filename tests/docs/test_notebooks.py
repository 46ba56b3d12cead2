"""Notebooks are what the pages say now, and nothing else."""

import base64
import json
from pathlib import Path

import pytest

from tests.docs.notebooks import GUIDES, PAGES, notebook_of, notebook_text
from tests.docs.pages import blocks, promised
from tests.docs.refill import refill

PAGE = """# Title

[This page as a notebook](title.ipynb)

Text.

```python
print(2)
```

```text
2
```

![A picture](picture.png)

More text.

```sh
ls
```

```python
x = 3
```
"""


@pytest.mark.parametrize("name", PAGES)
def test_notebooks_are_current(name: str) -> None:
    """If not: python -m tests.docs.notebooks."""
    assert (GUIDES / f"{name}.ipynb").read_text() == notebook_text(name)


@pytest.mark.parametrize("name", PAGES)
def test_a_notebook_has_the_code_of_its_page(name: str) -> None:
    page = (GUIDES / f"{name}.md").read_text()
    notebook = json.loads((GUIDES / f"{name}.ipynb").read_text())
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code == [b.text.rstrip("\n") for b in blocks(page) if b.language == "python"]
    assert f"({name}.ipynb)" in page


def test_blocks_become_cells(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"drawn")
    cells = notebook_of(PAGE, tmp_path)["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code"]
    assert cells[0]["source"] == "# Title\n\n\nText."
    assert cells[2]["source"] == "More text.\n\n```sh\nls\n```"
    printed, drawn = cells[1]["outputs"]
    assert printed["text"] == "2\n"
    assert base64.b64decode(drawn["data"]["image/png"]) == b"drawn"
    assert cells[3]["outputs"] == []


def test_pages_are_refilled() -> None:
    filled = refill(PAGE, ["4\n5\n", ""])
    assert promised(filled) == ["4\n5\n", ""]
    assert filled == PAGE.replace("```text\n2\n", "```text\n4\n5\n")
    with pytest.raises(ValueError, match="shorter"):
        refill(PAGE, ["4\n"])
