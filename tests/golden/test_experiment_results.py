"""Results of schema 1 stay readable for ever, and are still written the same way.

A change of what is written needs another schema version, with files of its own beside these.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revar.experiments.results import MANIFEST, read_results, write_results
from tests.experiments.small import assert_equal_results
from tests.experiments.test_storage import without_pyarrow

KEPT = Path(__file__).parent / "experiment_schema_1"
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_schema_1_is_read(form: str) -> None:
    results = read_results(KEPT / form)
    manifest = results.manifest
    assert (manifest.schema_version, manifest.seed, manifest.quick) == (1, 11, False)
    assert manifest.experiment.name == "golden"
    assert manifest.experiment.digest() == manifest.digest == "ac4237a60c21a2e9"
    assert manifest.versions["numpy"] == "2.4.6"
    assert manifest.exact[0].monte_carlo == 702.0
    assert manifest.exact[0].oracle_behavior[0] == [0.5350720006157619, 0.4649279993842382]
    problem = 'first, "tree"'
    assert [series.label() for series in results.series] == [
        (problem, "on-policy", "certainty-equivalence", 4),
        (problem, "on-policy", "doubly-robust", 4),
        (problem, "007", "certainty-equivalence", 4),
    ]
    _, robust, last = results.series
    assert robust.checkpoints.tolist() == [1, 2, 3, 4]
    expected = [
        [NAN, -8.836305104838404, 1.0816194415403586, 8.248243995854256],
        [NAN, -33.448287321345674, -21.431422420647703, -11.57045893510503],
    ]
    np.testing.assert_array_equal(robust.estimates, expected)
    assert robust.standard_errors[1, 3] == 7.9385599422402455
    assert robust.variances.tolist() == [INF, 175.5]
    assert last.standard_errors[:, 0].tolist() == [INF, INF]
    assert last.unvisited_probability.tolist() == [[0.75, 0.5, 0.25, 0.0], [0.75, 0.5, 0.25, 0.25]]
    assert last.visits.tolist() == [[3, 5], [2, 1], [3, 2]]
    assert last.true_value == 0.0


def test_both_formats_hold_the_same() -> None:
    assert_equal_results(read_results(KEPT / "csv"), read_results(KEPT / "parquet"))


def test_schema_1_is_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_pyarrow(monkeypatch)
    write_results(tmp_path, read_results(KEPT / "csv"))
    names = sorted(path.name for path in (KEPT / "csv").iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names:
        assert (tmp_path / name).read_text() == (KEPT / "csv" / name).read_text()


def test_parquet_of_schema_1_is_what_is_written(tmp_path: Path) -> None:
    from pyarrow import parquet

    write_results(tmp_path, read_results(KEPT / "parquet"))
    assert (tmp_path / MANIFEST).read_text() == (KEPT / "parquet" / MANIFEST).read_text()
    for kept in (KEPT / "parquet").glob("*.parquet"):
        # Bytes depend on the version of pyarrow; names, types, metadata and values do not.
        found: Any = parquet.read_table(tmp_path / kept.name)
        expected: Any = parquet.read_table(kept)
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.to_pydict().keys() == expected.to_pydict().keys()
        for name, column in expected.to_pydict().items():
            np.testing.assert_array_equal(found.to_pydict()[name], column)
