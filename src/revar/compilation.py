"""How hot loops are compiled: one place for numba's settings.

`error_model="numpy"` makes 0/0 a NaN instead of an exception, as in the NumPy code that calls
these functions; floating-point semantics stay strict (no fastmath), so that compiled and
interpreted results agree to the bit. Machine code is kept on disk.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Without numba's reference counts: taking an array out of a record costs two atomic operations
# with them, which in an inner loop is more than the arithmetic.
_IN_PLACE: dict[str, Any] = {**_OPTIONS, "_nrt": False}


def compiled(function: Function) -> Function:
    """Compile on first call, and run without the GIL."""
    compiled_function: Function = numba.njit(**_OPTIONS)(function)
    return compiled_function


def compiled_in_place(function: Function) -> Function:
    """Compile a function that creates no arrays, only writes to those it is given."""
    compiled_function: Function = numba.njit(**_IN_PLACE)(function)
    return compiled_function


def inlined(function: Function) -> Function:
    """Compile a small function that creates no arrays into each of its callers."""
    compiled_function: Function = numba.njit(**_IN_PLACE, inline="always")(function)
    return compiled_function
