"""The errors a user meets. Each message is one sentence naming what is wrong and where."""

import copyreg
import importlib
from types import ModuleType
from typing import Any

INTERRUPTED = 130  # the exit code of a program that was stopped by Ctrl-C


class InputError(ValueError):
    """Input that cannot be used: names the field, state, action and the value found."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed: names the pip command that installs it."""


class RefusedError(RuntimeError):
    """What is asked for cannot be done as things stand: says what stands in the way."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied as it is, so that it reaches other processes whatever it was made of."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


def kind_of(thing: Any) -> str:
    """What a thing is, with its article: "an int", "a TabularMDP"."""
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra of the distribution brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this needs {module.partition('.')[0]}: pip install 'revar-rl[{extra}]'"
        ) from error
