"""What a caller can ask of a campaign, checked, and what it gets back."""

import re
import uuid
from dataclasses import dataclass
from typing import Any, TypeAlias

from revar.campaigns.definition import Definition
from revar.campaigns.values import canonical
from revar.collection.states import checked_row
from revar.errors import InputError
from revar.model.validation import checked_reward

EPISODE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Start:
    """Begin an episode, or find the one of that id begun before."""

    episode: str


@dataclass(frozen=True)
class Act:
    """Choose the action of a step; `probabilities` only where the policy is no table."""

    episode: str
    step: int
    state: bytes
    probabilities: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Reward:
    """Report what the action of a step led to; without a next state the episode ended."""

    episode: str
    step: int
    reward: float
    next_state: bytes | None


@dataclass(frozen=True)
class Finish:
    """End an episode where it is."""

    episode: str


@dataclass(frozen=True)
class Abandon:
    """Give an episode's place back."""

    episode: str


@dataclass(frozen=True)
class Close:
    """Start no more episodes."""


Command: TypeAlias = Start | Act | Reward | Finish | Abandon | Close


@dataclass(frozen=True)
class EpisodeReply:
    """Where the episode stands after the command."""

    episode: str
    number: int
    steps: int
    over: bool
    repeated: bool
    action: int | None = None  # of an Act
    propensity: float | None = None


def new_episode_id() -> str:
    """An id that no other episode has, in this store or any other."""
    return uuid.uuid4().hex


def checked_episode_id(episode_id: Any) -> str:
    """An id that a caller may choose; it is part of addresses."""
    if not isinstance(episode_id, str) or EPISODE_ID.fullmatch(episode_id) is None:
        raise InputError(
            f"the id of an episode is {episode_id!r}; it must be 1 to 64 letters, digits, dashes "
            f"or underscores"
        )
    return episode_id


def act(definition: Definition, episode: str, step: int, state: Any, probabilities: Any) -> Act:
    """The command to choose an action."""
    target = None
    if definition.policy is None:
        if probabilities is None:
            raise InputError("this campaign has no policy table: act needs the probabilities")
        name = "the target policy in this state"
        row = checked_row(list(probabilities), name)
        if len(row) != definition.actions:
            raise InputError(
                f"{name} has {len(row)} probabilities; there are {definition.actions} actions"
            )
        target = tuple(row.tolist())
    elif probabilities is not None:
        raise InputError("this campaign has a policy table: act takes no probabilities")
    return Act(episode, step, canonical(state), target)


def reward(episode: str, step: int, amount: Any, next_state: Any) -> Reward:
    """The command to report an outcome."""
    number = checked_reward(float(amount), "the reward is")
    following = None if next_state is None else canonical(next_state, "next_state")
    return Reward(episode, step, number, following)
