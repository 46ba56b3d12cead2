"""What every step costs, and what it adds to limited sums: from its state, action and `info`."""

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from revar.environments.observations import StateEncoding
from revar.environments.opening import first_line
from revar.errors import InputError
from revar.model.amounts import COST, STEPS, check_amount
from revar.model.arrays import FloatArray
from revar.model.budget import Budget
from revar.model.episodes import Episodes
from revar.model.limits import Limits
from revar.model.trajectory import Dataset
from revar.model.validation import as_floats


@dataclass(frozen=True)
class _Known:
    """An amount that follows from state and action: found once, and remembered."""

    name: str
    find: Callable[[Any, int], Any]
    largest: float | None = None  # where that is known
    found: dict[tuple[Hashable, int], float] = field(default_factory=dict)

    def __call__(self, state: Any, action: int, info: Any = None) -> float:
        amount = self.found.get((state, action))
        if amount is None:
            del info
            amount = check_amount(self.find(state, action), self.name, _place(state, action))
            self.found[state, action] = amount
        return amount


@dataclass(frozen=True)
class Reported:
    """An amount that the environment's `info` reports after every step."""

    name: str
    key: str

    def __call__(self, state: Any, action: Any, info: Any = None) -> float:
        """The amount of a step."""
        if not isinstance(info, Mapping) or self.key not in info:
            raise InputError(
                f"the environment's info has no {self.key!r} after {_place(state, action)}, and "
                f"the {self.name} of every step is to be read there"
            )
        return check_amount(info[self.key], self.name, _place(state, action))


class StepAmounts:
    """What a collection asks of every step, in the order of its names; often nothing."""

    def __init__(
        self,
        budget: Budget,
        cost: Any,
        limits: Limits,
        observations: StateEncoding,
        actions: int,
    ) -> None:
        given = {COST: cost} if budget.unit == "cost" else {}
        given |= {limit.name: limit.amounts for limit in limits.sums}
        self._sources = {
            name: _source(name, amounts, observations, actions) for name, amounts in given.items()
        }
        self._all = tuple(self._sources.values())
        self._keys = tuple(each.key for each in self._all if isinstance(each, Reported))

    @property
    def names(self) -> tuple[str, ...]:
        """What is asked of every step."""
        return tuple(self._sources)

    @property
    def dearest_step(self) -> float | None:
        """What a step costs at most, where that is known."""
        source = self._sources.get(COST)
        return source.largest if isinstance(source, _Known) else None

    def of(self, state: Any, action: int, info: Any) -> tuple[float, ...]:
        """The amounts of a step that was just taken."""
        return tuple([source(state, action, info) for source in self._all])

    def of_one(self, state: Any, action: int, infos: Any, place: int) -> tuple[float, ...]:
        """The same in one of several environments side by side, from the `infos` of all."""
        return self.of(state, action, part_of_infos(infos, self._keys, place))

    def add_known(self, dataset: Dataset) -> Dataset:
        """Stored episodes with the amounts that follow from states and actions alone."""
        lacking = [name for name in self._sources if name not in dataset.amounts]
        return replace(dataset, amounts={**dataset.amounts, **self._recompute(dataset, lacking)})

    def check_stored(self, dataset: Dataset) -> None:
        """Refuse stored episodes whose amounts are others, or are missing."""
        for name in self._sources:
            if name not in dataset.amounts:
                raise InputError(f"the file does not have the {name} of its steps")
        for name, amounts in self._recompute(dataset, list(self._sources)).items():
            other = dataset.amounts[name] != amounts
            if other.any():
                step = int(np.argmax(other))
                state = dataset.label_of(int(dataset.states[step]))
                raise InputError(
                    f"in the file the {name} of {_place(state, int(dataset.actions[step]))} is "
                    f"{dataset.amounts[name][step]:g}; now it is {amounts[step]:g}"
                )

    def tables(self, keys: list[Any], actions: int) -> dict[str, FloatArray]:
        """Amounts that follow from states and actions alone, over these states, [S, A] each."""
        return {
            name: np.array([[source(key, action) for action in range(actions)] for key in keys])
            for name, source in self._sources.items()
            if isinstance(source, _Known)
        }

    def _recompute(self, dataset: Dataset, names: list[str]) -> dict[str, FloatArray]:
        known = {name: self._sources[name] for name in names}
        known = {name: each for name, each in known.items() if isinstance(each, _Known)}
        if not known:
            return {}
        steps = np.stack([dataset.states, dataset.actions], axis=1)
        pairs, place = np.unique(steps, axis=0, return_inverse=True)
        named = [(dataset.label_of(state), action) for state, action in pairs.tolist()]
        return {
            name: np.array([source(*pair) for pair in named])[np.ravel(place)]
            for name, source in known.items()
        }


def _source(
    name: str, amounts: Any, observations: StateEncoding, actions: int
) -> _Known | Reported:
    if isinstance(amounts, str):
        return _Known(name, _one, 1.0) if amounts == STEPS else Reported(name, amounts)
    what = name if name == COST else f"amounts of {name}"
    if callable(amounts):

        def ask(state: Any, action: int) -> Any:
            return ask_amount(amounts, what, observations.observation(state), action)

        return _Known(name, ask)
    table = as_floats(amounts, what)
    wanted = (*observations.shape, actions)
    if table.shape != wanted:
        raise InputError(
            f"{what} has shape {table.shape}; for these observations and actions it is {wanted}"
        )
    bad = ~np.isfinite(table) | ((table < 0.0) if name == COST else False)
    for place in np.argwhere(bad)[:1]:
        *where, action = place.tolist()
        state = observations.key_at(tuple(where))
        check_amount(table[tuple(place)], name, _place(state, action))
    if name == COST and not table.any():
        raise InputError("cost is 0 everywhere, so that a budget would never be spent")
    largest = float(table.max())
    return _Known(name, lambda state, action: table[observations.place(state)][action], largest)


def ask_amount(function: Callable[[Any, Any], Any], what: str, seen: Any, action: Any) -> Any:
    """What a user's function gives at an observation and an action."""
    try:
        return function(seen, action)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the function that gives {what} raised {type(error).__name__} at observation "
            f"{seen!r} and action {action}: {first_line(error)}"
        ) from error


def part_of_infos(infos: Any, keys: tuple[str, ...], place: int) -> dict[str, Any]:
    """What one of several environments reports: a mask says whose entries of arrays are meant."""
    found = {}
    for key in keys:
        if key in infos and (f"_{key}" not in infos or infos[f"_{key}"][place]):
            found[key] = infos[key][place]
    return found


def _one(state: Any, action: int) -> float:
    del state, action
    return 1.0


def spent_on(dataset: Dataset | Episodes, budget: Budget) -> float:
    """What the episodes have taken from the budget, in its unit."""
    if budget.unit == "cost":
        return float(dataset.amounts[COST].sum())
    return float(len(dataset) if budget.by_episode else dataset.rewards.size)


def describe(amounts: Any) -> str:
    """Amounts as a file has them; what a function gives stands beside its steps."""
    if isinstance(amounts, str):
        return repr(amounts)
    if callable(amounts):
        return "a function"
    table = np.ascontiguousarray(as_floats(amounts, "amounts"))
    return f"an array {table.shape} of digest {hashlib.sha256(table.tobytes()).hexdigest()[:16]}"


def _place(state: Any, action: Any) -> str:
    return f"action {action} in state {state!r}"
