"""Runs in parallel threads, with progress, and an interrupt that loses no finished run."""

import atexit
import ctypes
import itertools
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakSet

import numpy as np

from revar.interrupts import POLL_SECONDS, stop_if_interrupted
from revar.model.arrays import FloatArray, IntArray

# (what was spent so far, the budget of all runs), in the unit of the budget
Progress = Callable[[int, int], None]

# How long to wait for a stopped run. One that takes longer (a slow plan or estimate in plain
# Python) is abandoned: it ends when it next reads `stop`, and nothing it writes is read.
STOP_SECONDS = 0.25
# How long the end of the process waits for all abandoned runs together.
EXIT_SECONDS = 1.0


class _RunThread(threading.Thread):
    """A thread that plays runs, and records when it has finished.

    `join` does not tell: if it is interrupted, it takes a running thread for a finished one from
    then on (CPython before 3.13). A bare lock can be interrupted safely, an `Event` cannot.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.work = work
        self.finished = False
        self._running = threading.Lock()
        self._running.acquire()

    def run(self) -> None:
        try:
            self.work()
        finally:
            self.finished = True
            self._running.release()

    def wait(self, seconds: float) -> bool:
        """Whether it has finished, after waiting so many seconds at most."""
        if not self.finished and self._running.acquire(timeout=seconds):
            self._running.release()
        return self.finished


_abandoned: WeakSet[_RunThread] = WeakSet()


def available_threads() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def play_runs(
    play: Callable[[int], bool],
    spent: FloatArray,
    budget: float,
    *,
    threads: int,
    progress: Progress | None,
    stop: IntArray,
) -> IntArray:
    """Play every run; returns the numbers of those that were finished, in order.

    `play` must return False soon after `stop` is raised. An interrupt raises it, and the finished
    runs are returned; any other error stops the runs and is raised.
    """
    runs = spent.shape[0]
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

    run_threads = [_RunThread(work, f"revar-{i}") for i in range(min(threads, runs))]

    def wait() -> None:
        for thread in run_threads:
            while not thread.wait(POLL_SECONDS):
                report()
        report()

    def report() -> None:
        stop_if_interrupted()
        if progress is not None:
            progress(int(np.minimum(spent, budget).sum()), int(runs * budget))

    try:
        stop_if_interrupted()
        for thread in run_threads:
            thread.start()
        wait()
    except KeyboardInterrupt:
        stop[0] = 1
    finally:
        if not all(ended):
            stop[0] = 1
        started = [thread for thread in run_threads if thread.ident is not None]
        _abandoned.update(started)
        for thread in started:
            if thread.wait(STOP_SECONDS / len(run_threads)):
                thread.join(STOP_SECONDS)  # its last steps: then it is no longer listed
    if errors:
        raise errors[0]
    return np.flatnonzero(ended)


@atexit.register
def end_abandoned() -> None:
    """End abandoned threads while the interpreter is still there.

    A thread that returns to an interpreter which is shutting down is unwound by force. Where that
    meets C++ code that allows no unwinding (as in NumPy's `unique`) the process aborts. So each is
    told to exit at its next step in Python, before it reads `stop`. A thread that takes no such
    step in time is inside a single long call.
    """
    waits_until = time.monotonic() + EXIT_SECONDS
    left = [thread for thread in _abandoned if not thread.finished]
    for thread in left:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
        )
    with suppress(KeyboardInterrupt):  # whoever interrupts again does not want to wait
        for thread in left:
            thread.wait(max(0.0, waits_until - time.monotonic()))
