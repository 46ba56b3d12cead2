"""How hot loops are compiled: one place for numba's settings.

`compiled` keeps the function's type for mypy. `error_model="numpy"` makes 0/0 a NaN instead of an
exception, as in the NumPy code that calls these functions; floating-point semantics stay strict
(no fastmath), so that compiled and interpreted results agree to the bit.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first call, without the GIL, and keep the machine code on disk."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def compiled_as(signature: Any) -> Callable[[Function], Function]:
    """Compile for one signature, so that the function can be passed to another as a pointer."""

    def compile_now(function: Function) -> Function:
        decorate = numba.njit(signature, cache=True, nogil=True, error_model="numpy")
        return cast(Function, decorate(function))

    return compile_now
