"""Runs in parallel threads, with progress, and an interrupt that loses no finished run."""

import itertools
import os
import threading
from collections.abc import Callable

import numpy as np

from revar.model.arrays import IntArray

# (episodes played so far, episodes in all)
Progress = Callable[[int, int], None]

# How often the waiting thread looks at progress and at Ctrl-C.
POLL_SECONDS = 0.1
# How long a stopped run may take to end. One that takes longer (a slow plan or estimate in plain
# Python) is left behind: it ends at its next look at `stop`, and nothing it writes is read.
PARTING_SECONDS = 0.25


def available_threads() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def drive(
    play: Callable[[int], bool],
    finished: IntArray,
    episodes: int,
    *,
    threads: int,
    progress: Progress | None,
    stop: IntArray,
) -> IntArray:
    """Play every run; returns the numbers of those that came to their end, in order.

    `play` must return False soon after `stop` is raised. An interrupt raises it and is taken as
    the wish to see what is there; any other error stops the runs and is raised.
    """
    runs = finished.shape[0]
    ended = np.zeros(runs, dtype=bool)
    errors: list[BaseException] = []
    tickets = itertools.count()

    def work() -> None:
        try:
            while stop[0] == 0 and (run := next(tickets)) < runs:
                ended[run] = play(run)
        except BaseException as error:
            errors.append(error)
            stop[0] = 1

    workers = [
        threading.Thread(target=work, name=f"revar-{i}", daemon=True)
        for i in range(min(threads, runs))
    ]

    def wait() -> None:
        for worker in workers:
            while worker.is_alive():
                worker.join(POLL_SECONDS)
                report()
        report()

    def report() -> None:
        if progress is not None:
            progress(int(finished.sum()), runs * episodes)

    try:
        for worker in workers:
            worker.start()
        wait()
    except KeyboardInterrupt:
        stop[0] = 1
    finally:
        if not all(ended):
            stop[0] = 1
        for worker in workers:
            if worker.ident is not None:
                worker.join(PARTING_SECONDS / len(workers))
    if errors:
        raise errors[0]
    return np.flatnonzero(ended)
