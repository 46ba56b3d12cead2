"""An evaluation from returns under way: episodes, looks, and what is saved and returned."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import msgspec
import numpy as np

from revar.collection.checkpoints import FIRST_CHECKPOINT
from revar.collection.spending import count_affordable
from revar.datasets.files import Conditions
from revar.errors import InputError
from revar.evaluation.amounts import spent_on
from revar.evaluation.episode_file import EpisodeFile
from revar.evaluation.result import Checkpoint, CollectedResult
from revar.evaluation.returns.fingerprint import Identity
from revar.evaluation.returns.fitting import ReturnEstimator
from revar.evaluation.returns.paired import PairedEpisodes, PairedEstimator
from revar.evaluation.returns.play import EpisodePlayer
from revar.evaluation.returns.workers import PoolEpisodes
from revar.evaluation.run import EvaluationError, FreeEpisodes, UnsavedError
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.interrupts import Interrupt
from revar.model.amounts import COST, EpisodeTotals
from revar.model.budget import Budget
from revar.model.episodes import Episodes

PIECE_SECONDS = 0.5  # between two reports of progress, about
# Among the first episodes, so many that begin in different ways, and each like the earlier one of
# its number, show that critics know them; with fewer that may be chance.
FIRST_EPISODES = 64
SHOWN_BY = 8

# Called with what is spent, the budget, and what is being done.
Report = Callable[[Any, Any, str], None]


@dataclass
class ReturnEvaluation:
    """What is asked for, what is there, and who plays the next episodes.

    Episodes are played in rounds, each as long as is sure to fit before the next checkpoint. So
    what is played, and what is looked at, follows from the episodes alone: not from who plays
    them, nor from how long that takes. Stored episodes take the place of those that they are.
    """

    player: EpisodePlayer | PairedEpisodes | PoolEpisodes
    goal: Any  # a ValueGoal, or with several policies a ComparisonGoal
    estimator: ReturnEstimator | PairedEstimator
    conditions: Conditions
    identity: Identity  # of the policies and the environment
    file: EpisodeFile
    interrupt: Interrupt
    stored: Episodes | None = None
    finished: int = 0  # episodes
    spent: float = 0.0
    playing: float = 0.0  # seconds
    checkpoints: list[Any] = field(default_factory=list)
    findings: Any = None  # of the last checkpoint
    free: FreeEpisodes = field(default_factory=FreeEpisodes)
    _parts: list[Episodes] = field(default_factory=list)
    _totals: EpisodeTotals = field(default_factory=lambda: EpisodeTotals((COST,)))

    def __post_init__(self) -> None:
        self._times = self.goal.times
        self._piece = int(self.player.width)

    @property
    def episodes(self) -> Episodes | None:
        """All that are complete."""
        if len(self._parts) > 1:
            self._parts = [Episodes.join(self._parts)]
        return self._parts[0] if self._parts else None

    def run(self, report: Report | None) -> CollectedResult:
        """Play until the interval is narrow, the budget is spent, or something happens."""
        stopped = "budget"
        trouble: InputError | None = None
        try:
            while self._times:
                self._play(self._round(), report)
                self.free.check(self.spent, self.finished)
                if self._add_checkpoint(report) and self._times:
                    stopped = self.goal.stopped_as
                    break
        except (Stopped, KeyboardInterrupt):
            stopped = "interrupted"
        except InputError as error:
            stopped, trouble = "error", error
        except BaseException:  # not ours to judge, SystemExit for one; but nothing is lost
            self._save()
            raise
        return self._conclude(stopped, trouble, report)

    def _round(self) -> int:
        """How many episodes are sure to be begun before the next checkpoint; one at least."""
        unit, until = self.goal.budget.unit, self._times[0]
        budget = Budget(until if unit == "cost" else ceil(until), unit)
        horizon = self.estimator.horizon
        return max(1, count_affordable(budget, self.spent, self._totals, horizon, 0, None))

    def _play(self, count: int, report: Report | None) -> None:
        end = self.finished + count
        try:
            while self.finished < end:
                self._tell(report, "collecting")
                early = self.finished < FIRST_EPISODES
                self._add(self._next(end))
                if early and isinstance(self.estimator, ReturnEstimator) and self.episodes:
                    self.estimator.refuse_known(self.episodes, SHOWN_BY)
        except (EpisodeError, Stopped) as error:
            self._add(error.complete)
            raise

    def _next(self, end: int) -> Episodes:
        """The next of the stored episodes, or of those that are played; up to `end`."""
        first = self.finished
        if self.stored is not None and first < len(self.stored):
            if self.interrupt.asked:
                raise Stopped
            return self.stored.part(first, min(end, len(self.stored)))
        pool = isinstance(self.player, PoolEpisodes)
        count = end - first if pool else min(end - first, self._piece)
        begun = time.perf_counter()
        played = self.player.play(first, count)
        took = time.perf_counter() - begun
        self.playing += took
        faster = PIECE_SECONDS / max(took, 1e-9)
        width = self.player.width
        self._piece = max(width, int(len(played) * min(faster, 4.0)) // width * width)
        return played

    def _add(self, part: Episodes | None) -> None:
        if part is None or len(part) == 0:
            return
        self._parts.append(part)
        self.finished += len(part)
        self.spent += spent_on(part, self.goal.budget)
        if COST in part.amounts:
            costs = np.add.reduceat(part.amounts[COST], part.start[:-1])
            self._totals.add(costs[:, None])

    def _add_checkpoint(self, report: Report | None) -> bool:
        """Save if it is time, and look if that may end the run; whether it does."""
        if self.spent < self._times[0]:
            return False
        self._times = [time for time in self._times if time > self.spent]
        self._save()
        early = not self.goal.budget.by_episode and self.finished < FIRST_CHECKPOINT
        missing = self.finished < self.estimator.policies
        if not self.goal.looks or missing or (early and self._times):
            return False
        estimate: Any = self._look(report)
        return self.estimator.is_enough(self.goal, estimate)

    def _tell(self, report: Report | None, what: str) -> None:
        if report is not None:
            spent = self.spent if self.goal.budget.unit == "cost" else int(self.spent)
            report(spent, self.goal.budget.amount, what)

    def _look(self, report: Report | None) -> Any:
        """The estimate from all episodes; critics learn anew."""
        assert self.episodes is not None
        if self.checkpoints and self.checkpoints[-1].episodes == self.finished:
            return self.checkpoints[-1].estimate
        if self.estimator.method == "critic":
            self._tell(report, "fitting critics")
        estimate: Any
        estimate, self.findings = self.estimator.find(self.episodes, self.playing)
        self.checkpoints.append(Checkpoint(self.finished, estimate, self.spent))
        return estimate

    def _conclude(
        self, stopped: str, trouble: InputError | None, report: Report | None
    ) -> CollectedResult:
        """Save what there is, and say what it gives."""
        self._save()
        result, decided = None, self.estimator.resets.each
        if self.finished >= self.estimator.policies:
            try:
                result = self._result(stopped, report)
            except InputError as error:  # of critics or resets: the returns are still there
                trouble = trouble or error
                self.estimator.method = "mean"
                result = self._result("error", report)
            except KeyboardInterrupt:  # the second, while critics learned
                self.estimator.method = "mean"
                result = self._result("interrupted", report)
            if self.estimator.resets.each != decided:
                self._save()
        if trouble is not None:
            where = f"episode {trouble.episode}: " if isinstance(trouble, EpisodeError) else ""
            text = f"{where}{trouble}"
            if self.file.trouble is not None:
                kept = self.file.keep_elsewhere(self.episodes, self._conditions())
                raise UnsavedError(f"{text}; {kept}", result)
            raise EvaluationError(text, result)
        if result is None:
            whose = "the first episode" if self.estimator.policies == 1 else "one of every policy"
            raise EvaluationError(f"stopped before {whose} was complete", None)
        if self.file.trouble is not None:
            kept = self.file.keep_elsewhere(self.episodes, self._conditions())
            raise UnsavedError(kept, result) from self.file.trouble
        return result

    def _save(self) -> None:
        # What was stopped among the stored episodes has nothing new to write.
        stored = 0 if self.stored is None else len(self.stored)
        if self.file.path is None or self.finished == 0 or self.finished < stored:
            return
        with self.interrupt.ignore():
            self.file.write(self.episodes, self._conditions())

    def _conditions(self) -> Conditions:
        """The conditions, with what is needed to go on from here."""
        assert self.episodes is not None
        return msgspec.structs.replace(
            self.conditions,
            resumable=self.finished,
            generators=(),
            resets=self.estimator.resets.each,
            **self.identity.noted(self.episodes),
        )

    def _result(self, stopped: str, report: Report | None) -> CollectedResult:
        self._look(report)
        return self.estimator.result(
            self.goal,
            self.checkpoints,
            dataset=self.episodes,
            findings=self.findings,
            strategy="on-policy",
            seed=self.estimator.seed,
            stopped=stopped,
            prior_episodes=self.estimator.prior_episodes,
            conditions=self._conditions(),
        )
