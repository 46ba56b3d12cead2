"""The page: complete, self-contained, and safe whatever words an experiment uses."""

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from revar.errors import InputError
from revar.experiments.experiment import PAPER
from revar.reports.conclusions import answer_question
from revar.reports.pages import check_report, command_of, write_markdown, write_report
from revar.reports.tables import make_tables
from tests.experiments.small import small
from tests.reports.hostile import FORMULA, IMAGE, MARKUP, SCRIPT, hostile
from tests.reports.made_up import results, series
from tests.reports.tiny import RUNS, tiny


class Page(HTMLParser):
    """The text of a page by tag, what it loads, and the programs in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.programs: list[str] = []
        self.tags: list[str] = []
        self.text: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action", "poster"):
                self.loads.append(value or "")
            assert not name.startswith("on"), "programs in attributes"
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
            self.text.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.text[self.open[-1]][-1] += data


def written(name: str, folder: Path) -> Page:
    path = write_report(tiny(name), folder)
    assert path == folder / "report.html"
    return Page(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [*PAPER, "demo"])
def test_reports_of_built_in_experiments(name: str, tmp_path: Path) -> None:
    found = tiny(name)
    experiment = found.experiment
    page = written(name, tmp_path)
    assert page.open == []
    # Nothing is loaded: pictures and programs are in the page itself.
    assert all(load.startswith("data:") for load in page.loads)
    css = " ".join(page.text["style"])
    assert "url(" not in css
    assert "@import" not in css
    assert page.text["h1"] == [experiment.title]
    paragraphs = page.text["p"]
    assert experiment.question in paragraphs
    captions = page.text.get("figcaption", [])
    assert len(captions) == len(experiment.figures)
    assert all(captions)
    for table in make_tables(found):
        assert table.title in page.text["h2"]
        for row in table.rows:
            assert set(row) <= set(page.text["td"])
    assert page.text["pre"] == [command_of(found)]
    settings = dict(zip(page.text["dt"], page.text["dd"], strict=True))
    assert settings["runs"] == str(RUNS)
    assert settings["seed"] == "0"
    assert settings["digest"] == experiment.digest()
    assert "numpy" in settings["versions"]
    assert set(settings) >= {"episodes", "problems", "strategies", "estimators", "transitions"}
    assert page.text.get("li", []) == list(experiment.unstated)
    # All figures are there as files too, for print.
    files = sorted(path.name for path in (tmp_path / "figures").glob("*"))
    assert files == sorted(f"{figure}.png" for figure in experiment.figures)


def test_the_answer_is_in_the_page(tmp_path: Path) -> None:
    page = written("examples", tmp_path)
    for sentence in answer_question(tiny("examples")):
        assert sentence in page.text["p"]
    # Without charts there is no need for plotly.
    assert max(len(text) for text in page.text["script"]) < 1000


def test_words_stay_words(tmp_path: Path) -> None:
    path = write_report(hostile(), tmp_path)
    html = path.read_text(encoding="utf-8")
    assert SCRIPT not in html
    assert IMAGE not in html
    page = Page(html)
    assert page.open == []
    assert all(load.startswith("data:") for load in page.loads)
    assert page.text["h1"] == [f"A title {SCRIPT} [/red]"]
    assert {SCRIPT, MARKUP, FORMULA} <= set(page.text["td"]) | set(page.text["th"])
    assert page.text["li"] == [f"Nothing {SCRIPT}"]
    assert page.text["pre"] == [f"echo '{IMAGE}'"]
    assert not any(text.strip().startswith("window.taken") for text in page.text["script"])


def test_a_page_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(tiny("examples"), tmp_path)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(KeyboardInterrupt):
        write_report(tiny("examples"), tmp_path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html"]


@pytest.mark.parametrize(
    ("quick", "seed", "declared", "command"),
    [
        (False, 0, "", "revar reproduce made-up"),
        (True, 0, "", "revar reproduce made-up --quick"),
        (True, 7, "", "revar reproduce made-up --quick --seed 7"),
        (False, 7, "revar simulate --runs 3", "revar simulate --runs 3 --seed 7"),
    ],
)
def test_the_command_that_gives_it_again(
    quick: bool, seed: int, declared: str, command: str
) -> None:
    found = results(series([1.0, 1.0]), command=declared)
    manifest = msgspec.structs.replace(found.manifest, quick=quick, seed=seed)
    assert command_of(type(found)(manifest, found.series)) == command


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"figures": ["mse-curve"]}, "unknown figure 'mse-curve'; did you mean 'mse-curves'?"),
        ({"tables": ["errs"]}, "unknown table 'errs'; there are errors, exact, "),
        ({"answer": "oder"}, "unknown answer 'oder'; there are order, "),
    ],
)
def test_what_a_report_cannot_show_is_known_before_the_run(
    change: dict[str, object], message: str
) -> None:
    check_report(small())
    with pytest.raises(InputError, match=re.escape(message)):
        check_report(small(**change))


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
        for sentence in answer_question(found):
            assert f"- {sentence}\n" in text
        for sentence in found.experiment.unstated:
            assert f"- {sentence}\n" in text
        for table in make_tables(found):
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
