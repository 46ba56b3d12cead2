"""How a contract says that it is broken: one AssertionError, also where Python runs with -O."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from revar.errors import InputError
from revar.simulation.result import SimulationResult


def expect(condition: object, message: str) -> None:
    """Raise an AssertionError with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


Check = TypeVar("Check", bound=Callable[[Any], None])


def contract(check: Check) -> Check:
    """What the library itself refuses during a check breaks the contract too."""

    @wraps(check)
    def checked(factory: Any) -> None:
        try:
            check(factory)
        except InputError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error

    return cast(Check, checked)


@contextmanager
def expect_refusal(message: str) -> Iterator[None]:
    """The body must raise an InputError of one sentence; the message says what did not."""
    try:
        yield
    except InputError as error:
        expect(str(error) and "\n" not in str(error), f"{message}: it says {str(error)!r}")
        return
    except Exception as error:
        raise AssertionError(
            f"{message}: it raises {type(error).__name__} instead of InputError"
        ) from error
    raise AssertionError(f"{message}: it raises nothing")


def identical(first: ArrayLike, second: ArrayLike) -> bool:
    """The same shape and the same bits, NaN included."""
    return np.array_equal(np.asarray(first), np.asarray(second), equal_nan=True)


def expect_same_results(first: SimulationResult, second: SimulationResult, message: str) -> None:
    """Every number and every kept step of the two results must be identical."""
    for name in ("true_value", "checkpoints", *PER_RUN):
        expect(identical(getattr(first, name), getattr(second, name)), f"{message}: {name} differs")
    expect(len(first.datasets) == len(second.datasets), f"{message}: datasets differ in number")
    for run, (one, other) in enumerate(zip(first.datasets, second.datasets, strict=True)):
        for name in STEPS:
            expect(
                identical(getattr(one, name), getattr(other, name)),
                f"{message}: {name} of run {run} differ",
            )


# The fields of a result with one row a run, and the fields of a dataset.
PER_RUN = ("estimates", "standard_errors", "unvisited_probability", "visits")
STEPS = ("start", "states", "actions", "rewards", "successors", "propensities")
