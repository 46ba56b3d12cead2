"""A crew of processes of this machine, with nothing but the standard library."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import FrameType
from typing import Any

from revar.collection.batches import Batch, Order, SentPlan
from revar.errors import InputError
from revar.evaluation.workers.crew import Assignment, Died
from revar.evaluation.workers.post import Post

# Between asking a worker to end and ending it: time to close a simulator.
GRACE_SECONDS = 0.5


@dataclass
class _Worker:
    process: BaseProcess
    pipe: "Connection[Any, Any]"
    ready: bool = False
    order: Order | None = None  # in hand
    version: int = -1  # of the plan that it has


class ProcessCrew:
    """One process a worker, joined to this one by a pipe."""

    def __init__(self, assignment: Assignment, workers: int) -> None:
        self._assignment = _checked(assignment)
        # Not by forking this process, which may have threads. A server that has loaded the library
        # once forks workers in milliseconds; where there is none every worker loads it.
        method = "spawn" if sys.platform == "win32" else "forkserver"
        self._context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload([__name__])
        self._workers: list[_Worker] = []
        try:
            for _ in range(workers):
                self._workers.append(self._started())
        except BaseException:
            self.close()
            raise

    @property
    def idle(self) -> int:
        """Workers that are ready and have no order."""
        return sum(worker.ready and worker.order is None for worker in self._workers)

    def give(self, order: Order, plan: SentPlan) -> None:
        """To the first idle worker."""
        worker = next(worker for worker in self._workers if worker.ready and worker.order is None)
        worker.order = order
        # A worker that has ended is noticed by `wait`.
        with contextlib.suppress(OSError):
            worker.pipe.send((order, None if worker.version == plan.version else plan))
        worker.version = plan.version

    def wait(self, seconds: float) -> list[Batch | Died]:
        """What workers have sent; those that ended are replaced."""
        reports: list[Batch | Died] = []
        open_pipes = {worker.pipe: i for i, worker in enumerate(self._workers)}
        for pipe in wait(list(open_pipes), timeout=seconds):
            place = open_pipes[pipe]  # type: ignore[index]  # it waits for what it was given
            worker = self._workers[place]
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                reports += self._replaced(place)
                continue
            if isinstance(message, str):
                raise InputError(message)
            worker.ready = True
            if message is not None:
                reports.append(message)
                worker.order = None
        return reports

    def close(self) -> None:
        """End all workers: by closing the pipe, by asking, and then without asking."""
        for worker in self._workers:
            worker.pipe.close()
            if worker.order is not None or not worker.ready:
                worker.process.terminate()
        until = time.monotonic() + GRACE_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, until - time.monotonic()))
        for worker in self._workers:
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()
        self._workers = []

    def _started(self) -> _Worker:
        here, there = self._context.Pipe()
        process = self._context.Process(
            target=work,
            args=(self._assignment, there, str(Path.cwd()), sys.path, dict(os.environ)),
            name="revar worker",
        )
        with _interrupts_held_back():
            process.start()
        there.close()
        return _Worker(process, here)

    def _replaced(self, place: int) -> list[Died]:
        worker = self._workers[place]
        worker.process.join()
        how = f"exit code {worker.process.exitcode}"
        if not worker.ready:
            raise InputError(
                f"a worker process ended before it was ready ({how}); a script must start workers "
                f"below `if __name__ == '__main__':`"
            )
        worker.pipe.close()
        worker.process.close()
        self._workers[place] = self._started()
        return [] if worker.order is None else [Died(worker.order, how)]


def work(
    encoded: bytes,
    pipe: "Connection[Any, Any]",
    folder: str,
    path: list[str],
    environment: dict[str, str],
) -> None:
    """In the worker: play every order that comes, until the pipe is closed."""
    # As the other process is now, not as it was when the server began that forks workers.
    os.chdir(folder)
    sys.path[:] = path
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that collects
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _hold_back(signal.SIG_UNBLOCK)
    post: Post | None = None
    try:
        try:
            post = Post(pickle.loads(encoded))
        except Exception as error:
            pipe.send(f"a worker cannot begin: {type(error).__name__}: {error}")
            return
        pipe.send(None)
        while True:
            order, plan = pipe.recv()
            if plan is not None:
                post.follow(plan)
            pipe.send(post.play(order))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # nobody is there any more
    finally:
        if post is not None:
            post.close()


def _end_with_parent() -> None:
    """Leave as soon as the process that collects has ended, also in the midst of a batch."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(1)


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(128 + number)


def _checked(assignment: Assignment) -> bytes:
    """The assignment as it is sent, or which part of it cannot be."""
    for name in ("env", "env_options", "policy", "strategy"):
        try:
            ForkingPickler.dumps(getattr(assignment, name))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"{name} cannot be sent to another process ({error}); define it in a module, "
                f"or name it as 'module:name'"
            ) from None
    return bytes(ForkingPickler.dumps(assignment))


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C reaches all processes of a terminal: a worker that begins must not die of it."""
    _hold_back(signal.SIG_BLOCK)
    try:
        yield
    finally:
        _hold_back(signal.SIG_UNBLOCK)


def _hold_back(how: int) -> None:
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(how, {signal.SIGINT})
