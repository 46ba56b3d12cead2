"""When plans are made anew: at numbers of episodes that grow geometrically."""

from collections.abc import Callable

import numpy as np

from revar.compilation import compiled
from revar.model.arrays import FloatArray, IntArray


def growing_times(episode: int, first: int, growth: Callable[[int], float]) -> IntArray:
    """Numbers of finished episodes, from `first` to the first one past `episode`.

    After `time` episodes the next is `growth(time)` times as many, or one more.
    """
    times = [first]
    while times[-1] <= episode:
        times.append(max(times[-1] + 1, int(growth(times[-1]) * times[-1])))
    return np.array(times, dtype=np.int64)


@compiled
def is_due(times: FloatArray, episode: int) -> bool:
    """Whether `episode` is one of these times."""
    place = np.searchsorted(times, float(episode))
    return bool(place < times.size and times[place] == episode)
