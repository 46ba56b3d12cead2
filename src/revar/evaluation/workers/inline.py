"""The crew that is this process itself: the same batches to the same numbers, one by one."""

from revar.collection.batches import Batch, Order, SentPlan
from revar.evaluation.interrupts import Interrupt
from revar.evaluation.workers.crew import Assignment, Died
from revar.evaluation.workers.post import Post


class InlineCrew:
    """Plays when it is given an order. For studies, and for debuggers in an environment."""

    def __init__(self, assignment: Assignment, interrupt: Interrupt) -> None:
        self._post = Post(assignment, interrupt)
        self._done: list[Batch | Died] = []

    @property
    def idle(self) -> int:
        """One, unless a batch has not been fetched."""
        return 1 - len(self._done)

    def give(self, order: Order, plan: SentPlan) -> None:
        """Play."""
        if self._post.version != plan.version:
            self._post.follow(plan)
        self._done.append(self._post.play(order))

    def wait(self, seconds: float) -> list[Batch | Died]:
        """What was played."""
        del seconds
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Close the environment."""
        self._post.close()
