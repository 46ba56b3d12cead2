"""What can be told of an environment or a policy that is handed in, to know it again."""

import hashlib
import inspect
import random
from collections.abc import Mapping
from enum import Enum
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from revar.policies.stable_baselines import read_tensor

DEPTH = 3  # objects within objects that are looked into
MOST_PARTS = 500
LONGEST = 60  # longer texts are told by a digest
MOST_BYTES = 2**24  # of an array; of a larger one the first
# Wrappers of Gymnasium's own, and arguments, that change nothing in an episode.
CHECKS = ("PassiveEnvChecker", "OrderEnforcing")
INDIFFERENT = ("render_mode", "num_envs", "vectorization_mode")
GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


def describe_environment(env: Any) -> str:
    """The environment, or the first of several: wrappers from the outermost in, and what is inside.

    Each by its class, and by the arguments that it was made with as far as it keeps them: where
    Gymnasium noted them, and else as attributes of the same names.
    """
    env = getattr(env, "envs", [env])[0]
    layers = []
    while getattr(env, "env", None) is not None and getattr(env, "unwrapped", env) is not env:
        if type(env).__name__ not in CHECKS:
            layers.append(_call(type(env).__name__, getattr(env, "_saved_kwargs", None) or {}))
        env = env.env
    made = dict(_kept_arguments(env))
    spec = getattr(env, "spec", None)
    if spec is not None:
        made |= {name: _text(value) for name, value in (spec.kwargs or {}).items()}
    name = _name_of(type(env)) if spec is None else f"{spec.id}: {_name_of(type(env))}"
    return " of ".join([*layers, _call(name, made)])


def environment_parts(env: Any) -> dict[str, str]:
    """Public attributes of the environment inside all wrappers that are plain data."""
    env = getattr(env, "envs", [env])[0]
    values = getattr(getattr(env, "unwrapped", env), "__dict__", {})
    found = {name: _text(value) for name, value in values.items() if not name.startswith("_")}
    return {name: text for name, text in found.items() if text not in (None, "None")}


def plain_parts(thing: Any, depth: int = DEPTH) -> dict[str, str]:
    """What an object is made of, as far as that is plain data: parameters, arrays, code."""
    found: dict[str, str] = {"class": _name_of(type(thing))}
    _collect(thing, "", depth, found)
    return found


def same_parts(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """What did not change."""
    return {name: text for name, text in one.items() if other.get(name) == text}


def find_changes(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What is known of both and differs, in a few words; "" for nothing."""
    changed = [name for name, text in before.items() if now.get(name, text) != text]
    told = ", ".join(f"{name} was {before[name]} and is {now[name]}" for name in changed[:3])
    return f"{told}, ..." if len(changed) > 3 else told


def _collect(thing: Any, path: str, depth: int, found: dict[str, str]) -> None:
    try:
        members = _members(thing)
    except Exception:  # not ours to judge
        members = []
    for name, value in members:
        if isinstance(value, GENERATORS) or len(found) >= MOST_PARTS:
            continue
        place = f"{path}.{name}" if path else name
        text = _text(value)
        if text is not None:
            found[place] = text
        elif depth > 1:
            found[f"{place}.class"] = _name_of(type(value))
            _collect(value, place, depth - 1, found)


def _members(thing: Any) -> list[tuple[str, Any]]:
    """What an object holds, by name."""
    if isinstance(thing, MethodType):
        return [("function", thing.__func__), ("of", thing.__self__)]
    if isinstance(thing, FunctionType):
        code = thing.__code__
        named = zip(code.co_freevars, thing.__closure__ or (), strict=True)
        plain = [each for each in code.co_consts if _text(each) is not None]
        return [
            ("code", code.co_code.hex()),
            ("constants", repr(plain)),
            ("defaults", list(thing.__defaults__ or ())),
            *((name, cell.cell_contents) for name, cell in named),
        ]
    if callable(getattr(thing, "state_dict", None)):
        return list(thing.state_dict().items())
    if isinstance(thing, Mapping):
        return [(str(name), value) for name, value in thing.items()]
    if isinstance(thing, list | tuple):
        return [(str(place), value) for place, value in enumerate(thing)]
    return list(getattr(thing, "__dict__", {}).items())


def _kept_arguments(env: Any) -> list[tuple[str, str | None]]:
    try:
        names = list(inspect.signature(type(env).__init__).parameters)[1:]
    except (TypeError, ValueError):
        return []
    values = getattr(env, "__dict__", {})
    kept = [(name, place) for name in names for place in (name, f"_{name}") if place in values]
    return [(name, _text(values[place])) for name, place in kept]


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    given = [item for item in sorted(arguments.items()) if item[0] not in INDIFFERENT]
    told = ", ".join(f"{key}={_plain(value)}" for key, value in given)
    return f"{name}({told})"


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else _text(value)
    return _name_of(type(value)) if text is None else text


def _text(value: Any) -> str | None:
    """Plain data as a text; None of anything else, whatever it does when it is looked at."""
    try:
        return _read(value)
    except Exception:
        return None


def _read(value: Any) -> str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | Enum):
        return _short(repr(value))
    if isinstance(value, np.ndarray) or hasattr(value, "detach"):
        return _of_array(value)
    if isinstance(value, list | tuple | set | frozenset):
        parts = [_read(each) for each in value]
        ordered = sorted(map(str, parts)) if isinstance(value, set | frozenset) else parts
        return None if None in parts else _short(f"{type(value).__name__}({ordered})")
    if isinstance(value, Mapping):
        named = {str(name): _read(each) for name, each in value.items()}
        return None if None in named.values() else _short(repr(named))
    return None


def _of_array(value: Any) -> str | None:
    array = value if isinstance(value, np.ndarray) else read_tensor(value)
    if array.dtype.hasobject:
        return None
    content = np.ascontiguousarray(array.ravel()[: MOST_BYTES // max(array.itemsize, 1)])
    return f"array {array.shape} {hashlib.sha256(content.tobytes()).hexdigest()[:12]}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else hashlib.sha256(text.encode()).hexdigest()[:12]


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
