"""Requests that wait for a worker, and batches that came back."""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from revar.evaluation.stopping import EpisodeError
from revar.evaluation.workers.pool import WorkerDeath, WorkerPool

RETRIES = 3  # of a batch whose worker died
ATTENTION_SECONDS = 0.1  # how long Ctrl-C may go unheard


class BatchQueue:
    """Gives requests to idle workers in their order, and again where a worker died.

    Workers are started with the first request. `begin` is asked once for each request when it is
    first given out, and may complete it.
    """

    def __init__(self, start: Callable[[], WorkerPool], begin: Callable[[Any], Any]) -> None:
        self._start = start
        self._begin = begin
        self._pool: WorkerPool | None = None
        self.waiting: deque[tuple[Any, Any]] = deque()  # requests not given out, with their plans
        self.played: dict[int, Any] = {}  # batches that nobody has taken, by number
        self._given: dict[int, tuple[Any, Any]] = {}  # by number
        self._deaths: Counter[int] = Counter()

    def attend(self) -> None:
        """Give out what can be played, and take what was."""
        if self._pool is None:
            self._pool = self._start()
        while self._pool.idle > 0 and self.waiting:
            request, plan = self.waiting.popleft()
            if request.number not in self._deaths:
                request = self._begin(request)
            self._given[request.number] = request, plan
            self._pool.give(request, plan)
        for report in self._pool.wait(ATTENTION_SECONDS):
            if isinstance(report, WorkerDeath):
                self._give_again(report)
            else:
                self.played[report.number] = report
                del self._given[report.number]

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.close()

    def _give_again(self, report: WorkerDeath) -> None:
        request = report.request
        self._deaths[request.number] += 1
        if self._deaths[request.number] > RETRIES:
            last = request.first + request.count - 1
            raise EpisodeError(
                f"the worker that played episodes {request.first} to {last} ended "
                f"{RETRIES + 1} times ({report.how})",
                request.first,
            )
        self.waiting.appendleft(self._given.pop(request.number))
