"""Episodes of any observations and actions in files: their arrays as .npz, their steps as Parquet.

A Parquet file has a row for every step. What an episode has once stands in all of its rows, but for
the observation after the end, which stands in the last. Files are read and written in pieces, so
that they need little more memory than the episodes themselves.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from revar.errors import require_extra
from revar.model.episodes import Episodes
from revar.model.law import Law

FORMAT = "revar.Episodes"
VERSION = 1
PIECE_BYTES = 2**25  # of observations in a row group
ROWS = ("observations", "actions", "noise", "features")  # [step, numbers]
OPTIONAL = ("numbers", "features")


def notes_of(episodes: Episodes) -> dict[str, str]:
    """What a file says of its episodes in texts."""
    return {
        "format": FORMAT,
        "version": str(VERSION),
        "law": str(episodes.law),
        "observation_space": msgspec.json.encode(episodes.observation_space).decode(),
        "action_space": msgspec.json.encode(episodes.action_space).decode(),
        "amounts": msgspec.json.encode(list(episodes.amounts)).decode(),
    }


def episodes_of(content: dict[str, Any], notes: dict[str, str]) -> Episodes:
    """The episodes of a file's arrays and texts, checked like any other input."""
    names = msgspec.json.decode(notes["amounts"], type=list[str])
    return Episodes(
        start=np.asarray(content["start"], dtype=np.int64),
        observations=content["observations"],
        final_observations=content["final_observations"],
        actions=content["actions"],
        rewards=np.asarray(content["rewards"], dtype=np.float64),
        terminated=np.asarray(content["terminated"], dtype=bool),
        noise=np.asarray(content["noise"], dtype=np.float64),
        law=Law.parse(notes["law"]),
        observation_space=msgspec.json.decode(notes["observation_space"], type=str | None),
        action_space=msgspec.json.decode(notes["action_space"], type=str | None),
        numbers=content.get("numbers"),
        features=content.get("features"),
        amounts={name: content[f"amount_{place}"] for place, name in enumerate(names)},
    )


def _arrays(episodes: Episodes) -> dict[str, Any]:
    amounts = {f"amount_{place}": each for place, each in enumerate(episodes.amounts.values())}
    found = {name: getattr(episodes, name) for name in OPTIONAL}
    return {
        "start": episodes.start,
        "observations": episodes.observations,
        "final_observations": episodes.final_observations,
        "actions": episodes.actions,
        "rewards": episodes.rewards,
        "terminated": episodes.terminated,
        "noise": episodes.noise,
        **{name: values for name, values in found.items() if values is not None},
        **amounts,
    }


def write_npz(episodes: Episodes, notes: dict[str, str], path: Path) -> None:
    """Write arrays and texts; whole numbers, as of images, are worth the time to compress them."""
    whole = episodes.observations.dtype.kind in "iub"
    write: Any = np.savez_compressed if whole else np.savez
    with path.open("wb") as file:
        write(file, **_arrays(episodes), **notes)


def write_parquet(episodes: Episodes, notes: dict[str, str], path: Path) -> None:
    """Write a row for every step, some episodes at a time."""
    arrow = require_extra("pyarrow", "parquet")
    parquet = require_extra("pyarrow.parquet", "parquet")
    width = max(1, episodes.observations[:1].nbytes)
    rows = max(1, PIECE_BYTES // width)
    first = 0
    writer: Any = None
    try:
        while writer is None or first < len(episodes):
            # Whole episodes, one at least.
            end = int(np.searchsorted(episodes.start, episodes.start[first] + rows, side="right"))
            end = min(max(end - 1, first + 1), len(episodes))
            table = _table(arrow, episodes.part(first, end), first)
            if writer is None:
                schema = table.schema.with_metadata({**notes, "dtypes": _dtypes(episodes)})
                once = ["episode", "number", "terminated"]
                writer = parquet.ParquetWriter(path, schema, use_dictionary=once)
            writer.write_table(table, row_group_size=max(1, table.num_rows))
            first = end
    finally:
        if writer is not None:
            writer.close()


def _table(arrow: Any, episodes: Episodes, first: int) -> Any:
    lengths, last = episodes.lengths, episodes.start[1:] - 1

    def rows(values: Any) -> Any:
        flat = arrow.array(np.ascontiguousarray(values).reshape(-1))
        return arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])

    sizes = np.zeros(episodes.steps, dtype=np.int64)
    sizes[last] = episodes.observations.shape[1]
    finals = arrow.array(np.ascontiguousarray(episodes.final_observations).reshape(-1))
    columns = {
        "episode": first + episodes.episode_of_step,
        "rewards": episodes.rewards,
        "terminated": np.repeat(episodes.terminated, lengths),
        "final_observations": arrow.LargeListArray.from_arrays(
            arrow.array(np.concatenate([[0], np.cumsum(sizes)])), finals
        ),
    }
    if episodes.numbers is not None:
        columns["numbers"] = np.repeat(episodes.numbers, lengths)
    for name, values in _arrays(episodes).items():
        if name in ROWS and values.shape[1] > 0:
            columns[name] = rows(values)
        elif name.startswith("amount_"):
            columns[name] = values
    return arrow.table(columns)


def _dtypes(episodes: Episodes) -> str:
    """What arrays without columns, or without rows, are made of, and how wide they are."""
    found = {
        name: (values.dtype.str, values.shape[1])
        for name, values in _arrays(episodes).items()
        if name in ROWS
    }
    return msgspec.json.encode(found).decode()


def read_parquet(source: Any, notes: dict[str, str]) -> dict[str, Any]:
    """The arrays of a Parquet file, which is open, a row group at a time."""
    steps = source.metadata.num_rows
    kinds = msgspec.json.decode(notes["dtypes"], type=dict[str, tuple[str, int]])
    content: dict[str, Any] = {
        name: np.empty((steps, width), dtype=kind) for name, (kind, width) in kinds.items()
    }
    columns = [name for name in source.schema_arrow.names if name not in ROWS]
    parts: dict[str, list[Any]] = {name: [] for name in columns}
    done = 0
    for group in range(source.num_row_groups):
        table = source.read_row_group(group)
        end = done + table.num_rows
        for name in table.column_names:
            column = table[name].combine_chunks()
            if name in ROWS:
                values = column.flatten().to_numpy(zero_copy_only=False)
                content[name][done:end] = values.reshape(content[name][done:end].shape)
            elif name == "final_observations":
                parts[name].append(column.flatten().to_numpy(zero_copy_only=False))
            else:
                parts[name].append(column.to_numpy(zero_copy_only=False))
        done = end
    laid = {name: np.concatenate(pieces) for name, pieces in parts.items() if pieces}
    episode = laid.pop("episode", np.zeros(0, dtype=np.int64))
    count = 1 + int(episode.max(initial=-1))
    start = np.searchsorted(episode, np.arange(count + 1))
    kind, width = kinds["observations"]
    finals = laid.pop("final_observations", np.zeros(0, dtype=kind))
    content["final_observations"] = finals.astype(kind).reshape(count, width)
    for name in ("terminated", "numbers"):
        if name in laid:
            content[name] = laid.pop(name)[start[:-1]]
    return {**content, **laid, "start": start}
