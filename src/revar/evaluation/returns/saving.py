"""Fitted critics in files: records of arrays and numbers as .npz, and never a pickle."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from revar.critics.interface import Critic
from revar.errors import InputError

FORMAT = "revar.Critics"
VERSION = 1
HOME = "revar.critics."  # records of no other package are made from a file


def save_critics(critics: Mapping[str, Critic], path: str | Path) -> None:
    """Write critics by name (.npz)."""
    target = Path(path)
    if target.suffix != ".npz":
        raise InputError(f"{path}: critics are saved as .npz")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}")
    arrays: dict[str, Any] = {}
    content = {name: _describe(critic, arrays) for name, critic in critics.items()}
    notes = {"format": FORMAT, "version": str(VERSION), "critics": json.dumps(content)}
    part = target.with_name(f".{target.name}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, **arrays, **notes)  # type: ignore[arg-type]
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def load_critics(path: str | Path) -> dict[str, Critic]:
    """The critics of a file, by name."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InputError(f"{path} holds no critics ({error})") from None
    if str(content.get("format")) != FORMAT:
        raise InputError(f"{path} holds no critics saved by revar")
    if str(content.get("version")) != str(VERSION):
        raise InputError(
            f"{path} has critics of format {content.get('version')}; this revar reads format "
            f"{VERSION}"
        )
    try:
        described = json.loads(str(content["critics"]))
        return {name: _make(each, content) for name, each in described.items()}
    except (KeyError, TypeError, ValueError, AttributeError, ImportError) as error:
        raise InputError(f"{path} does not hold valid critics: {error}") from None


def _describe(value: Any, arrays: dict[str, Any]) -> Any:
    """A value as JSON; arrays stand beside it by name."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        if not kind.__module__.startswith(HOME):
            raise InputError(f"a {kind.__name__} cannot be saved; it is none of revar's critics")
        content = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        return {
            "record": f"{kind.__module__}:{kind.__qualname__}",
            "fields": {name: _describe(each, arrays) for name, each in content.items()},
        }
    if isinstance(value, dict):
        return {"named": {str(name): _describe(each, arrays) for name, each in value.items()}}
    if isinstance(value, list | tuple):
        kind_of = "list" if isinstance(value, list) else "tuple"
        return {kind_of: [_describe(each, arrays) for each in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    found = np.asarray(value)
    if found.dtype.kind not in "biuf":
        raise InputError(f"a {type(value).__name__} cannot be saved with a critic")
    name = f"array_{len(arrays)}"
    arrays[name] = found
    return {"array": name}


def _make(described: Any, arrays: Mapping[str, Any]) -> Any:
    ((kind, content),) = [(k, v) for k, v in described.items() if k != "fields"]
    if kind == "plain":
        return content
    if kind == "array":
        return arrays[content]
    if kind == "named":
        return {name: _make(each, arrays) for name, each in content.items()}
    if kind in ("list", "tuple"):
        made = [_make(each, arrays) for each in content]
        return made if kind == "list" else tuple(made)
    module, _, name = content.partition(":")
    if kind != "record" or not module.startswith(HOME):
        raise ValueError(f"there is no record {content!r}")
    record = getattr(importlib.import_module(module), name)
    if not is_dataclass(record):
        raise ValueError(f"{content!r} is no record")
    given = {each: _make(value, arrays) for each, value in described["fields"].items()}
    return record(**given)  # type: ignore[operator]
