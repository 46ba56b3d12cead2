"""Every Python block of every page runs and prints what the page says it prints."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, printed, program, promised


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    expected = promised(text)
    if not expected:
        return
    assert printed(text, tmp_path) == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_is_fenced_where_it_is_found(page: Path) -> None:
    """A fence that is indented, or named py, would escape the test above without a word."""
    text = page.read_text()
    assert not re.search(r"^[ \t>]+```", text, re.MULTILINE)
    names = {block.language for block in blocks(text)}
    assert names <= {"python", "text", "toml", "sh", "console", "c"}


def test_pages_with_code_are_found() -> None:
    with_code = {page.name for page in PAGES if promised(page.read_text())}
    assert {"README.md", "add_a_strategy.md", "simulation.md", "paper_map.md"} <= with_code


SAMPLE = """# Title

```python
x = 2
if x:
    print(x)
```

It prints:

```text
2
```

```python
y = x + 1
```

```sh
echo unseen
```
"""


def test_convention(tmp_path: Path) -> None:
    assert promised(SAMPLE) == ["2\n", ""]
    assert printed(SAMPLE, tmp_path) == ["2\n", ""]
    assert program(SAMPLE).splitlines()[3] == SAMPLE.splitlines()[3]


def test_a_wrong_output_is_seen(tmp_path: Path) -> None:
    wrong = SAMPLE.replace("```text\n2", "```text\n3")
    assert printed(wrong, tmp_path) != promised(wrong)


def test_an_output_that_is_not_shown_is_seen(tmp_path: Path) -> None:
    silent = SAMPLE.replace("y = x + 1", "print(x + 1)")
    assert printed(silent, tmp_path) != promised(silent)


def test_an_error_names_the_line_of_the_page(tmp_path: Path) -> None:
    broken = SAMPLE.replace("y = x + 1", "raise KeyError(x)")
    line = broken.splitlines().index("raise KeyError(x)") + 1
    with pytest.raises(AssertionError, match=f'page.py", line {line}'):
        printed(broken, tmp_path)


def test_a_fence_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="line 3 has no end"):
        blocks("# Title\n\n```python\nx = 1\n")


def test_readme_begins_with_the_two_commands() -> None:
    first = blocks((ROOT / "README.md").read_text())[0]
    assert first.text == "make demo\nmake test\n"
