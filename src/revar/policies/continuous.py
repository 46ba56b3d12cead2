"""Policies whose actions are functions of normal noise, or of the observation alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revar.environments.spaces import ArrayLayout, Layout, NumberLayout, PartsLayout
from revar.errors import InputError, kind_of
from revar.model.arrays import FloatArray
from revar.model.law import Categorical, Law, Normal
from revar.model.validation import as_floats
from revar.policies.categorical import value_counts
from revar.policies.interface import (
    Draw,
    SampledPolicy,
    ask_all,
    ask_policy,
    read_action,
    split_batch,
    stack,
)


@dataclass(frozen=True, eq=False)
class GaussianPolicy:
    """Normal actions in a Box: mean(observation) + std * noise.

    Parameters
    ----------
    mean
        A function from an observation to an array.
    std
        A number, an array, or a function like `mean`.
    clip
        Whether actions are clipped to the space.
    batched
        Whether functions take observations stacked along a first axis, and answer with as many
        rows: they are then asked once for all episodes that run side by side.
    """

    mean: Any
    std: Any
    clip: bool = True
    batched: bool = False

    def __post_init__(self) -> None:
        if not callable(self.mean):
            raise InputError(
                f"mean is {kind_of(self.mean)}; it must be a function of the observation"
            )
        if not callable(self.std):
            _check_std(as_floats(self.std, "std"), "std")

    def for_spaces(self, observations: Layout, actions: Layout) -> SampledPolicy:
        """The policy in an environment."""
        del observations
        if not isinstance(actions, ArrayLayout):
            raise InputError(f"actions are {actions.space}; a GaussianPolicy needs a Box")
        return _Gaussian(self, actions)


class _Gaussian:
    """A Gaussian policy that knows its actions."""

    def __init__(self, policy: GaussianPolicy, actions: ArrayLayout) -> None:
        self._policy = policy
        self._actions = actions
        self._size = actions.width
        self._std = None if callable(policy.std) else as_floats(policy.std, "std").ravel()
        if self._std is not None and self._std.size not in (1, self._size):
            raise InputError(
                f"std has {self._std.size} numbers; an action of {actions.space} has {self._size}"
            )
        self.law = Law((Normal(self._size),))

    def draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        """An action at each observation."""
        noise = [rng.standard_normal(self._size) for rng in rngs]
        means = self._ask(self._policy.mean, observations, "mean")
        if self._std is None:
            stds = self._ask(self._policy.std, observations, "std")
            for std in stds:
                _check_std(std, "what the std function gives")
        else:
            stds = [self._std] * len(noise)
        clip = self._policy.clip
        return to_actions(
            [mean + std * each for mean, std, each in zip(means, stds, noise, strict=True)],
            noise,
            self._actions,
            clip=clip,
        )

    def _ask(self, function: Any, observations: list[Any], what: str) -> list[FloatArray]:
        if self._policy.batched:
            answers = list(ask_all(function, observations, f"the {what} function"))
        else:
            answers = [ask_policy(function, observation) for observation in observations]
        found = []
        for answer, observation in zip(answers, observations, strict=True):
            row = read_numbers(answer, f"the {what} function", observation)
            if row.size not in ((1, self._size) if what == "std" else (self._size,)):
                raise InputError(
                    f"the {what} function gives {row.size} numbers at observation "
                    f"{observation!r}; an action of {self._actions.space} has {self._size}"
                )
            found.append(row)
        return found


@dataclass(frozen=True, eq=False)
class DeterministicPolicy:
    """The action that a function gives at an observation.

    Parameters
    ----------
    function
        From an observation to an action.
    clip
        Whether actions in a Box are clipped to the space.
    batched
        Whether the function takes observations stacked along a first axis, as for
        `GaussianPolicy`, and gives as many actions.
    """

    function: Any
    clip: bool = True
    batched: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(
                f"a DeterministicPolicy is made of {kind_of(self.function)}; it must be a "
                f"function from an observation to an action"
            )

    def for_spaces(self, observations: Layout, actions: Layout) -> SampledPolicy:
        """The policy in an environment."""
        del observations
        return Deterministic(self, actions)


class Deterministic:
    """A policy without noise that knows its actions."""

    law = Law()

    def __init__(self, policy: DeterministicPolicy, actions: Layout) -> None:
        self._policy = policy
        self._actions = actions

    def draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        """The action at each observation."""
        function = self._policy.function
        answers = (
            split_batch(ask_policy(function, stack(observations)), self._actions, len(rngs))
            if self._policy.batched
            else [ask_policy(function, each) for each in observations]
        )
        empty: list[list[float]] = [[]] * len(answers)
        if isinstance(self._actions, ArrayLayout):
            rows = [
                read_numbers(answer, "the policy", each)
                for answer, each in zip(answers, observations, strict=True)
            ]
            return to_actions(rows, empty, self._actions, clip=self._policy.clip)
        if isinstance(self._actions, NumberLayout):
            answers = [_plain(answer) for answer in answers]
        rows = [
            read_action(answer, self._actions, each)
            for answer, each in zip(answers, observations, strict=True)
        ]
        return Draw([self._actions.value(row) for row in rows], rows, empty)


class UniformPolicy:
    """Every action equally often; a Box is filled through the normal distribution function."""

    def __init__(self, actions: Layout) -> None:
        self._actions = actions
        self._leaves = list(_leaves(actions))
        parts: list[Categorical | Normal] = []
        for leaf in self._leaves:
            if isinstance(leaf, ArrayLayout):
                if not np.all(np.isfinite(leaf.space.low) & np.isfinite(leaf.space.high)):
                    raise InputError(
                        f"actions are {leaf.space}, which is not bounded; no policy is uniform in "
                        f"it"
                    )
                parts.append(Normal(leaf.width))
            else:
                parts.extend(Categorical(count) for count in leaf)
        self.law = Law(tuple(parts))

    def draw(self, observations: list[Any], rngs: list[np.random.Generator]) -> Draw:
        """An action for each observation, whatever it is."""
        del observations
        rows, noise = [], []
        for rng in rngs:
            row: list[float] = []
            drawn: list[float] = []
            for leaf in self._leaves:
                if isinstance(leaf, ArrayLayout):
                    each = rng.standard_normal(leaf.width)
                    row.extend(_fill(leaf, each).tolist())
                    drawn.extend(each.tolist())
                else:
                    for count in leaf:
                        row.append(int(rng.integers(count)))
                        drawn.extend([1.0 / count] * count)
            rows.append(row)
            noise.append(drawn)
        return Draw([self._actions.value(np.array(row)) for row in rows], rows, noise)


def _leaves(actions: Layout) -> Any:
    """Boxes, and how many values each number of the other parts has."""
    if isinstance(actions, PartsLayout):
        for part in actions.parts:
            yield from _leaves(part)
    elif isinstance(actions, ArrayLayout):
        yield actions
    else:
        yield value_counts(actions)


def _fill(box: ArrayLayout, noise: FloatArray) -> FloatArray:
    from scipy.special import ndtr  # noqa: PLC0415 - slow to import

    low = np.ravel(box.space.low).astype(np.float64)
    high = np.ravel(box.space.high).astype(np.float64)
    if box.dtype.kind == "f":
        return np.asarray(low + (high - low) * ndtr(noise))
    return np.asarray(np.minimum(low + np.floor((high - low + 1.0) * ndtr(noise)), high))


def to_actions(
    rows: list[FloatArray], noise: list[Any], actions: ArrayLayout, *, clip: bool
) -> Draw:
    """Rows as actions of a Box, clipped to it where that is wanted."""
    for row in rows:
        if row.size != actions.width:
            raise InputError(
                f"the policy gives {row.size} numbers; an action of {actions.space} has "
                f"{actions.width}"
            )
    if clip:
        rows = [np.minimum(np.maximum(row, actions.low), actions.high) for row in rows]
    taken = [row.astype(actions.dtype).reshape(actions.shape) for row in rows]
    return Draw(taken, rows, noise)


def read_numbers(answer: Any, who: str, observation: Any) -> FloatArray:
    """What was answered at an observation, as finite numbers."""
    try:
        row = np.asarray(answer, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise InputError(
            f"{who} gives {answer!r} at observation {observation!r}, which are no numbers"
        ) from None
    if not np.isfinite(row).all():
        raise InputError(f"{who} gives {answer!r} at observation {observation!r}")
    return row


def _check_std(std: FloatArray, name: str) -> FloatArray:
    bad = ~((std >= 0.0) & np.isfinite(std))
    if bad.any():
        raise InputError(f"{name} is {std[bad].flat[0]}; it must be finite and not negative")
    return std


def _plain(answer: Any) -> Any:
    """A number that came as an array of one."""
    single = isinstance(answer, np.ndarray) and answer.size == 1
    return answer.item() if single else answer
