"""First observations that are drawn besides the episodes, and not played."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes

RESETS_OF_AN_EPISODE = 10
# Resets are cheap if they take so little of the time to play, or so few seconds.
CHEAP_SHARE = 0.2
CHEAP_SECONDS = 2.0
TRIED = 16  # resets to tell how long one takes

DrawResets = Callable[[int, int], FloatArray]
BeginAgain = Callable[[int], FloatArray]


@dataclass
class Resets:
    """First observations that are not played: how many are wanted, and those drawn so far.

    `each` is how many for every episode, None while it has yet to be seen whether they are cheap.
    """

    draw: DrawResets
    again: BeginAgain | None = None  # what critics see as an episode is begun again, [1, inputs]
    count: int | None = None  # all of them, where the user says how many
    each: int | None = None
    note: str = ""  # why there are none
    drawn: FloatArray | None = None  # [R, inputs]

    def of(self, episodes: Episodes, seconds: float, inputs: FloatArray) -> FloatArray:
        """As many as are wanted with these episodes, which took so long to play, [R, inputs]."""
        width = inputs.shape[1]
        none = 0 in (self.count, self.each)
        if not none and not self._start_alike(episodes, inputs):
            self.note = "as the reset of an episode gives another observation when it is repeated"
            return np.zeros((0, width))
        if self.count is None and self.each is None:
            self.each = self._decide(len(episodes), seconds)
        wanted = self.count if self.count is not None else len(episodes) * (self.each or 0)
        self._extend(wanted)
        found = np.zeros((0, width)) if self.drawn is None else self.drawn[:wanted]
        if found.shape[1] != width:
            raise InputError(
                f"critics see {width} numbers of an observation, but {found.shape[1]} after a reset"
            )
        return found

    def _start_alike(self, episodes: Episodes, inputs: FloatArray) -> bool:
        """Whether episodes begin as they did, so that resets now are like those of episodes.

        Wrappers that normalise observations by what they have seen make others of them later. The
        last episode is repeated, too: with workers this environment has seen none of them.
        """
        if self.again is None or episodes.numbers is None:
            return True
        return all(
            np.allclose(self.again(int(episodes.numbers[place]))[0], inputs[episodes.start[place]])
            for place in {0, len(episodes) - 1}
        )

    def _decide(self, episodes: int, seconds: float) -> int:
        taken = []
        for place in range(TRIED):
            begun = time.perf_counter()
            self._extend(place + 1)
            taken.append(time.perf_counter() - begun)
        one = median(taken)  # the first may load something, and the machine be busy
        needed = one * RESETS_OF_AN_EPISODE * episodes
        if needed <= max(CHEAP_SECONDS, CHEAP_SHARE * seconds):
            return RESETS_OF_AN_EPISODE
        self.note = f"because one takes {one:.2g} s; resets= says how many"
        return 0

    def _extend(self, wanted: int) -> None:
        have = 0 if self.drawn is None else len(self.drawn)
        if wanted > have:
            more = self.draw(have, wanted - have)
            self.drawn = more if self.drawn is None else np.concatenate([self.drawn, more])


def begin_again(player: Any, number: int) -> FloatArray:
    """What critics see as an episode is begun again, [1, inputs]."""
    found: FloatArray = player.setting.inputs([player.first_observation(number)])
    return found
