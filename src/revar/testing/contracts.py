"""What contracts are made of, and those that strategies and estimators share.

A broken contract raises one AssertionError, also where Python runs with -O.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from revar.errors import InputError
from revar.simulation.result import SimulationResult

# Fields of a result with a row for each run, and fields of a dataset.
PER_RUN = (
    *("estimates", "standard_errors", "unvisited_probability"),
    *("visits", "values", "covariances"),
)
STEPS = ("start", "states", "actions", "rewards", "successors", "propensities")


def expect(condition: object, message: str) -> None:
    """Raise an AssertionError with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


Check = TypeVar("Check", bound=Callable[[Any], None])


def contract(check: Check) -> Check:
    """Decorate a check: an InputError of the library breaks the contract, too."""

    @wraps(check)
    def checked(factory: Any) -> None:
        try:
            check(factory)
        except InputError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error

    return cast(Check, checked)


@contextmanager
def expect_refusal(message: str) -> Iterator[None]:
    """The body must raise an InputError of one sentence; the message says what failed to."""
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


@contract
def check_is_a_frozen_dataclass(factory: Callable[[], Any]) -> None:
    """Parameters cannot be changed, and nothing else can be stored on it."""
    item = factory()
    expect(is_dataclass(item), f"{item!r} is not a dataclass")
    for name in (*(field.name for field in fields(item)), "anything_else"):
        try:
            setattr(item, name, None)
        except (FrozenInstanceError, AttributeError, TypeError):
            continue
        raise AssertionError(f"{item!r} is not frozen: its {name} can be set")


@contract
def check_has_an_id(factory: Callable[[], Any]) -> None:
    """Its class carries the id under which it is found and reported."""
    found = getattr(type(factory()), "id", None)
    expect(isinstance(found, str) and found, f"{factory()!r} has id {found!r}, not a word")


@contract
def check_equal_parameters_make_equals(factory: Callable[[], Any]) -> None:
    """Two with the same parameters are equal, and have the same hash."""
    first, second = factory(), factory()
    expect(first == second, f"{first!r} is not equal to another of the same parameters")
    expect(hash(first) == hash(second), f"{first!r} is hashed by identity")


@contract
def check_repr_round_trip(factory: Callable[[], Any]) -> None:
    """Its repr, evaluated where its class is defined, gives an equal one."""
    item = factory()
    kind = type(item)
    known = {**vars(sys.modules[kind.__module__]), kind.__name__: kind}
    try:
        again = eval(repr(item), known)
    except Exception as error:
        raise AssertionError(f"{item!r} is not an expression that makes it: {error}") from error
    expect(again == item, f"{item!r} evaluates to {again!r}, which is not equal to it")


PARAMETER_CHECKS: tuple[Callable[[Callable[[], Any]], None], ...] = (
    check_is_a_frozen_dataclass,
    check_has_an_id,
    check_equal_parameters_make_equals,
    check_repr_round_trip,
)
