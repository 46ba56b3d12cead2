"""What experiments keep on disk: finished shards, and tables of named columns.

A file is there whole or not at all. Tables are Parquet where pyarrow is installed, otherwise CSV;
both give back the same columns in the same order, with the same numbers.
"""

import csv
import importlib.util
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from revar.errors import InputError, require_extra

Columns = dict[str, np.ndarray[Any, Any]]  # of one length; words, whole numbers or floats

# What reading a damaged file may raise.
DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    LookupError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Give a new file to write to, which takes the place of `path` if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    new = Path(name)
    try:
        yield new
        new.chmod(0o644)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


class StoredShard(Protocol):
    """What is known of a shard where it is stored."""

    @property
    def result_type(self) -> Any:
        """The record of arrays that it gives."""

    def file_name(self) -> str:
        """Where its result is stored."""


@dataclass(frozen=True)
class ShardStore:
    """A folder of finished shards."""

    directory: Path

    def write(self, shard: StoredShard, result: Any, seconds: float) -> None:
        """Store a finished shard."""
        with replace_file(self.directory / shard.file_name()) as new, new.open("wb") as file:
            np.savez_compressed(file, seconds=seconds, **msgspec.structs.asdict(result))

    def read(self, shard: StoredShard) -> tuple[Any, float] | None:
        """Read a finished shard and its seconds; None if it must be played."""
        path = self.directory / shard.file_name()
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except FileNotFoundError:
            return None
        except DAMAGE:
            return None  # it is played again
        seconds = float(arrays.pop("seconds", 0.0))
        if set(arrays) != set(shard.result_type.__struct_fields__):
            return None
        return shard.result_type(**arrays), seconds


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
    """Read the columns of a table; those named in `words` are texts."""
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
    with replace_file(path) as new:
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
    with replace_file(path) as new, new.open("w", encoding="utf-8", newline="") as file:
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
