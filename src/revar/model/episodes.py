"""Episodes of any observations and actions, as numbers: what critics learn from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from revar.errors import InputError
from revar.model.arrays import BoolArray, FloatArray, IntArray
from revar.model.law import Law
from revar.model.records import HasColumns
from revar.model.validation import LARGEST_REWARD, check_reward

MOST_COLUMNS = 512  # that the numbers of an observation are spread over


@dataclass(frozen=True, eq=False, repr=False)
class Episodes(HasColumns):
    """Whole episodes laid end to end: episode k holds the steps start[k] to start[k+1].

    Observations and actions are numbers, as `environments/spaces.py` lays them out; the spaces are
    described so that they can be turned back. `noise` is what the policy drew its actions from,
    as `law` reads it; it has no columns where that is not known. `numbers` are the places of the
    episodes in their run, which tell how each was seeded.
    """

    start: IntArray  # [episodes + 1]
    observations: NDArray[Any]  # [step, D]
    final_observations: NDArray[Any]  # [episodes, D] after the last step
    actions: NDArray[Any]  # [step, A]
    rewards: FloatArray  # [step]
    terminated: BoolArray  # [episodes]; others were cut by a time limit or the horizon
    noise: FloatArray  # [step, W]
    law: Law = Law()  # noqa: RUF009 - it is frozen
    observation_space: str | None = None  # JSON, see environments/spaces.py
    action_space: str | None = None
    numbers: IntArray | None = None  # [episodes]
    features: FloatArray | None = None  # [step, F] what the user's function made of observations
    amounts: Mapping[str, FloatArray] = field(default_factory=dict)  # [step] each

    def __post_init__(self) -> None:
        _check(self)

    def __len__(self) -> int:
        return int(self.start.size - 1)

    def __repr__(self) -> str:
        return (
            f"Episodes(episodes={len(self)}, steps={self.steps}, "
            f"numbers_of_observations={self.observations.shape[-1]}, "
            f"numbers_of_actions={self.actions.shape[-1]})"
        )

    def columns(self) -> dict[str, Any]:
        """A row for each step; observations and actions of several numbers have several columns."""
        ends = np.zeros(self.steps, dtype=bool)
        ends[self.start[1:] - 1] = self.terminated
        return {
            "episode": self.episode_of_step,
            "step": self.step_in_episode,
            **_spread("observation", self.observations),
            **_spread("action", self.actions),
            "reward": self.rewards,
            "terminated": ends,
            **({} if self.features is None else _spread("feature", self.features)),
            **self.amounts,
        }

    def to_dict(self) -> dict[str, Any]:
        """The columns by name, as arrays."""
        return self.columns()

    @property
    def steps(self) -> int:
        """How many steps all episodes have."""
        return int(self.start[-1])

    @property
    def lengths(self) -> IntArray:
        """How many steps each episode has, [episodes]."""
        return np.diff(self.start)

    @property
    def step_in_episode(self) -> IntArray:
        """For each step its number within its episode, from 0."""
        return np.arange(self.steps) - np.repeat(self.start[:-1], self.lengths)

    @property
    def episode_of_step(self) -> IntArray:
        """For each step the place of its episode."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def returns(self, discount: float) -> FloatArray:
        """The discounted return of every episode, [episodes].

        Parameters
        ----------
        discount
            Of later rewards.
        """
        weighted = self.rewards * discount ** self.step_in_episode.astype(np.float64)
        return np.add.reduceat(weighted, self.start[:-1]) if len(self) else np.zeros(0)

    def part(self, first: int, end: int) -> "Episodes":
        """The episodes from place `first` up to, without it, place `end`.

        Parameters
        ----------
        first, end
            Places, from 0.
        """
        start = self.start[first : end + 1]
        steps = slice(start[0], start[-1])
        return replace(
            self,
            start=start - start[0],
            observations=self.observations[steps],
            final_observations=self.final_observations[first:end],
            actions=self.actions[steps],
            rewards=self.rewards[steps],
            terminated=self.terminated[first:end],
            noise=self.noise[steps],
            numbers=None if self.numbers is None else self.numbers[first:end],
            features=None if self.features is None else self.features[steps],
            amounts={name: values[steps] for name, values in self.amounts.items()},
        )

    def take(self, places: IntArray) -> "Episodes":
        """The episodes at these places, in this order.

        Parameters
        ----------
        places
            From 0; one may come more than once.
        """
        lengths = self.lengths[places]
        start = np.concatenate([[0], np.cumsum(lengths)])
        steps = np.repeat(self.start[places] - start[:-1], lengths) + np.arange(start[-1])
        return replace(
            self,
            start=start,
            observations=self.observations[steps],
            final_observations=self.final_observations[places],
            actions=self.actions[steps],
            rewards=self.rewards[steps],
            terminated=self.terminated[places],
            noise=self.noise[steps],
            numbers=None if self.numbers is None else self.numbers[places],
            features=None if self.features is None else self.features[steps],
            amounts={name: values[steps] for name, values in self.amounts.items()},
        )

    @classmethod
    def join(cls, parts: Iterable["Episodes"]) -> "Episodes":
        """All episodes of the parts, in their order; they are of one environment and policy.

        Parameters
        ----------
        parts
            Collections of episodes.
        """
        every = list(parts)
        if not every:
            raise InputError("there are no episodes to join")
        first = every[0]
        for other in every[1:]:
            for name in ("law", "observation_space", "action_space"):
                if getattr(other, name) != getattr(first, name):
                    raise InputError(
                        f"episodes that are joined have {name.replace('_', ' ')} "
                        f"{getattr(first, name)} and {getattr(other, name)}"
                    )

        def laid(name: str) -> Any:
            return np.concatenate([getattr(each, name) for each in every])

        def laid_if_known(name: str) -> Any:
            known = all(getattr(each, name) is not None for each in every)
            return laid(name) if known else None

        return replace(
            first,
            start=np.concatenate([[0], np.cumsum(np.concatenate([e.lengths for e in every]))]),
            observations=laid("observations"),
            final_observations=laid("final_observations"),
            actions=laid("actions"),
            rewards=laid("rewards"),
            terminated=laid("terminated"),
            noise=laid("noise"),
            numbers=laid_if_known("numbers"),
            features=laid_if_known("features"),
            amounts={
                name: np.concatenate([each.amounts[name] for each in every])
                for name in first.amounts
                if all(name in each.amounts for each in every)
            },
        )


def _spread(name: str, rows: NDArray[Any]) -> dict[str, Any]:
    """The numbers of rows as columns, numbered where there are several; of images, the rows."""
    count = rows.shape[-1]
    if count > MOST_COLUMNS:
        return {name: list(rows)}
    return {name if count == 1 else f"{name}_{place}": rows[:, place] for place in range(count)}


def _check(episodes: Episodes) -> None:
    count, steps = len(episodes), int(episodes.start[-1])
    wanted = {
        "observations": (steps, episodes.observations.shape[-1]),
        "final_observations": (count, episodes.observations.shape[-1]),
        "actions": (steps, episodes.actions.shape[-1]),
        "rewards": (steps,),
        "terminated": (count,),
        "noise": (steps, episodes.law.noise_width),
        **({} if episodes.numbers is None else {"numbers": (count,)}),
        **({} if episodes.features is None else {"features": (steps, episodes.features.shape[-1])}),
    }
    for name, shape in wanted.items():
        found = getattr(episodes, name).shape
        if found != shape:
            raise InputError(f"{name} of the episodes has shape {found}; it must be {shape}")
    if episodes.start[0] != 0 or np.any(np.diff(episodes.start) < 1):
        raise InputError("every episode must have at least one step")
    bad = ~(np.abs(episodes.rewards) <= LARGEST_REWARD)  # true of NaN, too
    if bad.any():
        step = int(np.argmax(bad))
        check_reward(float(episodes.rewards[step]), f"the reward of step {step} is")
    for name in ("observations", "final_observations", "noise", "features"):
        values = getattr(episodes, name)
        if values is None or values.dtype.kind != "f":
            continue
        finite = np.isfinite(values).all(axis=-1)
        if not finite.all():
            raise InputError(f"{name} {int(np.argmin(finite))} of the episodes is not finite")
    for name, values in episodes.amounts.items():
        if values.shape != (steps,) or not np.isfinite(values).all():
            raise InputError(f"{name} of the episodes must be a finite number for each step")
