import importlib.util
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar.errors import InputError
from revar.experiments.shards import ShardResult, shards_of
from revar.experiments.storage import Columns, ShardStore, read_table, write_table
from tests.experiments.test_shards import CELL

FORMATS = ("parquet", "csv")


def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if pyarrow were not installed."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyarrow" else found(name)
    )


def written(columns: Columns, form: str, folder: Path, **metadata: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        if form == "csv":
            without_pyarrow(patch)
        path = write_table(folder / "table", columns, metadata)
    assert path == folder / f"table.{form}"
    return path


def assert_same(found: Columns, columns: Columns) -> None:
    """The same names, in order, and the same numbers to the last bit."""
    assert list(found) == list(columns)
    for name, column in columns.items():
        assert found[name].dtype.kind == column.dtype.kind
        if column.dtype.kind == "U":
            assert found[name].tolist() == column.tolist()
        else:
            assert found[name].dtype == column.dtype
            assert found[name].tobytes() == column.tobytes()


labels = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=8
) | st.sampled_from(["007", "1e3", "1_000", "nan", "-inf", "True", '"', ",", " a ", "0.10"])
whole = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False) | st.just(float("nan"))


@pytest.mark.parametrize("form", FORMATS)
@given(rows=st.lists(st.tuples(labels, whole, floats), min_size=1, max_size=20))
def test_tables_give_back_what_was_written(form: str, rows: list[tuple[str, int, float]]) -> None:
    words, counts, numbers = zip(*rows, strict=True)
    columns: Columns = {
        "word": np.array(words, dtype=np.str_),
        "count": np.array(counts, dtype=np.int64),
        "number": np.array(numbers, dtype=np.float64),
    }
    with tempfile.TemporaryDirectory() as folder:
        written(columns, form, Path(folder))
        assert_same(read_table(Path(folder) / "table", words=["word"]), columns)


def test_large_tables(tmp_path: Path) -> None:
    # More rows than Parquet keeps in one group: each group has a dictionary of its own.
    length = 1_100_000
    columns: Columns = {
        "word": np.repeat(["one", "two", "three"], [1_000_000, 50_000, 50_000]),
        "number": np.sqrt(np.arange(length)),
    }
    written(columns, "parquet", tmp_path)
    assert_same(read_table(tmp_path / "table", words=["word"]), columns)


def test_one_table_is_one_file(tmp_path: Path) -> None:
    columns: Columns = {"number": np.arange(3)}
    written(columns, "parquet", tmp_path)
    written({"number": np.arange(4)}, "csv", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert read_table(tmp_path / "table", words=[])["number"].size == 4
    written(columns, "parquet", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]


def test_parquet_carries_its_origin(tmp_path: Path) -> None:
    from pyarrow import parquet

    path = written({"number": np.arange(3)}, "parquet", tmp_path, seed="3", digest="abc")
    stored = parquet.read_schema(path).metadata[b"revar"]
    assert json.loads(stored) == {"seed": "3", "digest": "abc"}


def test_parquet_is_read_by_others_as_plain_columns(tmp_path: Path) -> None:
    from pyarrow import parquet

    columns: Columns = {"word": np.array(["a", "b"]), "number": np.array([0.5, np.nan])}
    table = parquet.read_table(written(columns, "parquet", tmp_path))
    assert table.column("word").to_pylist() == ["a", "b"]
    assert [str(kind) for kind in table.schema.types][1] == "double"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("table.csv", b""),
        ("table.csv", b"word,number\na,1\nb\n"),
        ("table.csv", b"word,number\na,1\nb,two\n"),
        ("table.csv", b"word,number\na,\xff\n"),
        ("table.parquet", b"PAR1"),
        ("table.parquet", b""),
    ],
)
def test_damaged_tables_are_named(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))} is not a table: "):
        read_table(tmp_path / "table", words=["word"])


def test_missing_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_table(tmp_path / "table", words=[])
    assert str(caught.value) == f"there is no table table.parquet or table.csv in {tmp_path}"


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from revar.errors import MissingExtraError

    written({"number": np.arange(3)}, "parquet", tmp_path)
    imported: Any = importlib.import_module

    def missing(name: str) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return imported(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError) as caught:
        read_table(tmp_path / "table", words=[])
    assert str(caught.value) == "this needs pyarrow: pip install 'revar-rl[parquet]'"


(SHARD,) = shards_of(CELL, 3)


@pytest.fixture(scope="module")
def result() -> ShardResult:
    return SHARD.play(threads=1)


def assert_same_shard(found: tuple[ShardResult, float] | None, result: ShardResult) -> None:
    assert found is not None
    assert found[1] == 1.5
    for field in ShardResult.__struct_fields__:
        one, other = getattr(found[0], field), getattr(result, field)
        np.testing.assert_array_equal(one, other, strict=True)


def test_a_stored_shard_comes_back(tmp_path: Path, result: ShardResult) -> None:
    store = ShardStore(tmp_path / "shards")
    assert store.read(SHARD) is None
    store.write(SHARD, result, 1.5)
    assert_same_shard(store.read(SHARD), result)
    assert [path.name for path in store.directory.iterdir()] == [SHARD.file_name()]


def test_whatever_is_cut_off_is_noticed(tmp_path: Path, result: ShardResult) -> None:
    store = ShardStore(tmp_path)
    store.write(SHARD, result, 1.5)
    path = tmp_path / SHARD.file_name()
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert store.read(SHARD) is None


def test_whatever_is_changed_is_noticed_or_without_effect(
    tmp_path: Path, result: ShardResult
) -> None:
    store = ShardStore(tmp_path)
    store.write(SHARD, result, 1.5)
    path = tmp_path / SHARD.file_name()
    whole = path.read_bytes()
    noticed = []
    for place in range(0, len(whole), 3):
        changed = whole[place] ^ (0x01 if place % 2 else 0xFF)
        path.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
        found = store.read(SHARD)
        noticed.append(found is None)
        if found is not None:
            assert_same_shard(found, result)
    assert np.mean(noticed) > 0.5


def test_other_arrays_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / SHARD.file_name()
    with path.open("wb") as file:
        np.savez_compressed(file, seconds=1.0, estimates=np.zeros(3))
    assert ShardStore(tmp_path).read(SHARD) is None


def test_nothing_is_left_of_a_file_that_could_not_be_written(
    tmp_path: Path, result: ShardResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ShardStore(tmp_path)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write(SHARD, result, 1.5)
    assert list(tmp_path.iterdir()) == []
