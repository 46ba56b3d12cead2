"""The finished episodes of a collection, in flat buffers that grow."""

from array import array
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from revar.model.arrays import IntArray
from revar.model.trajectory import Dataset

if TYPE_CHECKING:
    from revar.collection.episode import Episode


class EpisodeLog:
    """Episodes in the order they were finished in; a dataset has them by number."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._start = [0]
        self._states = array("q")
        self._actions = array("q")
        self._rewards = array("d")
        self._successors = array("q")
        self._propensities = array("d")

    def add(self, episode: "Episode") -> None:
        """Keep the steps of a finished episode."""
        self._states.extend(episode.states)
        self._actions.extend(episode.actions)
        self._rewards.extend(episode.rewards)
        self._successors.extend(episode.states[1:])
        self._successors.append(episode.last_successor)
        self._propensities.extend(episode.propensities)
        self._numbers.append(episode.number)
        self._start.append(len(self._states))

    def add_many(self, first: int, episodes: Dataset) -> None:
        """Keep episodes at once, number `first` and those that follow."""
        for name in ("states", "actions", "rewards", "successors", "propensities"):
            getattr(self, f"_{name}").frombytes(getattr(episodes, name).tobytes())
        self._numbers.extend(range(first, first + len(episodes)))
        self._start.extend((self._start[-1] + episodes.start[1:]).tolist())

    def dataset(self, labels: tuple[Hashable, ...]) -> Dataset:
        """Everything so far, copied."""
        order = np.argsort(np.array(self._numbers, dtype=np.int64), kind="stable")
        start = np.array(self._start, dtype=np.int64)
        lengths = np.diff(start)[order]
        begin = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        steps: IntArray = np.arange(begin[-1]) + np.repeat(start[:-1][order] - begin[:-1], lengths)

        def column(values: Any, dtype: Any) -> Any:
            # A copy: a buffer that is being looked at could not grow.
            return np.array(values, dtype=dtype)[steps]

        return Dataset(
            begin,
            column(self._states, np.int64),
            column(self._actions, np.int64),
            column(self._rewards, np.float64),
            column(self._successors, np.int64),
            column(self._propensities, np.float64),
            labels,
        )
