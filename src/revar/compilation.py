"""How hot loops are compiled: one place for numba's settings.

`error_model="numpy"` makes 0/0 a NaN instead of an exception, as in the NumPy code that calls
these functions; floating-point semantics stay strict (no fastmath), so that compiled and
interpreted results agree to the bit.

Machine code is kept on disk. numba would keep it until the function's own file changes; here it
is kept until any file of the numerical core changes, because functions of one file are compiled
into those of another. And numba numbers the files of a function's signatures: processes that
compile it at the same time may give two of them the same file, so that one is taken for the other.
Here files are named after what they hold.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba.core import caching, event
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Without numba's reference counts: taking an array out of a record costs two atomic operations
# with them, which in an inner loop is more than the arithmetic.
_IN_PLACE: dict[str, Any] = {**_OPTIONS, "_nrt": False}


# The folders that numbers depend on: their files are compiled, or decide what is.
CORE = ("model", "theory", "strategies", "estimators", "problems", "collection", "simulation")


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


class KeptCode:
    """The machine code of a function on disk, a file for each signature."""

    def __init__(self, folder: str, name: str, stamp: str) -> None:
        self._folder = Path(folder)
        self._name = name
        # What an older revar has kept may name modules that are gone: it must not be read.
        self._stamp = hashlib.sha256(f"{numba.__version__} {stamp}".encode()).hexdigest()[:16]
        files: Any = caching.IndexDataCacheFile
        self._files = files(folder, name, stamp)

    def load(self, key: tuple[Any, ...]) -> Any:
        """What was kept for a signature and a machine, if anything was."""
        with suppress(FileNotFoundError):
            return self._files._load_data(self._name_of(key))
        return None

    def save(self, key: tuple[Any, ...], data: Any) -> None:
        """Keep it, and remove what is out of date."""
        self._files._save_data(self._name_of(key), data)
        function, _, _ = self._name.rpartition("-")  # whichever line it was on
        for path in self._folder.glob(f"{function}-*"):
            if path.suffix in (".nbc", ".nbi") and f".{self._stamp}." not in path.name:
                with suppress(OSError):
                    path.unlink()

    def _name_of(self, key: tuple[Any, ...]) -> str:
        signature, *others = key
        held = hashlib.sha256(repr((str(signature), others)).encode()).hexdigest()[:32]
        return f"{self._name}.{self._stamp}.{held}.nbc"


def _compile(function: Function, **options: Any) -> Function:
    plain = plain_function(function)
    dispatcher: Any = numba.njit(**options)(plain)
    cache = dispatcher._cache
    stamp = getattr(plain, "source_stamp", SOURCE_STAMP)
    cache._cache_file = KeptCode(cache.cache_path, cache._impl.filename_base, stamp)
    compiled_function: Function = dispatcher
    return compiled_function


def compiled(function: Function) -> Function:
    """Compile on first call, and run without the GIL."""
    return _compile(function, **_OPTIONS)


def compiled_in_place(function: Function) -> Function:
    """Compile a function that creates no arrays, only writes to those it is given."""
    return _compile(function, **_IN_PLACE)


def inlined(function: Function) -> Function:
    """Compile a small function that creates no arrays into each of its callers."""
    return _compile(function, **_IN_PLACE, inline="always")


def like_caller(function: Function) -> Function:
    """Leave the function to Python where Python calls it; compiled code compiles it with itself.

    For functions that do little but call compiled ones. To compile them by themselves would
    compile all that they call anew at every level, which takes most of the time that a first plan
    or estimate waits. Both ways must give the same to the bit: sums of floats belong into compiled
    functions, because NumPy adds in another order, and so do powers and divisions by what may be
    zero.
    """
    registered: Function = register_jitable(error_model=_OPTIONS["error_model"])(function)
    return registered


def plain_function(function: Function) -> Function:
    """The Python function behind a compiled one."""
    return cast(Function, getattr(function, "py_func", function))


def with_functions(template: Function, **functions: Callable[..., Any]) -> Function:
    """A copy of `template`, not yet compiled, that calls these functions by those global names.

    numba keeps no machine code on disk of functions that take functions, as arguments or in a
    closure. Of such a copy it does: its name tells which functions it calls, and it is compiled
    anew when one of their files changes.
    """
    original: Any = plain_function(template)
    stamp = hashlib.sha256(SOURCE_STAMP.encode())
    names = [original.__name__]
    for function in functions.values():
        called: Any = plain_function(function)
        stamp.update(Path(called.__code__.co_filename).read_bytes())
        names.append(f"{called.__module__}.{called.__qualname__}".replace(".", "_"))
    copy: Any = FunctionType(original.__code__, {**original.__globals__, **functions})
    copy.__name__ = copy.__qualname__ = "_with_".join(names)
    copy.source_stamp = stamp.hexdigest()
    return cast(Function, copy)


class _Watcher(event.Listener):
    """Tells when the outermost of nested compilations begins and ends."""

    def __init__(self, tell: Callable[[bool], None]) -> None:
        self._tell = tell
        self._depth = 0
        self._counting = threading.Lock()

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        """Count one more."""
        self._count(1)

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        """Count one less."""
        self._count(-1)

    def _count(self, change: int) -> None:
        with self._counting:
            before, self._depth = self._depth, self._depth + change
            if (before > 0) != (self._depth > 0):
                self._tell(self._depth > 0)


@contextmanager
def watch_compiling(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call `tell` with True when something is compiled in this process, and then with False.

    What is read from disk is not compiled.
    """
    with event.install_listener("numba:compile", _Watcher(tell)):
        yield
