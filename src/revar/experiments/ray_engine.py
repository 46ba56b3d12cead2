"""Shards as Ray tasks: a cluster plays an experiment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from revar.cluster import start_ray
from revar.errors import require_extra
from revar.experiments.engines import Advance, LocalEngine
from revar.experiments.shards import Shard, ShardResult

# Tasks waiting for each core of the cluster, so that none is idle and an interrupt cancels little.
TASKS_PER_CORE = 2


@dataclass(frozen=True)
class RayEngine:
    """A Ray cluster: one core a shard, retried where a worker dies.

    Without an address a cluster of this machine's cores is started, on loopback, and stopped at the
    end. An address is what Ray takes: "auto", or that of a running cluster.
    """

    address: str | None = None
    cores: int | None = None  # of a cluster started here; None: every core
    retries: int = 3  # of a shard whose worker died

    def play(
        self, shards: Sequence[Shard], advance: Advance
    ) -> Iterator[tuple[Shard, ShardResult, float]]:
        """Each shard with its result and the seconds it took, as they are finished."""
        ray = require_extra("ray", "ray")
        started = start_ray(ray, self.address, self.cores)
        play = ray.remote(num_cpus=1, max_retries=self.retries)(_play)
        room = max(1, int(ray.cluster_resources().get("CPU", 1))) * TASKS_PER_CORE
        waiting = list(reversed(shards))
        open_tasks: dict[Any, Shard] = {}
        try:
            while waiting or open_tasks:
                while waiting and len(open_tasks) < room:
                    shard = waiting.pop()
                    open_tasks[play.remote(msgspec.json.encode(shard))] = shard
                done, _ = ray.wait(list(open_tasks), timeout=1.0)
                for task in done:
                    shard = open_tasks.pop(task)
                    arrays, seconds = ray.get(task)
                    advance(shard, shard.episodes)
                    yield shard, ShardResult(**arrays), seconds
        finally:
            for task in open_tasks:
                ray.cancel(task, force=True)
            if started:
                ray.shutdown()


def _play(encoded: bytes) -> tuple[dict[str, Any], float]:
    """In a worker: one shard on one core."""
    shard = msgspec.json.decode(encoded, type=Shard)
    ((_, result, seconds),) = LocalEngine(threads=1).play([shard], lambda *_: None)
    return msgspec.structs.asdict(result), seconds
