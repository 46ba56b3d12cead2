"""The worker pool: which workers are asked for, and how much each is given at a time."""

from dataclasses import dataclass
from typing import Any, Protocol

from revar.environments.opening import is_environment
from revar.errors import InputError, require_extra
from revar.interrupts import Interrupt
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


class Request(Protocol):
    """Play `count` episodes, number `first` and those that follow."""

    @property
    def number(self) -> int:
        """Of the batch, which will have it, too."""

    @property
    def first(self) -> int:
        """Number of the first episode."""

    @property
    def count(self) -> int:
        """How many."""


class Plan(Protocol):
    """What several requests have in common; sent to a worker that has another version."""

    @property
    def version(self) -> int:
        """Tells plans apart."""


class BatchWorker(Protocol):
    """Plays the batches that it is asked for."""

    plan: Any

    @property
    def plan_version(self) -> int:
        """Which plan it has; -1 for none."""

    def play(self, request: Any) -> Any:
        """The episodes of a request, as a record with its number."""

    def close(self) -> None:
        """Close the environment."""


class Setup(Protocol):
    """All that a worker needs; it can be sent to another process."""

    def start(self, interrupt: Interrupt | None = None) -> BatchWorker:
        """A worker, in the process where this is called."""

    def parts(self) -> dict[str, Any]:
        """What it is made of, by the names under which users gave it."""


@dataclass(frozen=True)
class WorkerDeath:
    """A worker ended with a request in hand; another one has taken its place."""

    request: Request
    how: str


class WorkerPool(Protocol):
    """Workers of one engine, each with one request in hand at most."""

    @property
    def idle(self) -> int:
        """How many requests it can take now."""

    def give(self, request: Any, plan: Any) -> None:
        """Let an idle worker play; it is sent the plan unless it has it."""

    def wait(self, seconds: float) -> list[Any]:
        """Batches that are done, or a WorkerDeath in their place; nothing after `seconds`."""

    def close(self) -> None:
        """End all workers, also those at work."""


class InlinePool:
    """This process itself, one batch after the other. For studies, and for debuggers."""

    def __init__(self, setup: Setup, interrupt: Interrupt) -> None:
        self._worker = setup.start(interrupt)
        self._done: list[Any] = []

    @property
    def idle(self) -> int:
        """One, unless a batch has not been fetched."""
        return 1 - len(self._done)

    def give(self, request: Request, plan: Plan) -> None:
        """Play."""
        self._worker.plan = plan
        self._done.append(self._worker.play(request))

    def wait(self, seconds: float) -> list[Any]:
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

    def start(self, setup: Setup, interrupt: Interrupt) -> WorkerPool:
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
