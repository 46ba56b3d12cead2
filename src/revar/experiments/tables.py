"""Tables of named columns on disk: Parquet where pyarrow is installed, otherwise CSV.

Both hold the same columns in the same order and give back the same numbers.
"""

import csv
import importlib.util
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revar.errors import InputError, require_extra
from revar.experiments.files import replaced_file

Columns = dict[str, np.ndarray[Any, Any]]  # of one length; words, whole numbers or floats


def write_table(stem: Path, columns: Columns, metadata: Mapping[str, str]) -> Path:
    """Write `stem`.parquet, or `stem`.csv without pyarrow; returns the path."""
    if importlib.util.find_spec("pyarrow") is None:
        path, other = stem.with_suffix(".csv"), stem.with_suffix(".parquet")
        _write_csv(path, columns)
    else:
        path, other = stem.with_suffix(".parquet"), stem.with_suffix(".csv")
        _write_parquet(path, columns, metadata)
    other.unlink(missing_ok=True)  # one table, one file
    return path


def read_table(stem: Path, words: Collection[str]) -> Columns:
    """The columns of the table that was written under this stem; `words` are no numbers."""
    parquet, text = stem.with_suffix(".parquet"), stem.with_suffix(".csv")
    if parquet.exists():
        return _read_parquet(parquet)
    if text.exists():
        return _read_csv(text, words)
    raise InputError(f"there is no table {parquet.name} or {text.name} in {stem.parent}")


def _write_parquet(path: Path, columns: Columns, metadata: Mapping[str, str]) -> None:
    arrow = require_extra("pyarrow", "parquet")
    parquet = require_extra("pyarrow.parquet", "parquet")
    arrays = {
        name: arrow.array(column.tolist()).dictionary_encode()
        if column.dtype.kind == "U"
        else arrow.array(column)
        for name, column in columns.items()
    }
    table = arrow.table(arrays).replace_schema_metadata({"revar": json.dumps(dict(metadata))})
    with replaced_file(path) as new:
        parquet.write_table(table, new, compression="zstd")


def _read_parquet(path: Path) -> Columns:
    parquet = require_extra("pyarrow.parquet", "parquet")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a table: {error}") from error
    columns: Columns = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if hasattr(column, "dictionary"):
            words = np.array(column.dictionary.to_pylist(), dtype=np.str_)
            columns[name] = words[column.indices.to_numpy(zero_copy_only=False)]
        else:
            columns[name] = column.to_numpy(zero_copy_only=False)
    return columns


def _write_csv(path: Path, columns: Columns) -> None:
    with replaced_file(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        # repr of a float reads back to the same float.
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _read_csv(path: Path, words: Collection[str]) -> Columns:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        return {
            name: np.array(column, dtype=np.str_) if name in words else _numbers(column)
            for name, column in zip(header, columns, strict=True)
        }
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path} is not a table: {error}") from error


def _numbers(texts: tuple[str, ...]) -> np.ndarray[Any, Any]:
    """Whole numbers where all are, else floats."""
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except ValueError:
        return np.array([float(text) for text in texts], dtype=np.float64)
