"""Saving, appending and loading datasets: .npz or .parquet, versioned, and never a pickle."""

import json
import os
import zlib
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import msgspec
import numpy as np
from numpy.lib.npyio import NpzFile

from revar.datasets import episodes as of_episodes
from revar.datasets.merging import merge_datasets
from revar.errors import InputError, kind_of, require_extra
from revar.model.episodes import Episodes
from revar.model.trajectory import Dataset

FORMAT = "revar.Dataset"
VERSION = 1
STEPS = ("states", "actions", "rewards", "successors", "propensities")


class Conditions(msgspec.Struct, frozen=True):
    """Stored beside the episodes of an evaluation."""

    environment: str
    strategy: str
    horizon: int
    discount: float
    seed: int
    episodes: int  # the budget, 0 where it is not in episodes
    environments: int = 1  # played side by side
    workers: int | None = None  # that played elsewhere; None where this process played
    batch: int | None = None  # episodes that a worker was given at once, at most
    prior_episodes: int = 0
    options: str | None = None  # the environment was opened with
    environment_details: str | None = None  # of one that was handed in: how it was made
    attributes: dict[str, str] | None = None  # of it, that did not change while it was played
    bins: str | None = None
    policy: str | None = None  # a digest of the target policies over the states of the episodes
    policy_parts: dict[str, str] | None = None  # what they are made of, where there is no digest
    names: tuple[str, ...] | None = None  # of several target policies
    question: str | None = None  # that was asked of them
    budget_unit: str = "episodes"
    budget_amount: float | None = None  # in that unit; older files have `episodes` alone
    cost: str | None = None  # where it is the unit: what steps cost, in a few words
    limits: str | None = None  # on collection, in a few words
    # How many of the stored episodes were complete when the generators below were in that state.
    resumable: int = 0
    generators: tuple[str, ...] | None = None  # of the environments, as JSON; None if not known
    method: str = "table"  # or "critic" or "mean", where whole episodes are kept
    resets: int | None = None  # for every episode, where they are many; None if not decided


def save_dataset(
    dataset: Dataset | Episodes, path: str | Path, *, conditions: Conditions | None = None
) -> None:
    """Write the episodes exactly, replacing what is there.

    Parameters
    ----------
    dataset
        A Dataset or Episodes.
    path
        A .npz or .parquet file.
    conditions
        Under which the episodes were collected, as `evaluate` keeps them.
    """
    target = Path(path)
    parquet = _is_parquet(target)
    write: Any
    if isinstance(dataset, Episodes):
        write = of_episodes.write_parquet if parquet else of_episodes.write_npz
        notes = of_episodes.notes_of(dataset)
    else:
        write = _write_parquet if parquet else _write_npz
        notes = _notes_of(dataset)
    notes["conditions"] = msgspec.json.encode(conditions).decode()
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}")
    # Written beside it and then put in its place: an interrupt leaves the old file or the new.
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write(dataset, notes, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _notes_of(dataset: Dataset) -> dict[str, str]:
    return {
        "format": FORMAT,
        "version": str(VERSION),
        "labels": labels_to_json(dataset.labels),
        "action_count": msgspec.json.encode(dataset.action_count).decode(),
        "first_label": msgspec.json.encode(dataset.first_label).decode(),
        "amounts": msgspec.json.encode(list(dataset.amounts)).decode(),
    }


def load_dataset(path: str | Path) -> Any:
    """Read what `save_dataset` wrote, a Dataset or Episodes, checking it like any other input.

    Parameters
    ----------
    path
        A .npz or .parquet file.
    """
    return load_collected(path)[0]


def dataset_of(source: Any, name: str) -> Dataset:
    """A dataset that is given as it is or as its file."""
    found = load_dataset(source) if isinstance(source, str | Path) else source
    if isinstance(found, Episodes):
        raise InputError(
            f"{name} has observations that are no states of a table; it serves methods 'critic' "
            f"and 'mean'"
        )
    if isinstance(found, Dataset):
        return found
    raise InputError(f"{name} is {kind_of(source)}; it must be a Dataset or its file")


def append_dataset(dataset: Any, path: str | Path) -> Any:
    """Add the episodes to those of a file, which is made if it is missing; all of them.

    Parameters
    ----------
    dataset
        A Dataset or Episodes.
    path
        A .npz or .parquet file of the same kind.
    """
    if Path(path).exists():
        dataset = merge_datasets(load_dataset(path), dataset)
    save_dataset(dataset, path)
    return dataset


def load_collected(path: str | Path) -> tuple[Dataset | Episodes, Conditions | None]:
    """A dataset, and the conditions under which it was collected where they are known."""
    source = Path(path)
    if not source.exists():
        raise InputError(f"{path}: no such file")
    read = _read_parquet if _is_parquet(source) else _read_npz
    content, notes = read(source)
    versions = {FORMAT: VERSION, of_episodes.FORMAT: of_episodes.VERSION}
    found = notes.get("format", "")
    if found not in versions:
        raise InputError(f"{path} is not a dataset saved by revar (its format field is missing)")
    if notes.get("version") != str(versions[found]):
        raise InputError(
            f"{path} has dataset format {notes.get('version')}; this revar reads format "
            f"{versions[found]}"
        )
    dataset: Dataset | Episodes
    try:
        if found == of_episodes.FORMAT:
            dataset = of_episodes.episodes_of(content, notes)
            conditions = msgspec.json.decode(notes["conditions"], type=Conditions | None)
            return dataset, conditions
        arrays: dict[str, Any] = {name: np.ascontiguousarray(content[name]) for name in STEPS}
        start = np.asarray(content["start"], dtype=np.int64)
        # Files written before these were known do not have them.
        actions = msgspec.json.decode(notes.get("action_count", "null"), type=int | None)
        first = msgspec.json.decode(notes.get("first_label", "null"), type=tuple[int, ...] | None)
        names = msgspec.json.decode(notes.get("amounts", "[]"), type=list[str])
        dataset = Dataset(
            start=start,
            labels=labels_from_json(notes["labels"]),
            action_count=actions,
            first_label=first,
            amounts={
                name: np.array(content[_amount(place)], dtype=np.float64)
                for place, name in enumerate(names)
            },
            **arrays,
        )
        conditions = msgspec.json.decode(notes["conditions"], type=Conditions | None)
    except KeyError as error:
        raise InputError(f"{path} is incomplete: it has no {error}") from None
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(f"{path} does not hold a valid dataset: {error}") from None
    return dataset, conditions


def _is_parquet(path: Path) -> bool:
    if path.suffix not in (".npz", ".parquet"):
        raise InputError(f"{path}: datasets are saved as .npz or .parquet")
    return path.suffix == ".parquet"


def _columns(dataset: Dataset) -> dict[str, Any]:
    """What a file has of every step; amounts by their place, as their names are anything."""
    amounts = {_amount(place): each for place, each in enumerate(dataset.amounts.values())}
    return {**{name: getattr(dataset, name) for name in STEPS}, **amounts}


def _amount(place: int) -> str:
    return f"amount_{place}"


def _write_npz(dataset: Dataset, notes: dict[str, str], path: Path) -> None:
    steps = _columns(dataset)
    with path.open("wb") as file:
        np.savez_compressed(file, start=dataset.start, **steps, **notes)  # type: ignore[arg-type]


def _read_npz(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        with path.open("rb") as file, NpzFile(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except (OSError, EOFError, RuntimeError, ValueError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is not a dataset saved by revar ({error})") from None
    return content, {name: str(text) for name, text in content.items() if text.ndim == 0}


def _write_parquet(dataset: Dataset, notes: dict[str, str], path: Path) -> None:
    arrow = require_extra("pyarrow", "parquet")
    parquet = require_extra("pyarrow.parquet", "parquet")
    episode = np.repeat(np.arange(len(dataset)), np.diff(dataset.start))
    table = arrow.table({"episode": episode, **_columns(dataset)})
    parquet.write_table(table.replace_schema_metadata(notes), path)


def _read_parquet(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    arrow = require_extra("pyarrow", "parquet")
    parquet = require_extra("pyarrow.parquet", "parquet")
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.metadata or {}
            notes = {name.decode(): text.decode("utf8", "replace") for name, text in names.items()}
            if notes.get("format") == of_episodes.FORMAT:
                return of_episodes.read_parquet(file, notes), notes
            table = file.read()
    except (arrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a dataset saved by revar ({error})") from None
    to_array: Callable[[str], Any] = lambda name: table[name].to_numpy()  # noqa: E731
    content = {name: to_array(name) for name in table.column_names}
    if "episode" in content:
        episodes = 1 + int(content["episode"].max(initial=-1))
        content["start"] = np.searchsorted(content["episode"], np.arange(episodes + 1))
    return content, notes


def labels_to_json(labels: tuple[Hashable, ...] | None) -> str:
    """Keys in the order of their states; tuples become lists."""
    return json.dumps(None if labels is None else [_plain(label) for label in labels])


def labels_from_json(text: str) -> tuple[Hashable, ...] | None:
    """The keys again; lists become tuples."""
    content = json.loads(text)
    return None if content is None else tuple(_frozen(label) for label in content)


def _plain(label: Any) -> Any:
    if isinstance(label, tuple):
        return [_plain(part) for part in label]
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool | int | str | float):
        return label
    raise InputError(
        f"state {label!r} cannot be stored; states are numbers, texts, or tuples of these"
    )


def _frozen(content: Any) -> Any:
    return tuple(_frozen(part) for part in content) if isinstance(content, list) else content
