import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revar.errors import InputError
from revar.experiments.results import (
    KEYS,
    MANIFEST,
    Results,
    read_manifest,
    read_results,
    write_results,
)
from revar.experiments.runner import run_experiment
from revar.experiments.storage import Columns, read_table, write_table
from tests.experiments.small import assert_equal_results, small, tables_in
from tests.experiments.test_storage import without_pyarrow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    experiment = small(
        episodes=[10, 20],
        strategies=[
            {"id": "on-policy", "label": "0.10", "estimators": ["doubly-robust"]},
            {"id": "revar", "label": "a, \"b\" | 'c' <d> é 行"},
        ],
    )
    return run_experiment(experiment, tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize("pyarrow", [True, False])
def test_results_come_back_as_they_were(
    results: Results, pyarrow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not pyarrow:
        without_pyarrow(monkeypatch)
    write_results(tmp_path, results)
    assert {Path(name).suffix for name in tables_in(tmp_path)} == {
        ".parquet" if pyarrow else ".csv"
    }
    found = read_results(tmp_path)
    assert found.manifest == results.manifest
    assert_equal_results(found, results)


def test_results_along_one_budget_come_back_as_they_were(tmp_path: Path) -> None:
    whole = run_experiment(small(), tmp_path)
    assert whole.series[0].checkpoints.size > 5
    assert_equal_results(read_results(tmp_path), whole)


def test_errors_are_scaled_by_the_number_of_episodes(results: Results) -> None:
    series = results.of("five arms", budget=20)[0]
    errors = (series.estimates[:, -1] - series.true_value) ** 2
    assert series.scaled[-1] == pytest.approx(20 * errors.mean())
    assert series.scaled_standard_error[-1] == pytest.approx(
        20 * errors.std(ddof=1) / np.sqrt(series.runs)
    )


def refusal(directory: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_results(directory)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_without_results(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        f"{tmp_path} holds no finished experiment: there is no experiment.json"
    )
    assert "holds no finished experiment" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_schema_is_refused(results: Results, version: Any, tmp_path: Path) -> None:
    write_results(tmp_path, results)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["schema_version"] = version
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    assert refusal(tmp_path) == (
        f"{tmp_path / MANIFEST} has schema {version}; this revar reads schema 1"
    )


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '"words"', '{"schema_version": 1}', '{"schema_version": 1, "experiment": {}}'],
)
def test_other_files_are_no_manifest(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(InputError, match=re.escape(str(tmp_path / MANIFEST))):
        read_manifest(tmp_path)


def changed_table(
    results: Results, directory: Path, table: str, change: Callable[[Columns], Columns]
) -> None:
    """Store the results with one table changed."""
    write_results(directory, results)
    columns = read_table(directory / table, words=KEYS)
    write_table(directory / table, change(columns), {})


def without_rows(*rows: int) -> Callable[[Columns], Columns]:
    return lambda columns: {name: np.delete(column, rows) for name, column in columns.items()}


def without_column(name: str) -> Callable[[Columns], Columns]:
    return lambda columns: {key: column for key, column in columns.items() if key != name}


def with_value(name: str, row: int, value: Any) -> Callable[[Columns], Columns]:
    def change(columns: Columns) -> Columns:
        column = columns[name].astype(np.dtype("U20") if isinstance(value, str) else None)
        column[row] = value
        return columns | {name: column}

    return change


def of_strategy(name: str) -> Callable[[Columns], Columns]:
    """The rows of one strategy alone."""

    def change(columns: Columns) -> Columns:
        kept = columns["strategy"] == name
        return {key: column[kept] for key, column in columns.items()}

    return change


def backwards(columns: Columns) -> Columns:
    return {name: column[::-1] for name, column in columns.items()}


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("estimates", without_rows(0)),
        ("estimates", without_rows(-1)),
        ("estimates", without_rows(*range(5))),  # a whole series
        ("estimates", without_rows(4, 9, 14, 19, 24, 29, 34, 39)),  # the last run of each
        ("estimates", without_column("standard_error")),
        ("estimates", without_column("problem")),
        ("estimates", with_value("run", 3, 7)),
        ("estimates", with_value("episodes", 3, 9)),
        ("estimates", with_value("strategy", 0, "another")),
        ("estimates", of_strategy("0.10")),
        ("estimates", backwards),
        ("allocations", without_rows(0)),
        ("allocations", with_value("run", 0, 1)),
        ("allocations", of_strategy("0.10")),
        ("allocations", without_column("variance")),
        ("visits", without_rows(0)),
        ("visits", of_strategy("0.10")),
        ("visits", without_column("visits")),
        ("visits", with_value("budget", 0, 11)),
        ("visits", lambda columns: {name: column[:0] for name, column in columns.items()}),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    results: Results, table: str, change: Callable[[Columns], Columns], tmp_path: Path
) -> None:
    assert results.series[0].estimates.size == 5
    changed_table(results, tmp_path, table, change)
    assert refusal(tmp_path) == f"the tables in {tmp_path} do not fit their manifest"


def test_a_missing_table_is_named(results: Results, tmp_path: Path) -> None:
    write_results(tmp_path, results)
    (tmp_path / "visits.parquet").unlink()
    assert refusal(tmp_path) == f"there is no table visits.parquet or visits.csv in {tmp_path}"


def test_while_tables_are_written_there_is_no_manifest(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(tmp_path, results)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("revar.experiments.results.write_table", fail)
    with pytest.raises(KeyboardInterrupt):
        write_results(tmp_path, results)
    assert "holds no finished experiment" in refusal(tmp_path)
