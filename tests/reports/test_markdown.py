from pathlib import Path

from revar.reports.answers import answer_of
from revar.reports.markdown import write_markdown
from revar.reports.tables import tables_of
from tests.reports.hostile import FORMULA, hostile
from tests.reports.tiny import tiny


def test_experiments_as_one_page(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "results.md"
    names = ("ablation", "examples")
    write_markdown([tiny(name) for name in names], page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Results\n")
    for name in names:
        found = tiny(name)
        assert f"## {found.experiment.title}\n\n{found.experiment.question}\n" in text
        assert f"```sh\nrevar reproduce {name}\n```" in text
        for sentence in answer_of(found):
            assert f"- {sentence}\n" in text
        for sentence in found.experiment.unstated:
            assert f"- {sentence}\n" in text
        for table in tables_of(found):
            assert "| " + " | ".join(table.headings) + " |\n" in text
            for row in table.rows:
                assert "| " + " | ".join(row) + " |\n" in text
        for figure in found.experiment.figures:
            assert f"![{figure}](results/{name}-{figure}.png)" in text
            assert (tmp_path / "docs" / "results" / f"{name}-{figure}.png").stat().st_size > 1000
    # In the order in which they were given.
    assert text.index(tiny(names[0]).experiment.title) < text.index(tiny(names[1]).experiment.title)


def test_a_pipe_does_not_break_a_table(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    write_markdown([hostile()], page)
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    (first, *_) = (row for row in rows if FORMULA.replace("|", r"\|") in row)
    assert first.replace(r"\|", "").count("|") == 7  # six columns of the table of errors
