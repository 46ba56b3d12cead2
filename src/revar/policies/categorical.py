"""Policies that give probabilities: read, checked, and drawn from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.environments.observations import StateEncoding
from revar.environments.spaces import Layout, NumberLayout, NumbersLayout, PartsLayout
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.law import Categorical, Law
from revar.model.validation import SUM_TOLERANCE
from revar.policies.interface import Draw, ask_policy, is_batched, split, split_batch, stack

LEAST_SUM, LARGEST_SUM = 1.0 - SUM_TOLERANCE, 1.0 + SUM_TOLERANCE


class ProbabilityPolicy:
    """A function from an observation to probabilities of actions.

    For Discrete actions it gives a row; for MultiDiscrete ones a list of rows; for MultiBinary
    ones the probability of each 1; for a Tuple or Dict of these a tuple or a dictionary. One with
    an attribute `batched` that is True takes observations stacked along a first axis, and gives
    these with as many rows: it is asked once for all episodes that run side by side.
    """

    def __init__(self, function: Any, actions: Layout) -> None:
        self._function = function
        self._actions = actions
        self._counts = value_counts(actions)
        self._single = actions if isinstance(actions, NumberLayout) else None
        self.law = Law(tuple(Categorical(count) for count in self._counts))

    def draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        """An action at each observation."""
        single, taken, rows, noise = self._single, [], [], []
        answers = self._ask(observations)
        for answer, observation, rng in zip(answers, observations, rngs, strict=True):
            if single is not None:
                chances = read_row(answer, single.count, observation)
                number = draw_from(chances, rng)
                taken.append(number + single.start)
                rows.append([number])
                noise.append(chances)
            else:
                every = _rows(answer, self._actions, observation)
                rows.append([draw_from(part, rng) for part in every])
                taken.append(self._actions.value(rows[-1]))
                noise.append([chance for part in every for chance in part])
        return Draw(taken, rows, noise)

    def _ask(self, observations: list[Any]) -> list[Any]:
        if not is_batched(self._function):
            return [ask_policy(self._function, observation) for observation in observations]
        answer = ask_policy(self._function, stack(observations))
        return split_batch(answer, self._actions, len(observations), parts=True)


def draw_from(chances: list[float], rng: np.random.Generator) -> int:
    """The number of an action, drawn with these probabilities."""
    left = rng.random()
    for number, chance in enumerate(chances):
        left -= chance
        if left < 0.0:
            return number
    return max(number for number, chance in enumerate(chances) if chance > 0.0)  # rounding


def read_row(answer: Any, count: int, observation: Any) -> list[float]:
    """Probabilities as a policy gave them, which now sum to 1 as nearly as they can."""
    row = _as_list(answer, observation)
    if len(row) != count:
        raise InputError(
            f"the policy gives {len(row)} probabilities at observation {observation!r}; there are "
            f"{count} actions"
        )
    total = sum(row)
    if not (LEAST_SUM <= total <= LARGEST_SUM and min(row) >= 0.0):
        bad = [chance for chance in row if not chance >= 0.0]
        if bad:
            raise InputError(
                f"the policy gives the probability {bad[0]} at observation {observation!r}"
            )
        raise InputError(
            f"the policy gives probabilities that sum to {total:.9g} at observation "
            f"{observation!r}; they must sum to 1"
        )
    return row if total == 1.0 else [chance / total for chance in row]


def _as_list(answer: Any, observation: Any) -> list[float]:
    try:
        if answer.__class__ in (list, tuple):
            return list(map(float, answer))
        row = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise _no_row(answer, observation) from None
    if row.ndim != 1:
        raise _no_row(answer, observation)
    found: list[float] = row.tolist()
    return found


def _no_row(answer: Any, observation: Any) -> InputError:
    return InputError(
        f"the policy gives {answer!r} at observation {observation!r}, which is no row of "
        f"probabilities"
    )


def value_counts(actions: Layout) -> list[int]:
    """How many values each number of an action has."""
    if isinstance(actions, NumberLayout):
        return [actions.count]
    if isinstance(actions, NumbersLayout):
        return list(map(int, actions.counts))
    if isinstance(actions, PartsLayout):
        return [count for part in actions.parts for count in value_counts(part)]
    raise InputError(
        f"actions are {actions.space}, which have no probabilities; give a GaussianPolicy, a "
        f"DeterministicPolicy, or an object with sample(observation, rng)"
    )


def _rows(answer: Any, actions: Layout, observation: Any) -> list[list[float]]:
    """The probabilities of every number of an action."""
    if isinstance(actions, NumberLayout):
        return [read_row(answer, actions.count, observation)]
    if isinstance(actions, NumbersLayout) and actions.binary:
        chances = _as_list(answer, observation)
        if len(chances) != actions.width or not all(0.0 <= chance <= 1.0 for chance in chances):
            raise InputError(
                f"the policy gives {answer!r} at observation {observation!r}; for {actions.space} "
                f"it must be {actions.width} probabilities"
            )
        return [[1.0 - chance, chance] for chance in chances]
    if isinstance(actions, PartsLayout):
        answers = split(answer, actions.keys, actions, f" at observation {observation!r}")
        return [
            row
            for each, part in zip(answers, actions.parts, strict=True)
            for row in _rows(each, part, observation)
        ]
    answers = split(answer, range(actions.width), actions, f" at observation {observation!r}")
    counts = value_counts(actions)
    return [read_row(each, count, observation) for each, count in zip(answers, counts, strict=True)]


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """Probabilities by the place of an observation in an array."""

    table: FloatArray  # [*observations, A]
    encoding: StateEncoding

    def __call__(self, observation: Any) -> FloatArray:
        """The row of the observation."""
        place = self.encoding.place(self.encoding.key(observation))
        return np.asarray(self.table[place])
