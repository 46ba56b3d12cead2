"""An evaluation under way: episodes, checkpoints, and what is saved and returned when it stops."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from revar.collection import Collection
from revar.collection.checkpoints import FIRST_CHECKPOINT
from revar.datasets.files import Conditions
from revar.errors import InputError
from revar.estimators.estimator import JointEstimate
from revar.evaluation.amounts import StepAmounts, spent_on
from revar.evaluation.comparison import JointCheckpoint
from revar.evaluation.episode_file import EpisodeFile
from revar.evaluation.findings import TableFindings
from revar.evaluation.goals import Goal
from revar.evaluation.players import Player, VectorPlayer
from revar.evaluation.result import CollectedResult
from revar.evaluation.resuming import SAME_TABLE, check_same, refuse_overspent
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.evaluation.target_policies import TargetPolicies, TargetPolicy
from revar.evaluation.workers.player import PoolPlayer
from revar.interrupts import Interrupt
from revar.model.trajectory import Dataset

# Called with what is spent of the budget, and with the budget, both in its unit.
Progress = Callable[[Any, Any], None]
# After so many episodes a budget of which nothing is spent is taken for one that never will be.
FREE_EPISODES = 1000


class EvaluationError(InputError):
    """What stopped an evaluation; `result` holds what the complete episodes give, if any."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class UnsavedError(EvaluationError):
    """The episodes could not be written to their file; says where they are instead."""

    exit_code = 1  # the input was fine


@dataclass
class FreeEpisodes:
    """Refuses to go on for ever, where nothing is spent."""

    spent: float = 0.0  # when it last grew
    finished: int = 0  # episodes then

    def check(self, spent: float, finished: int) -> None:
        """So much is spent now, after so many episodes."""
        if spent > self.spent:
            self.spent, self.finished = spent, finished
        free = finished - self.finished
        if free >= FREE_EPISODES:
            raise InputError(
                f"{free:,} episodes in a row have cost nothing, so that the budget would never be "
                f"spent"
            )


@dataclass
class Evaluation:
    """What is asked for, what is there, and who plays the next episode."""

    collection: Collection
    player: Player | VectorPlayer | PoolPlayer
    target: TargetPolicy | TargetPolicies
    amounts: StepAmounts
    conditions: Conditions
    goal: Goal
    times: list[float]  # what is spent at checkpoints to come
    prior: Dataset | None
    file: EpisodeFile
    interrupt: Interrupt
    checkpoints: list[JointCheckpoint] = field(default_factory=list)
    reached: bool = False  # the goal, at the last checkpoint
    free: FreeEpisodes = field(default_factory=FreeEpisodes)
    stored: Dataset | None = None  # episodes to be replayed before new ones are played
    stored_generators: tuple[str, ...] | None = None

    def resume_from(self, stored: Dataset, earlier: Conditions) -> None:
        """Go on where an earlier run stopped; everything but the budget must be the same."""
        check_same(earlier, self.conditions, SAME_TABLE)
        refuse_overspent(stored, earlier, self.goal.budget)
        self.amounts.check_stored(stored)
        if earlier.policy not in (None, _digest(stored, self.target)):
            raise InputError("the file was collected for another policy")
        self.stored = stored.head(earlier.resumable)
        self.stored_generators = earlier.generators

    def run(self, report: Progress | None) -> CollectedResult:
        """Play until the goal is reached, the budget is spent, or something happens."""
        stopped = "budget"
        trouble: InputError | None = None
        position = self._position()
        collection, budget = self.collection, self.goal.budget
        try:
            self._replay_stored()
            position = self._position()
            while collection.affordable() > 0 and not self.reached:
                self.player.play(collection, collection.finished, collection.affordable())
                position = self._position()
                if self._add_checkpoint():
                    self._save(position)
                if report is not None:
                    spent = collection.spent
                    report(spent if budget.unit == "cost" else int(spent), budget.amount)
                self.free.check(collection.spent, collection.finished)
            if collection.affordable() > 0:
                stopped = self.goal.stopped_as
        except (Stopped, KeyboardInterrupt):
            stopped = "interrupted"
        except InputError as error:
            stopped, trouble = "error", error
        except BaseException:  # not ours to judge, SystemExit for one; but nothing is lost
            with self.interrupt.ignore():
                self._save(position)
            raise
        with self.interrupt.ignore():
            return self._conclude(stopped, trouble, position)

    def _conclude(
        self, stopped: str, trouble: InputError | None, position: Conditions
    ) -> CollectedResult:
        """Save what there is, and say what it gives."""
        self._save(position)
        dataset = self.collection.dataset
        enough = len(dataset) + self.collection.prior_episodes > 0
        result = self._result(dataset, stopped, position) if enough else None
        if trouble is not None:
            episode = trouble.episode if isinstance(trouble, EpisodeError) else len(dataset)
            text = f"episode {episode}: {trouble}"
            if self.file.trouble is not None:
                kept = self.file.keep_elsewhere(dataset, self._known(position))
                raise UnsavedError(f"{text}; {kept}", result)
            raise EvaluationError(text, result)
        if result is None:
            raise EvaluationError("stopped before the first episode was complete", None)
        if self.file.trouble is not None:
            kept = self.file.keep_elsewhere(dataset, self._known(position))
            raise UnsavedError(kept, result) from self.file.trouble
        return result

    def _save(self, position: Conditions) -> None:
        dataset = self.collection.dataset
        # What was stopped while it replayed stored episodes has nothing new to write.
        stored = 0 if self.stored is None else len(self.stored)
        if self.file.path is not None and len(dataset) >= stored:
            self.file.write(dataset, self._known(position))

    def _known(self, position: Conditions) -> Conditions:
        digest = _digest(self.collection.dataset, self.target)
        return msgspec.structs.replace(position, policy=digest)

    def _position(self) -> Conditions:
        """The conditions, with what is needed to go on from here."""
        return msgspec.structs.replace(
            self.conditions,
            resumable=self.collection.finished,
            generators=self.player.generators(),
        )

    def _replay_stored(self) -> None:
        """Replay what was played before, with the same checkpoints."""
        if self.stored is None or len(self.stored) == 0:
            return
        self.player.restore(self.stored_generators)
        first = 0
        while first < len(self.stored):
            end = min(first + self.player.stride(self.collection), len(self.stored))
            self.player.replay(self.collection, self.stored.part(first, end))
            self._add_checkpoint()
            first = end

    def _add_checkpoint(self) -> bool:
        """Keep an estimate, if it is time for one; whether it was time."""
        spent, finished = self.collection.spent, self.collection.finished
        if not self.times or spent < self.times[0]:
            return False
        self.times = [time for time in self.times if time > spent]
        by_episode = self.goal.budget.by_episode
        if by_episode or finished >= FIRST_CHECKPOINT or not self.times:
            estimate = self._estimate(self.collection)
            self.checkpoints.append(JointCheckpoint(finished, estimate, spent))
            self.reached = self.goal.is_reached(estimate)
        return True

    def _estimate(self, collection: Collection) -> JointEstimate:
        return collection.joint_estimate(self.goal.confidence)

    def _result(self, dataset: Dataset, stopped: str, position: Conditions) -> CollectedResult:
        collection = self.collection
        if stopped in ("interrupted", "error"):
            # Steps of an episode that was not finished do not count.
            collection = Collection(
                "on-policy",
                horizon=collection.horizon,
                discount=collection.discount,
                actions=collection.actions,
                budget=collection.budget,
                limits=collection.limits,
                names=collection.states.names,
                combinations=collection.combinations,
            )
            if self.prior is not None and len(self.prior) > 0:
                collection.learn_from(self.prior, self.target)
            if len(dataset) > 0:
                keys = [dataset.label_of(state) for state in range(dataset.states_seen)]
                numbered = dataset.renumbered(collection.number_states(keys))
                collection.add(0, numbered, self.target)
        earlier = [point for point in self.checkpoints if point.episodes < len(dataset)]
        spent = spent_on(dataset, self.goal.budget)
        last = JointCheckpoint(len(dataset), self._estimate(collection), spent)
        return self.goal.result(
            [*earlier, last],
            dataset=dataset,
            findings=TableFindings(
                statistics=collection.statistics,
                task=collection.task,
                method=last.estimate.method,
                on_policy=self.collection.strategy.id == "on-policy"
                and self.collection.prior_episodes == 0,
                limits=self.collection.limits,
            ),
            strategy=self.collection.strategy.id,
            seed=self.collection.seed,
            stopped=stopped,
            prior_episodes=self.collection.prior_episodes,
            conditions=position,
        )


def _digest(dataset: Dataset, target: TargetPolicy | TargetPolicies) -> str:
    """A fingerprint of the policy over the states in which the episodes acted."""
    rows = [target(dataset.label_of(state)) for state in np.unique(dataset.states).tolist()]
    return hashlib.sha256(np.round(np.array(rows, dtype=np.float64), 9).tobytes()).hexdigest()
