import shutil
from pathlib import Path

import pytest

from revar.experiments import runner, shards
from revar.experiments.results import MANIFEST, write_results
from tests.cli.running import invoked, output_of, refusal, take_away
from tests.reports.tiny import tiny


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two experiments as `reproduce` leaves them, but for the reports."""
    folder = tmp_path_factory.mktemp("results")
    for name in ("examples", "ablation"):
        write_results(folder / name, tiny(name))
    return folder


@pytest.fixture(autouse=True)
def nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was run")

    monkeypatch.setattr(shards, "simulate", never)
    monkeypatch.setattr(runner, "compute_exact_values", never)


def test_reports_are_written_again(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(stored, folder)
    output = output_of("report", str(folder))
    # In the order in which they are best read.
    assert output.splitlines() == [
        f"report: {folder / name / 'report.html'}" for name in ("ablation", "examples")
    ]
    page = (folder / "examples" / "report.html").read_bytes()
    (folder / "examples" / "report.html").unlink()
    assert output_of("report", str(folder / "examples")).splitlines() == [
        f"report: {folder / 'examples' / 'report.html'}"
    ]
    assert (folder / "examples" / "report.html").read_bytes() == page


def test_all_as_one_page(stored: Path, tmp_path: Path) -> None:
    folder, page = tmp_path / "results", tmp_path / "docs" / "results.md"
    shutil.copytree(stored, folder)
    output = output_of("report", str(folder), "--markdown", str(page))
    assert output.splitlines()[-1] == f"page: {page}"
    titles = [line for line in page.read_text().splitlines() if line.startswith("## ")]
    assert titles == [f"## {tiny(name).experiment.title}" for name in ("ablation", "examples")]
    assert (tmp_path / "docs" / "results" / "ablation-scaled-curves.png").exists()


def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    assert refusal("report", str(tmp_path)) == f"{tmp_path} holds no finished experiment"
    (tmp_path / "tree" / "shards").mkdir(parents=True)  # one that was interrupted
    assert refusal("report", str(tmp_path)) == f"{tmp_path} holds no finished experiment"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    result = invoked("report", str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_results_of_another_schema_are_refused(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(stored / "examples", folder)
    manifest = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(manifest.replace('"schema_version": 1', '"schema_version": 9'))
    assert refusal("report", str(folder)) == (
        f"{folder / MANIFEST} has schema 9; this revar reads schema 1"
    )


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        *[(name, "plots,report") for name in ("matplotlib", "plotly", "jinja2")],
        ("pyarrow", "parquet"),
    ],
)
def test_missing_extras_are_named(
    module: str, extra: str, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(monkeypatch, module)
    assert refusal("report", str(stored)) == (
        f"this needs {module}: pip install 'revar-rl[{extra}]'"
    )
