"""The player of a worker pool: batches given out, and added in order.

The batch rule: batches are numbered, and batch j is played under the plan made from batches 0 to
j - ahead, with ahead = AHEAD * workers. Batches are added in the order of their numbers. So what is
played follows from the numbers alone, never from how long anything took.
"""

from collections.abc import Callable
from dataclasses import replace

from revar.collection import Collection
from revar.collection.batches import (
    Batch,
    BatchRequest,
    Dispatcher,
    add_batch,
    pack,
)
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.evaluation.target_policies import TargetPolicies, TargetPolicy
from revar.evaluation.workers.pool import PoolSettings, WorkerPool
from revar.evaluation.workers.queue import BatchQueue
from revar.interrupts import Interrupt
from revar.model.trajectory import Dataset


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
        self._interrupt = interrupt
        self._dispatcher = Dispatcher(collection)
        self._queue = BatchQueue(start, self._begin)
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
            while self._added not in self._queue.played:
                if self._interrupt.asked:
                    raise Stopped
                self._queue.attend()
            batch = self._queue.played.pop(self._added)
            self._add(batch)
            if batch.fault:
                raise EpisodeError(batch.fault, batch.first + len(batch.episodes))
        except BaseException:
            # Keep complete batches, although a resumed run cannot continue from them.
            for waiting in sorted(self._queue.played):
                add_batch(self._collection, self._queue.played[waiting], self._policy)
            raise

    def stride(self, collection: Collection) -> int:  # noqa: ARG002
        """How many episodes the next batch has."""
        return int(self._queue.waiting[0][0].count)

    def replay(self, collection: Collection, stored: Dataset) -> None:
        """Add the next batch from stored episodes."""
        del collection
        request = replace(self._queue.waiting.popleft()[0], first=self._begun)
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
        self._queue.close()

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
            self._queue.waiting.append(self._dispatcher.request(self._requests, 0, count))
            self._requests += 1
            self._requested += count

    def _add(self, batch: Batch) -> None:
        add_batch(self._collection, batch, self._policy)
        self._added += 1
        self._make_requests()

    def _begin(self, request: BatchRequest) -> BatchRequest:
        begun = replace(request, first=self._begun)
        self._begun += request.count
        return begun
