"""Saving and loading models: NumPy archives with a format version, and never a pickle.

The one place of the core that touches the file system.
"""

import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile
from scipy import sparse

from revar.errors import InputError
from revar.model.mdp import TabularMDP

FORMAT = "revar.TabularMDP"
VERSION = 1


def save_mdp(mdp: TabularMDP, path: str | Path) -> None:
    """Write the model exactly.

    Parameters
    ----------
    mdp
        The model.
    path
        A .npz file.
    """
    transitions = mdp.transitions
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "row_start": transitions.indptr.astype(np.int64),
        "successor": transitions.indices.astype(np.int64),
        "probability": transitions.data,
        "initial": mdp.initial,
        "horizon": mdp.horizon,
        "discount": mdp.discount,
        "reward_law": mdp.reward_law,
    }
    if mdp.rewards_depend_on_outcome:
        content["outcome_successor"] = mdp.outcomes.successor
        content["outcome_row_start"] = mdp.outcomes.row_start
        content["outcome_reward_mean"] = mdp.outcome_reward_mean
        content["outcome_reward_std"] = mdp.outcome_reward_std
    else:
        content["reward_mean"] = mdp.reward_mean
        content["reward_std"] = mdp.reward_std
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **content)


def load_mdp(path: str | Path) -> TabularMDP:
    """Read a model written by `save_mdp`, checking it like any other input.

    Parameters
    ----------
    path
        A .npz file.
    """
    content = _read_arrays(path)
    if str(content.get("format")) != FORMAT:
        raise InputError(f"{path} is not a model saved by revar (its format field is missing)")
    version = str(content.get("version"))
    if version != str(VERSION):
        raise InputError(f"{path} has model format {version}; this revar reads format {VERSION}")
    try:
        return _from_version_1(content)
    except KeyError as error:
        raise InputError(f"{path} is incomplete: it has no {error}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{path} does not hold a valid model: {error}") from None


def _read_arrays(path: str | Path) -> dict[str, Any]:
    """Every array of the archive; an object array would need a pickle and is refused."""
    try:
        with Path(path).open("rb") as file, NpzFile(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    # What NumPy, zipfile and zlib raise for an archive that is damaged or none at all.
    except (OSError, EOFError, RuntimeError, ValueError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is not a model saved by revar ({error})") from None


def _from_version_1(content: dict[str, Any]) -> TabularMDP:
    states = content["initial"].size
    pairs = content["row_start"].size - 1
    transitions = sparse.csr_array(
        (content["probability"], content["successor"], content["row_start"]),
        shape=(pairs, states),
    )
    if "reward_mean" in content:
        mean, std = content["reward_mean"], content["reward_std"]
    else:
        layout = (content["outcome_successor"], content["outcome_row_start"])
        mean, std = (
            sparse.csr_array((content[name], *layout), shape=(pairs, states + 1))
            for name in ("outcome_reward_mean", "outcome_reward_std")
        )
    return TabularMDP(
        transitions,
        mean,
        std,
        content["initial"],
        int(content["horizon"]),
        float(content["discount"]),
        reward_law=str(content["reward_law"]),
    )
