"""Finished shards on disk: what lets an interrupted experiment go on where it was."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from revar.experiments.files import replaced_file
from revar.experiments.shards import Shard, ShardResult

# What reading a file raises that was changed from outside.
DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    LookupError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class ShardStore:
    """A folder of shards, each whole or not there."""

    directory: Path

    def write(self, shard: Shard, result: ShardResult, seconds: float) -> None:
        """Store a finished shard."""
        with replaced_file(self.directory / shard.file_name()) as new, new.open("wb") as file:
            np.savez_compressed(file, seconds=seconds, **msgspec.structs.asdict(result))

    def read(self, shard: Shard) -> tuple[ShardResult, float] | None:
        """A finished shard and the seconds it took; None if it has still to be played."""
        path = self.directory / shard.file_name()
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except FileNotFoundError:
            return None
        except DAMAGE:
            return None  # it is played again
        seconds = float(arrays.pop("seconds", 0.0))
        if set(arrays) != set(ShardResult.__struct_fields__):
            return None
        return ShardResult(**arrays), seconds
