"""Fitted critics in files: the arrays that they are made of, as .npz, and never a pickle."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from revar.critics.linear_critic import LinearCritic
from revar.critics.network_critic import NetworkCritic
from revar.errors import InputError
from revar.model.records import in_a_line

FORMAT = "revar.Critics"
VERSION = 1
KINDS: dict[str, Any] = {"linear": LinearCritic, "network": NetworkCritic}  # by family


@dataclass(frozen=True, eq=False, repr=False)
class FittedCritics:
    """A critic of every family, learned from all episodes of a run; fixed from then on."""

    critics: Mapping[str, Any]  # by family
    seeds: tuple[int, ...]  # of the episodes: those of the run, and earlier ones that joined them

    __repr__ = in_a_line

    def save(self, path: str | Path) -> None:
        """Write them (.npz)."""
        save_critics(self, path)


def save_critics(fitted: FittedCritics, path: str | Path) -> None:
    """Write critics (.npz)."""
    target = check_critic_path(path)
    arrays = {
        f"{family}/{name}": array
        for family, critic in fitted.critics.items()
        for name, array in critic.to_arrays().items()
    }
    notes = {
        "format": FORMAT,
        "version": str(VERSION),
        "families": "/".join(fitted.critics),
        "seeds": "/".join(map(str, fitted.seeds)),
    }
    part = target.with_name(f".{target.name}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, **arrays, **notes)  # type: ignore[arg-type]
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def check_critic_path(path: str | Path) -> Path:
    """The path, if critics can be saved there."""
    target = Path(path)
    if target.suffix != ".npz":
        raise InputError(f"{path}: critics are saved as .npz")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}")
    return target


def load_critics(path: str | Path) -> FittedCritics:
    """The critics of a file."""
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
    found = {}
    try:
        for family in str(content["families"]).split("/"):
            start = f"{family}/"
            arrays = {n.removeprefix(start): a for n, a in content.items() if n.startswith(start)}
            found[family] = KINDS[family].from_arrays(arrays)
        seeds = tuple(int(seed) for seed in str(content["seeds"]).split("/"))
        return FittedCritics(found, seeds)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} does not hold valid critics: {error}") from None
