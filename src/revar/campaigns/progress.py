"""How a campaign has gone: the estimate at growing numbers of episodes, and its recent pace."""

from collections import deque

import msgspec

from revar.collection import Collection
from revar.errors import InputError

PER_DECADE = 24  # points of the history for a tenfold number of episodes
WINDOW = 60  # seconds over which the pace is measured


class HistoryPoint(msgspec.Struct, frozen=True):
    """The estimate at some time. An error that is not known yet is None."""

    time: float
    episodes: int
    steps: int
    value: float
    standard_error: float | None
    unvisited_probability: float


class Progress:
    """Estimates, log-spaced in finished episodes, and steps second by second."""

    def __init__(self) -> None:
        self.history: list[HistoryPoint] = []
        self.next_point = 1  # the number of episodes at which the history gets its next
        self.first: float | None = None  # time of the first event
        self.last: float | None = None
        self.seconds: deque[tuple[int, int]] = deque(maxlen=WINDOW + 1)  # (second, steps in it)

    def saw_event(self, time: float) -> None:
        """Something happened at that time."""
        if self.first is None:
            self.first = time
        self.last = max(time, self.last or time)

    def saw_step(self, time: float) -> None:
        """A step was completed at that time."""
        second = int(time)
        if self.seconds and self.seconds[-1][0] >= second:
            latest, count = self.seconds[-1]
            self.seconds[-1] = (latest, count + 1)
        else:
            self.seconds.append((second, 1))

    def saw_finish(self, time: float, episodes: int, steps: int, collection: Collection) -> None:
        """An episode was finished: note the estimate where it is time to."""
        if episodes < self.next_point:
            return
        self.next_point = max(episodes + 1, int(episodes * 10 ** (1 / PER_DECADE)))
        point = history_point(time, episodes, steps, collection)
        if point is not None:
            self.history.append(point)

    def pace(self, now: float) -> float:
        """Steps a second over the last minute, or since the first event if that is shorter."""
        if self.first is None:
            return 0.0
        since = now - WINDOW
        recent = sum(count for second, count in self.seconds if second > since)
        return recent / max(1.0, min(float(WINDOW), now - self.first))


def history_point(
    time: float, episodes: int, steps: int, collection: Collection
) -> HistoryPoint | None:
    """The estimate now, or None while there is none."""
    try:
        estimate = collection.estimate()
    except InputError:
        return None
    error = estimate.standard_error
    return HistoryPoint(
        time,
        episodes,
        steps,
        estimate.value,
        error if error < float("inf") else None,
        estimate.unvisited_probability,
    )
