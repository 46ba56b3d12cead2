"""Collected episodes: one (Trajectory), and many (Dataset)."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isnan, nan
from numbers import Integral
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray, IntArray
from revar.model.records import HasColumns
from revar.model.validation import LARGEST_REWARD, as_floats, check_reward

# The successor of a step after which the episode ended by itself.
ENDED = -1


def none_for_nan(propensity: float) -> float | None:
    """A propensity as JSON has it, where an unknown one is null."""
    return None if isnan(propensity) else propensity


def nan_for_none(propensity: float | None) -> float:
    """A propensity as trajectories have it, where an unknown one is NaN."""
    return nan if propensity is None else propensity


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """One episode of n steps.

    `successors[i]` is the state after step i, or ENDED; a last successor other than ENDED means
    that the episode was cut by its horizon. `propensities[i]` is the probability with which the
    behavior chose that action, NaN where the choice was deterministic given the data so far.
    """

    states: IntArray  # [n]
    actions: IntArray  # [n]
    rewards: FloatArray  # [n]
    successors: IntArray  # [n]
    propensities: FloatArray  # [n]
    amounts: Mapping[str, FloatArray] = field(default_factory=dict)  # [n] each, what steps cost

    @classmethod
    def of(
        cls,
        states: Any,
        actions: Any,
        rewards: Any,
        *,
        last_successor: int = ENDED,
        propensities: Any = None,
    ) -> "Trajectory":
        """An episode from its states, actions and rewards; by default it ended by itself.

        Parameters
        ----------
        states, actions, rewards
            One of each for every step.
        last_successor
            The state after the last step, if the episode was cut off there.
        propensities
            The probability with which each action was drawn.
        """
        visited = _whole(states, "states")
        count = visited.size
        chances = np.full(count, np.nan) if propensities is None else propensities
        return cls(
            visited,
            _whole(actions, "actions"),
            as_floats(rewards, "rewards"),
            np.append(visited[1:], last_successor).astype(np.int64)[:count],
            as_floats(chances, "propensities"),
        )

    def __post_init__(self) -> None:
        _check_steps(self.states, self.actions, self.rewards, self.successors, self.propensities)
        if len(self) == 0:
            raise InputError("a trajectory needs at least one step")
        _check_amounts(self.amounts, len(self))
        _check_joints(self.states, self.successors, np.array([0, len(self)]))

    def __len__(self) -> int:
        return int(self.states.size)

    def __repr__(self) -> str:
        return f"Trajectory(steps={len(self)}, terminated={self.terminated})"

    @property
    def terminated(self) -> bool:
        """Whether the episode ended by itself rather than at its horizon."""
        return int(self.successors[-1]) == ENDED


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(HasColumns):
    """Episodes laid end to end: episode k holds the steps start[k] to start[k+1].

    `labels[i]` says what state i is, where states were numbered in the order they appeared in.
    `action_count` and `first_label` say, where it is known, how many actions there were to choose
    from, and the least value of each part of a label: neither can be told from the steps.
    `amounts` has what steps cost, or added to sums that are limited, by name.
    """

    start: IntArray  # [episodes + 1]
    states: IntArray  # [step]
    actions: IntArray  # [step]
    rewards: FloatArray  # [step]
    successors: IntArray  # [step]
    propensities: FloatArray  # [step]
    labels: tuple[Hashable, ...] | None = None  # [state]
    action_count: int | None = None
    first_label: tuple[int, ...] | None = None  # [part of a label]
    amounts: Mapping[str, FloatArray] = field(default_factory=dict)  # [step] each

    def __post_init__(self) -> None:
        _check_steps(self.states, self.actions, self.rewards, self.successors, self.propensities)
        _check_amounts(self.amounts, self.states.size)
        if self.start[0] != 0 or self.start[-1] != self.states.size:
            raise InputError("start of a dataset must run from 0 to the number of steps")
        empty = np.diff(self.start) < 1
        if empty.any():
            raise InputError(f"episode {int(np.argmax(empty))} of the dataset has no steps")
        if self.labels is not None and self.states_seen > len(self.labels):
            raise InputError(
                f"the dataset has {self.states_seen} states, but labels for {len(self.labels)}"
            )
        if self.action_count is not None and self.actions.max(initial=-1) >= self.action_count:
            raise InputError(
                f"the dataset has action {self.actions.max()} of {self.action_count} actions"
            )
        _check_joints(self.states, self.successors, self.start)

    @classmethod
    def of(
        cls, trajectories: Iterable[Trajectory], labels: tuple[Hashable, ...] | None = None
    ) -> "Dataset":
        """The episodes in the order given.

        Parameters
        ----------
        trajectories
            The episodes.
        labels
            What state i is, if it is more than a number.
        """
        episodes = list(trajectories)
        lengths = np.array([len(episode) for episode in episodes], dtype=np.int64)
        start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])

        def join(field: str, dtype: type) -> Any:
            parts = [getattr(episode, field) for episode in episodes]
            return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)

        return cls(
            start,
            join("states", np.int64),
            join("actions", np.int64),
            join("rewards", np.float64),
            join("successors", np.int64),
            join("propensities", np.float64),
            labels,
            amounts={
                name: np.concatenate([episode.amounts[name] for episode in episodes])
                for name in (episodes[0].amounts if episodes else ())
                if all(name in episode.amounts for episode in episodes)
            },
        )

    def __len__(self) -> int:
        return int(self.start.size - 1)

    def __repr__(self) -> str:
        return f"Dataset(episodes={len(self)}, steps={self.states.size}, states={self.states_seen})"

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, episode: int) -> Trajectory:
        if not 0 <= episode < len(self):
            raise IndexError(f"episode {episode} of a dataset of {len(self)}")
        steps = slice(self.start[episode], self.start[episode + 1])
        return Trajectory(**self._fields(steps))

    def head(self, episodes: int) -> "Dataset":
        """The first `episodes` episodes.

        Parameters
        ----------
        episodes
            How many.
        """
        return self.part(0, episodes)

    def part(self, first: int, end: int) -> "Dataset":
        """The episodes from number `first` up to, without it, number `end`.

        Parameters
        ----------
        first, end
            Numbers of episodes, from 0.
        """
        start = self.start[first : end + 1]
        return Dataset(
            start - start[0],
            **self._fields(slice(start[0], start[-1])),
            labels=self.labels,
            action_count=self.action_count,
            first_label=self.first_label,
        )

    def renumbered(self, numbers: IntArray) -> "Dataset":
        """The episodes with state i as `numbers[i]`, without labels.

        Parameters
        ----------
        numbers
            The new number of every state.
        """
        following = np.append(numbers, ENDED)[self.successors]  # -1 picks the last: ENDED
        return replace(self, states=numbers[self.states], successors=following, labels=None)

    @property
    def states_seen(self) -> int:
        """One more than the largest number of a state in the data."""
        return 1 + int(max(self.states.max(initial=-1), self.successors.max(initial=-1)))

    def label_of(self, state: int) -> Hashable:
        """What a state is: its label, or its number where there are no labels.

        Parameters
        ----------
        state
            Its number.
        """
        return state if self.labels is None else self.labels[state]

    @property
    def step_in_episode(self) -> IntArray:
        """For each step its number within its episode, from 0."""
        return np.arange(self.states.size) - np.repeat(self.start[:-1], np.diff(self.start))

    @property
    def episode_of_step(self) -> IntArray:
        """For each step the place of its episode."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def columns(self) -> dict[str, Any]:
        """A row for each step; states as their labels where there are any.

        The successor of a last step is -1, or empty where labels are texts.
        """
        return {
            "episode": self.episode_of_step,
            "step": self.step_in_episode,
            "state": self._labelled(self.states),
            "action": self.actions,
            "reward": self.rewards,
            "successor": self._labelled(self.successors),
            "propensity": self.propensities,
            **self.amounts,
        }

    def to_dict(self) -> dict[str, Any]:
        """The columns by name, as arrays."""
        return self.columns()

    def _labelled(self, states: IntArray) -> Any:
        if self.labels is None:
            return states
        if all(isinstance(label, Integral) for label in self.labels):
            return np.array([*self.labels, ENDED], dtype=np.int64)[states]  # -1 picks the last
        return np.array([*map(str, self.labels), ""])[states]

    def _fields(self, steps: slice) -> dict[str, Any]:
        return {
            "states": self.states[steps],
            "actions": self.actions[steps],
            "rewards": self.rewards[steps],
            "successors": self.successors[steps],
            "propensities": self.propensities[steps],
            "amounts": {name: values[steps] for name, values in self.amounts.items()},
        }


def _whole(values: Any, name: str) -> IntArray:
    """A copy of the values as whole numbers."""
    numbers = as_floats(values, name)
    if not np.all(np.isfinite(numbers) & (numbers == np.floor(numbers))):
        raise InputError(f"{name} must be whole numbers; got {values!r}")
    return numbers.astype(np.int64)


def _check_steps(
    states: IntArray,
    actions: IntArray,
    rewards: FloatArray,
    successors: IntArray,
    propensities: FloatArray,
) -> None:
    fields = {
        "states": states,
        "actions": actions,
        "rewards": rewards,
        "successors": successors,
        "propensities": propensities,
    }
    for name, values in fields.items():
        if values.shape != states.shape or values.ndim != 1:
            raise InputError(f"{name} has shape {values.shape}, but states has {states.shape}")
    checks = {
        "rewards": ~(np.abs(rewards) <= LARGEST_REWARD),  # true of NaN, too
        "states": states < 0,
        "actions": actions < 0,
        "successors": successors < ENDED,
        "propensities": (propensities <= 0) | (propensities > 1),
    }
    for name, bad in checks.items():
        if bad.any():
            step = int(np.argmax(bad))
            if name == "rewards":
                check_reward(float(rewards[step]), f"rewards at step {step} is")
            raise InputError(f"{name} at step {step} is {fields[name][step]}")


def _check_amounts(amounts: Mapping[str, FloatArray], steps: int) -> None:
    for name, values in amounts.items():
        if values.shape != (steps,):
            raise InputError(f"{name} has shape {values.shape}, but there are {steps} steps")
        if not np.isfinite(values).all():
            step = int(np.argmax(~np.isfinite(values)))
            raise InputError(f"{name} at step {step} is {values[step]}; it must be finite")


def _check_joints(states: IntArray, successors: IntArray, start: IntArray) -> None:
    """Within an episode each step begins where the one before it led."""
    broken = np.zeros(states.size, dtype=bool)
    broken[:-1] = successors[:-1] != states[1:]
    broken[start[1:] - 1] = False
    if broken.any():
        step = int(np.argmax(broken))
        raise InputError(
            f"successors at step {step} is {successors[step]}, but the next step of the episode "
            f"is taken in state {states[step + 1]}"
        )
