"""Where shards are played. An engine gets shards and gives back results, in any order."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from revar.experiments.shards import Shard, ShardResult, play_shard

# Episodes of a shard that have been played so far.
Advance = Callable[[Shard, int], None]


class Engine(Protocol):
    """Plays shards."""

    def play(
        self, shards: Sequence[Shard], advance: Advance
    ) -> Iterator[tuple[Shard, ShardResult, float]]:
        """Each shard with its result and the seconds it took, as they are finished."""


@dataclass(frozen=True)
class LocalEngine:
    """This process: one shard after the other, the runs of each in threads."""

    threads: int | None = None  # None: every core

    def play(
        self, shards: Sequence[Shard], advance: Advance
    ) -> Iterator[tuple[Shard, ShardResult, float]]:
        """Each shard with its result and the seconds it took, in order."""
        for shard in shards:

            def report(done: int, total: int, shard: Shard = shard) -> None:
                del total
                advance(shard, done)

            started = time.perf_counter()
            result = play_shard(shard, threads=self.threads, progress=report)
            yield shard, result, time.perf_counter() - started
