"""Contracts of anything that is a frozen record of its parameters: strategies and estimators."""

import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any

from revar.testing.expectations import contract, expect


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
    """Two of the same parameters are equal, and hash alike."""
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
