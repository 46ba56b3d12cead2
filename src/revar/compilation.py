"""How hot loops are compiled: one place for numba's settings.

`error_model="numpy"` makes 0/0 a NaN instead of an exception, as in the NumPy code that calls
these functions; floating-point semantics stay strict (no fastmath), so that compiled and
interpreted results agree to the bit.

Machine code is kept on disk. numba would keep it until the function's own file changes; here it
is kept until any file of the numerical core changes, because functions of one file are compiled
into those of another.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Without numba's reference counts: taking an array out of a record costs two atomic operations
# with them, which in an inner loop is more than the arithmetic.
_IN_PLACE: dict[str, Any] = {**_OPTIONS, "_nrt": False}


# The folders whose files are compiled, or decide what is.
CORE = ("model", "theory", "strategies", "estimators", "problems", "simulation")


def _stamp_of_sources() -> str:
    """A digest of every source file that results depend on."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    core = (path for name in CORE for path in (folder / name).rglob("*.py"))
    for path in [*sorted(folder.glob("*.py")), *sorted(core)]:
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCE_STAMP = _stamp_of_sources()


def _compile(function: Function, **options: Any) -> Function:
    dispatcher: Any = numba.njit(**options)(function)
    files = dispatcher._cache._cache_file
    files._source_stamp = SOURCE_STAMP
    files._load_index = partial(_load_index, files._load_index)
    compiled_function: Function = dispatcher
    return compiled_function


def _load_index(load: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
    """What the cache holds; nothing where it names what an older version of the code had."""
    try:
        return load()
    except (AttributeError, ImportError, TypeError):
        return {}


def compiled(function: Function) -> Function:
    """Compile on first call, and run without the GIL."""
    return _compile(function, **_OPTIONS)


def compiled_in_place(function: Function) -> Function:
    """Compile a function that creates no arrays, only writes to those it is given."""
    return _compile(function, **_IN_PLACE)


def inlined(function: Function) -> Function:
    """Compile a small function that creates no arrays into each of its callers."""
    return _compile(function, **_IN_PLACE, inline="always")
