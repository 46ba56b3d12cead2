"""Spaces described as JSON, and read again: never evaluated, never unpickled."""

import json
from operator import itemgetter
from typing import Any

import numpy as np

from revar.environments.stand_ins import known_spaces
from revar.errors import InputError

DTYPES = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
DTYPES |= {"float16", "float32", "float64", "bool"}


def describe_space(space: Any) -> str:
    """The space as JSON."""
    return json.dumps(_describe(space), separators=(",", ":"))


def read_space(text: str) -> Any:
    """The space that was described."""
    try:
        return _read(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise InputError(f"{text!r} describes no space ({error})") from None


def dict_parts(space: Any) -> dict[Any, Any]:
    """The parts of a Dict by their keys, in one order however it was made: that of rows.

    Gymnasium and Minari sort the keys of most Dicts, but not of one that was made of keywords.
    """
    try:
        return dict(sorted(space.spaces.items(), key=itemgetter(0)))
    except TypeError:  # keys that have no order
        return dict(space.spaces)


def _describe(space: Any) -> dict[str, Any]:
    spaces = known_spaces()
    if isinstance(space, spaces.Box):
        return {
            "type": "Box",
            "shape": list(space.shape),
            "dtype": np.dtype(space.dtype).name,
            "low": _numbers(space.low),
            "high": _numbers(space.high),
        }
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {
            "type": "MultiDiscrete",
            "nvec": space.nvec.tolist(),
            "dtype": np.dtype(space.dtype).name,
            "start": space.start.tolist(),
        }
    if isinstance(space, spaces.MultiBinary):
        return {"type": "MultiBinary", "shape": list(space.shape)}
    if isinstance(space, spaces.Tuple):
        return {"type": "Tuple", "spaces": [_describe(part) for part in space.spaces]}
    if isinstance(space, spaces.Dict):
        return {
            "type": "Dict",
            "spaces": [[key, _describe(part)] for key, part in dict_parts(space).items()],
        }
    raise InputError(f"{space} cannot be described")


def _read(known: dict[str, Any]) -> Any:
    spaces = known_spaces()
    kind = known["type"]
    if kind == "Box":
        dtype, shape = _dtype(known["dtype"]), tuple(map(int, known["shape"]))
        low, high = (
            np.broadcast_to(np.array(known[end], dtype=np.float64), shape).astype(dtype)
            if dtype.kind == "f"
            else np.broadcast_to(np.array(known[end], dtype=dtype), shape)
            for end in ("low", "high")
        )
        return spaces.Box(low, high, shape, dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(int(known["n"]), start=int(known["start"]))
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(
            np.array(known["nvec"], dtype=np.int64),
            dtype=_dtype(known["dtype"]).type,
            start=np.array(known["start"], dtype=np.int64),
        )
    if kind == "MultiBinary":
        sizes = [int(size) for size in known["shape"]]
        return spaces.MultiBinary(sizes[0] if len(sizes) == 1 else sizes)
    if kind == "Tuple":
        return spaces.Tuple([_read(part) for part in known["spaces"]])
    if kind == "Dict":
        return spaces.Dict({key: _read(part) for key, part in known["spaces"]})
    raise ValueError(f"there is no {kind!r}")


def _dtype(name: str) -> np.dtype[Any]:
    if name not in DTYPES:
        raise ValueError(f"{name!r} is no type of numbers")
    return np.dtype(name)


def _numbers(values: Any) -> Any:
    """One number where all are the same; infinities as words, which JSON has no numbers for."""
    first = values.flat[0] if values.size else 0
    found = np.asarray(first if np.all(values == first) else values)
    if found.dtype.kind == "f":
        found = np.where(np.isfinite(found), found.astype(object), found.astype(str))
    return found.tolist()
