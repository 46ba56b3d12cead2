"""CrewPlayer: orders to a crew, and their batches joined in the order of their numbers."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

from revar.collection import Collection
from revar.collection.batches import Batch, Dispatch, Order, SentPlan, join, stored_batch
from revar.evaluation.interrupts import Interrupt
from revar.evaluation.players import EpisodeError, Stopped
from revar.evaluation.policies import TargetPolicy
from revar.evaluation.workers.crew import Crew, Died
from revar.evaluation.workers.rule import BatchRule
from revar.model.trajectory import Dataset

RETRIES = 3  # of a batch whose worker died
ATTENTION_SECONDS = 0.1  # how long Ctrl-C may go unheard


class CrewPlayer:
    """Plays a collection through a crew, a batch at a time.

    After a batch is joined the next order is made, `ahead` batches further on, from what has been
    joined then. Every episode is seeded by its number, so that nothing but the episodes themselves
    is needed to go on from them.
    """

    width = 1

    def __init__(
        self,
        collection: Collection,
        policy: TargetPolicy,
        rule: BatchRule,
        start: Callable[[], Crew],
        interrupt: Interrupt,
    ) -> None:
        self._collection = collection
        self._policy = policy
        self._rule = rule
        self._start = start
        self._crew: Crew | None = None
        self._interrupt = interrupt
        self._budget = collection.episodes or 0
        self._dispatch = Dispatch(collection)
        self._orders: deque[tuple[Order, SentPlan]] = deque()  # made and not given out
        self._played: dict[int, Batch] = {}  # and not joined, by number
        self._plans: dict[int, tuple[Order, SentPlan]] = {}  # of batches given out, by number
        self._deaths: Counter[int] = Counter()
        self._ordered = 0  # episodes
        self._begun = 0  # episodes given out or repeated
        self._made = 0  # orders
        self._joined = 0  # batches
        self._make_orders()

    # -- as a player -----------------------------------------------------------------------

    def play(self, collection: Collection, number: int, count: int) -> None:
        """Join the next batch, when it is there."""
        del collection, number, count
        try:
            while self._joined not in self._played:
                if self._interrupt.asked:
                    raise Stopped
                self._attend()
            batch = self._played.pop(self._joined)
            self._join(batch)
            if batch.fault:
                raise EpisodeError(batch.fault, batch.first + len(batch.episodes))
        except BaseException:
            # What is complete counts, though it cannot be gone on from.
            for waiting in sorted(self._played):
                join(self._collection, self._played[waiting], self._policy)
            raise

    @property
    def stride(self) -> int:
        """How many episodes the next batch has."""
        return self._orders[0][0].count

    def repeat(self, collection: Collection, stored: Dataset) -> None:
        """Join the next batch from stored episodes."""
        order = replace(self._orders.popleft()[0], first=self._begun)
        # A run that came to the end of its budget may have had a shorter last batch.
        self._ordered -= order.count - len(stored)
        self._begun += len(stored)
        self._join(stored_batch(order, stored, collection.actions))

    def generators(self) -> tuple[str, ...]:
        """Nothing: every episode is seeded by its number."""
        return ()

    def restore(self, generators: tuple[str, ...] | None) -> None:
        """Nothing is to be restored."""

    def close(self) -> None:
        """End the workers."""
        if self._crew is not None:
            self._crew.close()

    # -- orders ----------------------------------------------------------------------------

    def _make_orders(self) -> None:
        """Make the orders that are due: all at the start, then one for each batch joined."""
        known = self._collection.finished + self._collection.prior_episodes
        while self._made < self._joined + self._rule.ahead and self._ordered < self._budget:
            lasts = self._dispatch.current_plan().plan.lasts
            left = self._budget - self._ordered
            count = self._rule.length(known, left, lasts)
            self._orders.append(self._dispatch.order(self._made, 0, count))
            self._made += 1
            self._ordered += count

    def _join(self, batch: Batch) -> None:
        join(self._collection, batch, self._policy)
        self._joined += 1
        self._make_orders()

    def _attend(self) -> None:
        """Give out what can be played, and take what was."""
        if self._crew is None:
            self._crew = self._start()
        while self._crew.idle > 0 and self._orders:
            order, plan = self._orders.popleft()
            if order.batch not in self._deaths:
                order = replace(order, first=self._begun)
                self._begun += order.count
            self._plans[order.batch] = order, plan
            self._crew.give(order, plan)
        for report in self._crew.wait(ATTENTION_SECONDS):
            if isinstance(report, Died):
                self._give_again(report)
            else:
                self._played[report.number] = report
                del self._plans[report.number]

    def _give_again(self, report: Died) -> None:
        order = report.order
        self._deaths[order.batch] += 1
        if self._deaths[order.batch] > RETRIES:
            last = order.first + order.count - 1
            raise EpisodeError(
                f"the worker that played episodes {order.first} to {last} ended "
                f"{RETRIES + 1} times ({report.how})",
                order.first,
            )
        self._orders.appendleft(self._plans.pop(order.batch))
