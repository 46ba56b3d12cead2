"""The record of an episode: its lease, and its steps as far as somebody may still ask for them."""

from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from revar.collection import Episode
from revar.model.trajectory import nan_for_none, none_for_nan

# Of every step that was taken: its state, its action, and the propensity (None if not drawn).
Taken: TypeAlias = tuple[list[int], list[int], list[float | None]]

_DECODER = msgspec.msgpack.Decoder(Taken)
_ENCODER = msgspec.msgpack.Encoder()


@dataclass(slots=True)
class EpisodeRecord:
    """An episode of the campaign: its lease, and the collection's episode with its steps."""

    id: str
    number: int
    started: float
    seen: float  # when it was last heard of: its lease counts from here
    merged: bool  # it came with its own place in the budget
    episode: Episode | None  # None once nothing more can come of it
    finished_early: bool = False  # its caller takes no more actions
    final_steps: int = 0  # of an episode that is None
    final_decisions: bytes = b""  # likewise: `Taken`, packed

    @property
    def steps(self) -> int:
        """How many steps are complete."""
        return self.final_steps if self.episode is None else self.episode.steps

    @property
    def over(self) -> bool:
        """No more actions: it ended, was cut by the horizon, or was finished."""
        return self.finished_early or self.episode is None or self.episode.over

    @property
    def finished(self) -> bool:
        """Over with at least one step: it has used its place."""
        return self.over and self.steps > 0

    @property
    def waits(self) -> bool:
        """Whether the outcome of its last action is not known yet."""
        return self.episode is not None and self.episode.action is not None

    def decision(self, step: int) -> tuple[int, int, float] | None:
        """State, action and propensity of a step, as long as they are known."""
        episode = self.episode
        if episode is None:
            if not 0 <= step < self.final_steps:
                return None
            state, action, propensity = (of[step] for of in _DECODER.decode(self.final_decisions))
            return state, action, nan_for_none(propensity)
        if step == episode.steps and episode.action is not None and episode.state is not None:
            return episode.state, episode.action, episode.propensity
        if 0 <= step < episode.steps:
            return episode.states[step], episode.actions[step], episode.propensities[step]
        return None

    @property
    def open_episode(self) -> Episode:
        """The collection's episode, of which more may come."""
        if self.episode is None:
            raise AssertionError(f"nothing more can come of episode {self.id}")
        return self.episode

    def settle(self) -> None:
        """Nothing more can come of it: keep what it decided, and forget the rest."""
        episode = self.open_episode
        drawn = [none_for_nan(propensity) for propensity in episode.propensities]
        taken: Taken = (episode.states, episode.actions, drawn)
        self.final_steps, self.final_decisions = episode.steps, _ENCODER.encode(taken)
        self.episode = None
