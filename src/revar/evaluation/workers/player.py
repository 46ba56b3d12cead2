"""The player of a worker pool: batches given out, and added in order.

The batch rule: batches are numbered, and batch j is played under the plan made from batches 0 to
j - ahead, with ahead = AHEAD * workers. Batches are added in the order of their numbers. So what is
played follows from the numbers alone, never from how long anything took.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

from revar.collection import Collection
from revar.collection.batches import (
    Batch,
    BatchRequest,
    Dispatcher,
    SharedPlan,
    add_batch,
    pack,
)
from revar.evaluation.interrupts import EpisodeError, Interrupt, Stopped
from revar.evaluation.target_policies import TargetPolicies, TargetPolicy
from revar.evaluation.workers.pool import PoolSettings, WorkerDeath, WorkerPool
from revar.model.trajectory import Dataset

RETRIES = 3  # of a batch whose worker died
ATTENTION_SECONDS = 0.1  # how long Ctrl-C may go unheard


class PoolPlayer:
    """Plays a collection through a worker pool, a batch at a time.

    After a batch is added the next one is asked for, `ahead` batches further on, from what is known
    then. Every episode is seeded by its number, so that nothing but the episodes themselves is
    needed to go on from them.
    """

    width = 1

    def __init__(
        self,
        collection: Collection,
        policy: TargetPolicy | TargetPolicies,
        settings: PoolSettings,
        start: Callable[[], WorkerPool],
        interrupt: Interrupt,
    ) -> None:
        self._collection = collection
        self._policy = policy
        self._settings = settings
        self._start = start
        self._pool: WorkerPool | None = None
        self._interrupt = interrupt
        self._dispatcher = Dispatcher(collection)
        self._waiting: deque[tuple[BatchRequest, SharedPlan]] = deque()  # not given out
        self._played: dict[int, Batch] = {}  # and not added, by number
        self._given: dict[int, tuple[BatchRequest, SharedPlan]] = {}  # by number
        self._deaths: Counter[int] = Counter()
        self._requested = 0  # episodes
        self._begun = 0  # episodes given out or replayed
        self._requests = 0
        self._added = 0  # batches
        self._make_requests()

    # -- as a player -----------------------------------------------------------------------

    def play(self, collection: Collection, number: int, count: int) -> None:
        """Add the next batch, when it is there."""
        del collection, number, count
        try:
            while self._added not in self._played:
                if self._interrupt.asked:
                    raise Stopped
                self._attend()
            batch = self._played.pop(self._added)
            self._add(batch)
            if batch.fault:
                raise EpisodeError(batch.fault, batch.first + len(batch.episodes))
        except BaseException:
            # Keep complete batches, although a resumed run cannot continue from them.
            for waiting in sorted(self._played):
                add_batch(self._collection, self._played[waiting], self._policy)
            raise

    def stride(self, collection: Collection) -> int:  # noqa: ARG002
        """How many episodes the next batch has."""
        return self._waiting[0][0].count

    def replay(self, collection: Collection, stored: Dataset) -> None:
        """Add the next batch from stored episodes."""
        del collection
        request = replace(self._waiting.popleft()[0], first=self._begun)
        # A run that came to the end of its budget may have had a shorter last batch.
        self._requested -= request.count - len(stored)
        self._begun += len(stored)
        self._add(pack(request, stored, known=0))

    def generators(self) -> tuple[str, ...]:
        """Nothing: every episode is seeded by its number."""
        return ()

    def restore(self, generators: tuple[str, ...] | None) -> None:
        """Nothing is to be restored."""

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.close()

    # -- batches ---------------------------------------------------------------------------

    def _make_requests(self) -> None:
        """Make the requests that are due: all at the start, then one for each batch added."""
        collection = self._collection
        known = collection.finished + collection.prior_episodes
        while self._requests < self._added + self._settings.ahead:
            left = collection.affordable(self._requested - collection.finished)
            if left <= 0:
                break
            lasts = self._dispatcher.shared_plan().plan.lasts
            count = self._settings.length(known, left, lasts)
            self._waiting.append(self._dispatcher.request(self._requests, 0, count))
            self._requests += 1
            self._requested += count

    def _add(self, batch: Batch) -> None:
        add_batch(self._collection, batch, self._policy)
        self._added += 1
        self._make_requests()

    def _attend(self) -> None:
        """Give out what can be played, and take what was."""
        if self._pool is None:
            self._pool = self._start()
        while self._pool.idle > 0 and self._waiting:
            request, plan = self._waiting.popleft()
            if request.number not in self._deaths:
                request = replace(request, first=self._begun)
                self._begun += request.count
            self._given[request.number] = request, plan
            self._pool.give(request, plan)
        for report in self._pool.wait(ATTENTION_SECONDS):
            if isinstance(report, WorkerDeath):
                self._give_again(report)
            else:
                self._played[report.number] = report
                del self._given[report.number]

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
        self._waiting.appendleft(self._given.pop(request.number))
