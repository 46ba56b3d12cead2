"""The batch rule: how many episodes go to a worker at once, and how stale their plan may be.

Batches are numbered. Batch j is played under the plan made from batches 0 to j - ahead, with ahead
= AHEAD * workers, and batches are joined in the order of their numbers. So what is played follows
from the numbers alone, never from how long anything took.
"""

from dataclasses import dataclass

# Batches that may be under way for each worker. With one, a worker whose batch is done would wait
# for the slowest of the others.
AHEAD = 2
# All batches under way together have at most this share of the episodes joined when the last of
# them was ordered, or one episode each.
SHARE = 1.0
# By default a worker's part of the budget falls into so many batches at least.
BATCHES_OF_A_WORKER = 32
LONGEST = 256


@dataclass(frozen=True)
class BatchRule:
    """How long batches are, with so many workers."""

    workers: int
    longest: int  # episodes of a batch at most

    @property
    def ahead(self) -> int:
        """How many batches may be under way."""
        return AHEAD * self.workers

    def length(self, joined: int, left: int, lasts: int | None) -> int:
        """Episodes of a batch ordered when so many were joined and so many are not yet ordered.

        A plan that holds for a single step (`lasts` 0) is an index: it would repeat itself in a
        longer batch.
        """
        longest = 1 if lasts == 0 else self.longest
        return min(left, max(1, min(longest, int(SHARE * joined / self.ahead))))


def default_batch(episodes: int, workers: int) -> int:
    """The longest batch where the user names none.

    It follows from the budget: episodes that take seconds are few, and go one by one; millions of
    quick ones go in batches that make up for sending them.
    """
    return max(1, min(LONGEST, episodes // (BATCHES_OF_A_WORKER * workers)))
