"""The worker pool: which workers are asked for, and batches given out and added in order.

The batch rule: batches are numbered, and batch j is played under the plan made from batches 0 to
j - ahead, with ahead = AHEAD * workers. Batches are added in the order of their numbers. So what is
played follows from the numbers alone, never from how long anything took.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from revar.collection import Collection
from revar.collection.batches import (
    Batch,
    BatchRequest,
    Dispatcher,
    SharedPlan,
    add_batch,
    pack,
)
from revar.environments.opening import is_environment
from revar.errors import InputError, require_extra
from revar.evaluation.interrupts import EpisodeError, Interrupt, Stopped
from revar.evaluation.target_policies import TargetPolicies, TargetPolicy
from revar.evaluation.workers.worker import Worker, WorkerSetup
from revar.model.trajectory import Dataset
from revar.model.validation import check_count

ENGINES = ("processes", "ray", "inline")
# Batches that may be under way for each worker. With one, a worker whose batch is done would wait
# for the slowest of the others.
AHEAD = 2
# All batches under way together have at most this share of the episodes added when the last of
# them was asked for, or one episode each.
SHARE_UNDER_WAY = 1.0
# By default a worker's part of the budget falls into so many batches at least.
BATCHES_OF_A_WORKER = 32
LONGEST_BATCH = 256
RETRIES = 3  # of a batch whose worker died
ATTENTION_SECONDS = 0.1  # how long Ctrl-C may go unheard


@dataclass(frozen=True)
class WorkerDeath:
    """A worker ended with a request in hand; another one has taken its place."""

    request: BatchRequest
    how: str


class WorkerPool(Protocol):
    """Workers of one engine, each with one request in hand at most."""

    @property
    def idle(self) -> int:
        """How many requests it can take now."""

    def give(self, request: BatchRequest, plan: SharedPlan) -> None:
        """Let an idle worker play; it is sent the plan unless it has it."""

    def wait(self, seconds: float) -> list[Batch | WorkerDeath]:
        """Batches that are done; an empty list after `seconds`."""

    def close(self) -> None:
        """End all workers, also those at work."""


class InlinePool:
    """This process itself, one batch after the other. For studies, and for debuggers."""

    def __init__(self, setup: WorkerSetup, interrupt: Interrupt) -> None:
        self._worker = Worker(setup, interrupt)
        self._done: list[Batch | WorkerDeath] = []

    @property
    def idle(self) -> int:
        """One, unless a batch has not been fetched."""
        return 1 - len(self._done)

    def give(self, request: BatchRequest, plan: SharedPlan) -> None:
        """Play."""
        self._worker.plan = plan
        self._done.append(self._worker.play(request))

    def wait(self, seconds: float) -> list[Batch | WorkerDeath]:
        """What was played."""
        del seconds
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Close the environment."""
        self._worker.close()


@dataclass(frozen=True)
class PoolSettings:
    """So many workers of one engine, and how long their batches are."""

    engine: str
    address: str | None
    workers: int
    longest: int  # episodes of a batch, at most

    @property
    def ahead(self) -> int:
        """How many batches may be under way."""
        return AHEAD * self.workers

    def length(self, added: int, left: int, lasts: int | None) -> int:
        """Episodes of a batch when so many were added and so many are not yet asked for.

        A plan that holds for a single step (`lasts` 0) is an index: it would repeat itself in a
        longer batch.
        """
        longest = 1 if lasts == 0 else self.longest
        return min(left, max(1, min(longest, int(SHARE_UNDER_WAY * added / self.ahead))))

    def start(self, setup: WorkerSetup, interrupt: Interrupt) -> WorkerPool:
        """Start the workers."""
        if self.engine == "inline":
            return InlinePool(setup, interrupt)
        if self.engine == "ray":
            from revar.evaluation.workers.ray import RayPool  # noqa: PLC0415

            return RayPool(setup, self.workers, self.address)
        from revar.evaluation.workers.processes import ProcessPool  # noqa: PLC0415

        return ProcessPool(setup, self.workers)


def choose_pool(
    env: Any,
    workers: int | None,
    engine: str,
    batch: int | None,
    address: str | None,
    environments: int,
    *,
    single: bool = False,
) -> PoolSettings | None:
    """The workers that are asked for; None where this process plays by itself.

    One worker is the serial run. Older files of a single worker hold batches; `single` resumes them
    that way.
    """
    if engine not in ENGINES:
        raise InputError(f"engine is {engine!r}; it must be one of {', '.join(ENGINES)}")
    if address is not None and engine != "ray":
        raise InputError("an address is for engine 'ray'")
    if workers is None:
        if engine != "processes" or batch is not None:
            raise InputError(
                f"{'batch' if batch is not None else f'engine {engine!r}'} is given without workers"
            )
        return None
    count = check_count(workers, "workers")
    if environments > 1 or hasattr(env, "num_envs"):
        raise InputError("workers play one environment each; give workers or environments")
    if is_environment(env):
        raise InputError(
            f"workers open the environment themselves; give its id, 'module:factory' or a "
            f"function that makes it, not the {type(env).__name__}"
        )
    if engine == "ray":
        require_extra("ray", "ray")
    longest = LONGEST_BATCH if batch is None else check_count(batch, "batch")
    if count == 1 and not single:
        return None
    return PoolSettings(engine, address, count, longest)


def default_batch(episodes: int, workers: int) -> int:
    """The longest batch where the user names none.

    It follows from how many the budget is sure to pay for: episodes that take seconds are few, and
    go one by one; millions of quick ones go in batches that make up for sending them.
    """
    return max(1, min(LONGEST_BATCH, episodes // (BATCHES_OF_A_WORKER * workers)))


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
