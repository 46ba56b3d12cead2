"""A worker pool of processes of this machine, with nothing but the standard library."""

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

from revar.errors import InputError
from revar.evaluation.workers.pool import BatchWorker, Plan, Request, Setup, WorkerDeath

# Between asking a worker to end and ending it: time to close a simulator.
GRACE_SECONDS = 0.5


@dataclass
class _WorkerProcess:
    process: BaseProcess
    pipe: "Connection[Any, Any]"
    ready: bool = False
    request: Request | None = None  # in hand
    plan_version: int = -1  # of the plan that it has


class ProcessPool:
    """One process a worker, joined to this one by a pipe."""

    def __init__(self, setup: Setup, workers: int) -> None:
        self._setup = _encode(setup)
        # Not by forking this process, which may have threads. A server that has loaded the library
        # once forks workers in milliseconds; where there is none every worker loads it.
        method = "spawn" if sys.platform == "win32" else "forkserver"
        self._context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload([__name__, type(setup).__module__])
        self._workers: list[_WorkerProcess] = []
        try:
            for _ in range(workers):
                self._workers.append(self._start_worker())
        except BaseException:
            self.close()
            raise

    @property
    def idle(self) -> int:
        """Workers that are ready and have no request."""
        return sum(worker.ready and worker.request is None for worker in self._workers)

    def give(self, request: Request, plan: Plan) -> None:
        """To the first idle worker."""
        worker = next(worker for worker in self._workers if worker.ready and worker.request is None)
        worker.request = request
        # A worker that has ended is noticed by `wait`.
        with contextlib.suppress(OSError):
            worker.pipe.send((request, None if worker.plan_version == plan.version else plan))
        worker.plan_version = plan.version

    def wait(self, seconds: float) -> list[Any]:
        """What workers have sent; those that ended are replaced."""
        reports: list[Any] = []
        open_pipes = {worker.pipe: i for i, worker in enumerate(self._workers)}
        for pipe in wait(list(open_pipes), timeout=seconds):
            place = open_pipes[pipe]  # type: ignore[index]  # it waits for what it was given
            worker = self._workers[place]
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                reports += self._replace_worker(place)
                continue
            if isinstance(message, str):
                raise InputError(message)
            worker.ready = True
            if message is not None:
                reports.append(message)
                worker.request = None
        return reports

    def close(self) -> None:
        """End all workers: by closing the pipe, by asking, and then without asking."""
        for worker in self._workers:
            worker.pipe.close()
            if worker.request is not None or not worker.ready:
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

    def _start_worker(self) -> _WorkerProcess:
        here, there = self._context.Pipe()
        process = self._context.Process(
            target=work,
            args=(self._setup, there, str(Path.cwd()), sys.path, dict(os.environ)),
            name="revar worker",
        )
        with _interrupts_held_back():
            process.start()
        there.close()
        return _WorkerProcess(process, here)

    def _replace_worker(self, place: int) -> list[WorkerDeath]:
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
        self._workers[place] = self._start_worker()
        return [] if worker.request is None else [WorkerDeath(worker.request, how)]


def work(
    encoded: bytes,
    pipe: "Connection[Any, Any]",
    folder: str,
    path: list[str],
    environment: dict[str, str],
) -> None:
    """In the worker: play every batch that is asked for, until the pipe is closed."""
    # Take over the parent's folder, path and environment: the fork server may have had others.
    os.chdir(folder)
    sys.path[:] = path
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that collects
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _hold_back(signal.SIG_UNBLOCK)
    worker: BatchWorker | None = None
    try:
        try:
            worker = pickle.loads(encoded).start()
        except Exception as error:
            pipe.send(f"a worker cannot begin: {type(error).__name__}: {error}")
            return
        pipe.send(None)
        while True:
            request, plan = pipe.recv()
            if plan is not None:
                worker.plan = plan
            pipe.send(worker.play(request))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # nobody is there any more
    finally:
        if worker is not None:
            worker.close()


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


def _encode(setup: Setup) -> bytes:
    """The setup as it is sent, or an error that names the part that cannot be."""
    for name, part in setup.parts().items():
        try:
            ForkingPickler.dumps(part)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            named = name in ("env", "strategy", "features") or name.startswith("policy")
            raise InputError(
                f"{name} cannot be sent to another process ({error}); define it in a module"
                + (", or name it as 'module:name'" if named else "")
            ) from None
    return bytes(ForkingPickler.dumps(setup))


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
