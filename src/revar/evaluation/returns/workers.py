"""Whole episodes played by workers: each is seeded by its number, so that it never matters who."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from revar.environments.opening import open_environment
from revar.evaluation.returns.paired import make_players
from revar.evaluation.returns.play import EpisodePlayer
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.evaluation.workers.pool import PoolSettings, WorkerPool
from revar.evaluation.workers.queue import BatchQueue
from revar.interrupts import Interrupt
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes


@dataclass(frozen=True)
class EpisodesRequest:
    """Play `count` episodes, number `first` and those that follow."""

    number: int  # of the batch
    first: int
    count: int


@dataclass(frozen=True, eq=False)
class EpisodesBatch:
    """Finished episodes; where something went wrong, those before it."""

    number: int
    episodes: Episodes | None
    fault: str = ""
    fault_episode: int = 0


@dataclass(frozen=True)
class _NoPlan:
    """The policy itself is played, whatever was seen before."""

    version: int = 0


@dataclass(frozen=True)
class EpisodesSetup:
    """All that a worker needs to open its environment and to play."""

    env: Any  # anything that `open_environment` opens
    env_options: dict[str, Any] | None
    policies: dict[str, Any]  # by name; a single one needs none
    horizon: int
    seed: int
    features: Any = None
    cost: Any = None

    def start(self, interrupt: Interrupt | None = None) -> "EpisodesWorker":
        """A worker with an environment of its own."""
        return EpisodesWorker(self, interrupt)

    def parts(self) -> dict[str, Any]:
        """What is sent, by the names under which users gave it."""
        names = ("env", "env_options", "policies", "features", "cost")
        return {name: getattr(self, name) for name in names}


class EpisodesWorker:
    """One environment, in the worker's process."""

    plan: Any = None

    def __init__(self, setup: EpisodesSetup, interrupt: Interrupt | None = None) -> None:
        self.env: Any = open_environment(setup.env, setup.env_options)
        self._player = make_players(
            self.env,
            setup.policies,
            horizon=setup.horizon,
            seed=setup.seed,
            features=setup.features,
            cost=setup.cost,
            interrupt=interrupt,
        )

    @property
    def plan_version(self) -> int:
        """There is one plan only."""
        return _NoPlan().version

    def play(self, request: EpisodesRequest) -> EpisodesBatch:
        """The episodes asked for; where something goes wrong, those before it."""
        try:
            return EpisodesBatch(request.number, self._player.play(request.first, request.count))
        except EpisodeError as error:
            return EpisodesBatch(request.number, error.complete, str(error), error.episode)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


class PoolEpisodes:
    """A player whose episodes workers play, some batches ahead of what was asked for.

    `play` may give fewer episodes than were asked for: those of the next batch.
    """

    width = 1

    def __init__(
        self,
        local: EpisodePlayer,
        settings: PoolSettings,
        start: Callable[[], WorkerPool],
        interrupt: Interrupt,
    ) -> None:
        self._local = local
        self._settings = settings
        self._queue = BatchQueue(start, lambda request: request)
        self._interrupt = interrupt
        self._asked: int | None = None  # episodes up to here are asked for
        self._numbers: dict[int, int] = {}  # of batches, by their first episode
        self._batches = 0

    def play(self, first: int, count: int) -> Episodes:
        """The next batch of these episodes, when it is there."""
        self._ask(first, first + count)
        number = self._numbers.pop(first)
        while number not in self._queue.played:
            if self._interrupt.asked:
                raise Stopped
            self._queue.attend()
        batch: EpisodesBatch = self._queue.played.pop(number)
        if batch.fault:
            error = EpisodeError(batch.fault, batch.fault_episode)
            error.complete = batch.episodes
            raise error
        assert batch.episodes is not None
        return batch.episodes

    def resets(self, first: int, count: int) -> FloatArray:
        """Of the environment that this process has."""
        return self._local.resets(first, count)

    def close(self) -> None:
        """End the workers."""
        self._queue.close()

    def _ask(self, first: int, end: int) -> None:
        """Make requests for what was not asked for yet; every worker has a part of it."""
        begin = first if self._asked is None else self._asked
        share = -(-(end - begin) // self._settings.ahead)
        length = max(1, min(self._settings.longest, share))
        while begin < end:
            count = min(length, end - begin)
            self._queue.waiting.append((EpisodesRequest(self._batches, begin, count), _NoPlan()))
            self._numbers[begin] = self._batches
            self._batches += 1
            begin += count
        self._asked = max(begin, end)
