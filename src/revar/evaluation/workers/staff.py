"""Staff: which workers an evaluation asks for, checked, and the player that they make."""

from dataclasses import dataclass
from typing import Any

from revar.collection import Collection
from revar.environments.bins import Bins
from revar.environments.opening import is_environment
from revar.errors import InputError, require_extra
from revar.evaluation.interrupts import Interrupt
from revar.evaluation.policies import TargetPolicy
from revar.evaluation.workers.crew import Assignment, Crew
from revar.evaluation.workers.player import CrewPlayer
from revar.evaluation.workers.rule import BatchRule, default_batch
from revar.model.validation import checked_count

ENGINES = ("processes", "ray", "inline")


@dataclass(frozen=True)
class Staff:
    """So many workers of one engine, and the rule of their batches."""

    engine: str
    address: str | None
    rule: BatchRule

    def player(
        self,
        collection: Collection,
        env: Any,
        env_options: dict[str, Any] | None,
        policy: Any,
        bins: Bins | None,
        target: TargetPolicy,
        interrupt: Interrupt,
    ) -> CrewPlayer:
        """Plays the collection; workers are started with its first batch."""
        assignment = Assignment(
            env,
            env_options,
            policy,
            bins,
            collection.strategy,
            collection.horizon,
            collection.discount,
            collection.episodes or 0,
            collection.seed,
            collection.prior_episodes,
        )
        return CrewPlayer(
            collection, target, self.rule, lambda: self._crew(assignment, interrupt), interrupt
        )

    def _crew(self, assignment: Assignment, interrupt: Interrupt) -> Crew:
        if self.engine == "inline":
            from revar.evaluation.workers.inline import InlineCrew  # noqa: PLC0415

            return InlineCrew(assignment, interrupt)
        if self.engine == "ray":
            from revar.evaluation.workers.actors import RayCrew  # noqa: PLC0415

            return RayCrew(assignment, self.rule.workers, self.address)
        from revar.evaluation.workers.processes import ProcessCrew  # noqa: PLC0415

        return ProcessCrew(assignment, self.rule.workers)


def staff_of(
    env: Any,
    workers: int | None,
    engine: str,
    batch: int | None,
    address: str | None,
    episodes: int,
    environments: int,
) -> Staff | None:
    """The workers that are asked for, None where this process is to play by itself."""
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
    count = checked_count(workers, "workers")
    if environments > 1 or hasattr(env, "num_envs"):
        raise InputError("workers play one environment each; give workers or environments")
    if is_environment(env):
        raise InputError(
            f"workers open the environment themselves; give its id, 'module:factory' or a "
            f"function that makes it, not the {type(env).__name__}"
        )
    if engine == "ray":
        require_extra("ray", "ray")
    longest = default_batch(episodes, count) if batch is None else checked_count(batch, "batch")
    return Staff(engine, address, BatchRule(count, longest))
