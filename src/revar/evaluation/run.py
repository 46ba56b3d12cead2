"""An evaluation under way: episodes, checkpoints, and what is saved and returned when it stops."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from revar.collection import Collection
from revar.datasets.files import Conditions, save_dataset
from revar.errors import InputError
from revar.estimators.estimator import JointEstimate
from revar.evaluation.goals import Goal, JointCheckpoint
from revar.evaluation.players import EpisodeError, Interrupt, Player, Stopped, VectorPlayer
from revar.evaluation.result import CollectedResult
from revar.evaluation.target_policies import TargetPolicies, TargetPolicy
from revar.evaluation.workers.pool import PoolPlayer
from revar.model.trajectory import Dataset

Progress = Callable[[int, int], None]


class EvaluationError(InputError):
    """What stopped an evaluation; `result` holds what the complete episodes give, if any."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


@dataclass
class Evaluation:
    """What is asked for, what is there, and who plays the next episode."""

    collection: Collection
    player: Player | VectorPlayer | PoolPlayer
    target: TargetPolicy | TargetPolicies
    conditions: Conditions
    goal: Goal
    times: list[int]  # of checkpoints to come
    prior: Dataset | None
    path: Path | None
    interrupt: Interrupt
    checkpoints: list[JointCheckpoint] = field(default_factory=list)
    reached: bool = False  # the goal, at the last checkpoint
    stored: Dataset | None = None  # episodes to be replayed before new ones are played
    stored_generators: tuple[str, ...] | None = None

    def resume_from(self, stored: Dataset, earlier: Conditions) -> None:
        """Go on where an earlier run stopped; everything but the budget must be the same."""
        for name in (
            "environment",
            "strategy",
            "horizon",
            "discount",
            "seed",
            "environments",
            "workers",
            "batch",
            "prior_episodes",
            "options",
            "bins",
            "names",
            "question",
        ):
            before, now = getattr(earlier, name), getattr(self.conditions, name)
            if before != now and not (name in ("options", "bins") and before is None):
                if name == "workers":
                    before, now = before or 1, now or 1
                raise InputError(f"the file was collected with {name} = {before}; now it is {now}")
        if len(stored) > self.conditions.episodes:
            raise InputError(
                f"the file has {len(stored)} episodes, more than the {self.conditions.episodes} "
                f"that are wanted"
            )
        if earlier.policy not in (None, _digest(stored, self.target)):
            raise InputError("the file was collected for another policy")
        self.stored = stored.head(earlier.resumable)
        self.stored_generators = earlier.generators

    def run(self, report: Progress | None) -> CollectedResult:
        """Play until the goal is reached, the budget is spent, or something happens."""
        stopped = "budget"
        trouble: InputError | None = None
        position = self._position()
        budget = self.conditions.episodes
        try:
            self._replay_stored()
            position = self._position()
            while self.collection.finished < budget and not self.reached:
                number = self.collection.finished
                self.player.play(self.collection, number, budget - number)
                position = self._position()
                if self._add_checkpoint():
                    self._save(position)
                if report is not None:
                    report(self.collection.finished, budget)
            if self.collection.finished < budget:
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
            raise EvaluationError(f"episode {episode}: {trouble}", result)
        if result is None:
            raise EvaluationError("stopped before the first episode was complete", None)
        return result

    def _save(self, position: Conditions) -> None:
        dataset = self.collection.dataset
        # What was stopped while it replayed stored episodes has nothing new to write.
        stored = 0 if self.stored is None else len(self.stored)
        if self.path is None or len(dataset) < stored:
            return
        known = msgspec.structs.replace(position, policy=_digest(dataset, self.target))
        save_dataset(dataset, self.path, conditions=known)

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
            end = min(first + self.player.stride, len(self.stored))
            self.player.replay(self.collection, self.stored.part(first, end))
            self._add_checkpoint()
            first = end

    def _add_checkpoint(self) -> bool:
        """Keep an estimate, if it is time for one; whether it was."""
        finished = self.collection.finished
        if not self.times or finished < self.times[0]:
            return False
        self.times = [time for time in self.times if time > finished]
        estimate = self._estimate(self.collection)
        self.checkpoints.append((finished, estimate))
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
                names=collection.states.names,
                combinations=collection.combinations,
            )
            for part in (self.prior, dataset):
                if part is not None and len(part) > 0:
                    collection.learn_from(part, self.target)
        earlier = [point for point in self.checkpoints if point[0] < len(dataset)]
        return self.goal.result(
            [*earlier, (len(dataset), self._estimate(collection))],
            dataset=dataset,
            statistics=collection.statistics,
            task=collection.task,
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
