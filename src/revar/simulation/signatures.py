"""The types of the compiled loop: fixed, so that rules can be passed to it as pointers."""

from typing import Any, cast

import numba
import numpy as np
from numba import boolean, float64, int64, types

from revar.model.arrays import Layers, Outcomes, RunStatistics
from revar.simulation.kernel import Ledger, Log, play_run
from revar.simulation.world import World
from revar.strategies.rule import Memory, Path, Question, Revise


def _tuple_type(record_class: type, *fields: Any) -> Any:
    kinds: Any = types
    if len(set(fields)) == 1:
        return kinds.NamedUniTuple(fields[0], len(fields), record_class)
    return kinds.NamedTuple(list(fields), record_class)


_INTS, _FLOATS = int64[::1], float64[::1]
_INT_TABLE, _FLOAT_TABLE, _FLOAT_CUBE = int64[:, ::1], float64[:, ::1], float64[:, :, ::1]
_INT_CUBE = int64[:, :, ::1]
_QUESTION = _tuple_type(Question, _FLOAT_TABLE, _FLOATS, int64, float64, int64)
_OUTCOMES = _tuple_type(Outcomes, _INTS, _INTS, _FLOATS)
_MEMORY = _tuple_type(Memory, _FLOAT_CUBE, _FLOATS, _FLOAT_TABLE, _FLOATS, _INT_CUBE)
REVISE_SIGNATURE = types.void(
    _QUESTION,
    _tuple_type(RunStatistics, _OUTCOMES, _INT_TABLE, *[_FLOAT_TABLE] * 4, _INTS, _FLOATS, _INTS),
    _MEMORY,
    _FLOATS,
    _tuple_type(Path, _INTS, _INTS),
    int64,
    int64,
)
RUN_SIGNATURE = boolean(
    _tuple_type(World, _INTS, _INTS, _FLOATS, _FLOATS, _FLOATS, boolean, int64, _INTS, _FLOATS),
    _QUESTION,
    _tuple_type(Layers, _INTS, _INTS),
    _OUTCOMES,
    _MEMORY,
    _FLOATS,
    types.FunctionType(REVISE_SIGNATURE),
    types.FunctionType(REVISE_SIGNATURE),
    _INTS,
    boolean,
    boolean,
    boolean,
    int64,
    int64,
    _INTS,
    _tuple_type(Ledger, _FLOATS, _FLOATS, _FLOATS, _INT_TABLE, _INTS),
    _tuple_type(Log, _INTS, _INTS, _INTS, _FLOATS, _INTS, _FLOATS),
    cast(Any, numba).typeof(np.random.default_rng(0)),
    _INTS,
)


def pointer_to(rule: Revise) -> Any:
    """The rule as a pointer that the loop takes.

    Given the rule itself, numba would compile the loop anew for it, in every process.
    """
    return types.CompileResultWAP(_compiled_for(rule, REVISE_SIGNATURE))


def prepare() -> None:
    """Compile the loop for the one signature that takes rules as pointers."""
    _compiled_for(play_run, RUN_SIGNATURE)


def _compiled_for(function: Any, signature: Any) -> Any:
    dispatcher = cast(Any, function)
    if signature.args not in dispatcher.overloads:
        dispatcher.compile(signature)
    return dispatcher.overloads[signature.args]
