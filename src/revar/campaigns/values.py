"""States as JSON values: checked, and in one form, so that equal states are equal bytes."""

from math import isfinite
from typing import Any

import msgspec

from revar.errors import InputError

DEEPEST = 32  # levels of arrays and objects within a state
LARGEST = 16_384  # bytes of a state in its canonical form


def canonical(value: Any, name: str = "state") -> bytes:
    """The value as JSON bytes: keys sorted, 1.0 written as 1, tuples as arrays, no spaces.

    Two states are the same state if and only if these bytes are equal.
    """
    if value is None:
        raise InputError(f"{name} is null, which stands for the end of the episode")
    plain = _plain(value, name, 0)
    try:
        text = msgspec.json.encode(plain, order="sorted")
    except UnicodeEncodeError:
        raise InputError(f"{name} holds text that is not valid unicode") from None
    except ValueError:  # Python writes no whole number of more than some thousand digits
        raise InputError(f"{name} holds a whole number of too many digits") from None
    if len(text) > LARGEST:
        raise InputError(
            f"{name} takes {len(text):,} bytes as JSON; at most {LARGEST:,} are allowed"
        )
    return text


def parsed(text: bytes) -> Any:
    """The value that `canonical` wrote."""
    return msgspec.json.decode(text)


def _plain(value: Any, name: str, depth: int) -> Any:
    """The value in dictionaries, lists, texts and numbers of one form."""
    if depth > DEEPEST:
        raise InputError(f"{name} is nested deeper than {DEEPEST} levels")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise InputError(f"{name} holds the number {value}; JSON has finite numbers only")
        return int(value) if value == int(value) else float(value)
    if isinstance(value, dict):
        wrong = next((key for key in value if not isinstance(key, str)), None)
        if wrong is not None:
            raise InputError(f"{name} has the key {wrong!r}; keys of a JSON object are texts")
        return {key: _plain(item, name, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, name, depth + 1) for item in value]
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _plain(value.tolist(), name, depth)
    raise InputError(f"{name} holds {type(value).__name__}, which JSON cannot represent")
