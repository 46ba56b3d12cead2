"""Engines play shards: they take shards and give back results, in any order."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from revar.cluster import start_ray
from revar.errors import require_extra
from revar.experiments.critics import CriticShard
from revar.experiments.shards import Shard
from revar.interrupts import POLL_SECONDS, stop_if_interrupted

AnyShard = Shard | CriticShard
# Episodes of a shard that have been played so far.
Advance = Callable[[Any, int], None]
# Tasks waiting for each core of a Ray cluster: none is idle, and an interrupt cancels few.
TASKS_PER_CORE = 2


class Engine(Protocol):
    """Plays shards."""

    def play(
        self, shards: Sequence[AnyShard], advance: Advance
    ) -> Iterator[tuple[Any, Any, float]]:
        """Play shards; yields each with its result and seconds, as they are finished."""


@dataclass(frozen=True)
class LocalEngine:
    """This process: one shard after the other, the runs of each in threads."""

    threads: int | None = None  # None: every core

    def play(
        self, shards: Sequence[AnyShard], advance: Advance
    ) -> Iterator[tuple[Any, Any, float]]:
        """Play shards in order."""
        for shard in shards:

            def report(done: int, total: int, shard: AnyShard = shard) -> None:
                del total
                advance(shard, done)

            started = time.perf_counter()
            result = shard.play(threads=self.threads, progress=report)
            yield shard, result, time.perf_counter() - started


@dataclass(frozen=True)
class RayEngine:
    """A Ray cluster: one core for each shard, played again if a worker dies.

    Without an address a cluster is started on this machine, on loopback, and stopped at the end.
    An address is what Ray takes: "auto", or that of a running cluster.
    """

    address: str | None = None
    cores: int | None = None  # of a cluster started here; None: every core
    retries: int = 3  # of a shard whose worker died

    def play(
        self, shards: Sequence[AnyShard], advance: Advance
    ) -> Iterator[tuple[Any, Any, float]]:
        """Play shards; they come back as they are finished."""
        ray = require_extra("ray", "ray")
        started = start_ray(ray, self.address, self.cores)
        play = ray.remote(num_cpus=1, max_retries=self.retries)(_play_encoded)
        room = max(1, int(ray.cluster_resources().get("CPU", 1))) * TASKS_PER_CORE
        waiting = list(reversed(shards))
        open_tasks: dict[Any, AnyShard] = {}
        try:
            while waiting or open_tasks:
                while waiting and len(open_tasks) < room:
                    shard = waiting.pop()
                    open_tasks[play.remote(msgspec.json.encode(shard))] = shard
                done, _ = ray.wait(list(open_tasks), timeout=POLL_SECONDS)
                for task in done:
                    shard = open_tasks.pop(task)
                    arrays, seconds = ray.get(task)
                    advance(shard, shard.episodes)
                    yield shard, shard.result_type(**arrays), seconds
                stop_if_interrupted()
        finally:
            for task in open_tasks:
                ray.cancel(task, force=True)
            if started:
                ray.shutdown()


def _play_encoded(encoded: bytes) -> tuple[dict[str, Any], float]:
    """Play one shard on one core of a worker."""
    shard = msgspec.json.decode(encoded, type=AnyShard)
    ((_, result, seconds),) = LocalEngine(threads=1).play([shard], lambda *_: None)
    return msgspec.structs.asdict(result), seconds
