"""The parts in which an experiment is run, each a pure function of what it declares.

A cell is one problem, strategy, estimator and budget; a shard is some of its runs. Run i of a cell
draws from the same stream in any shard, so that results do not depend on how runs are divided.
"""

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from revar.compilation import SOURCE_STAMP
from revar.experiments.experiment import (
    Choice,
    Experiment,
    build_estimator,
    build_problem,
    build_strategy,
    digest_of,
)
from revar.model.arrays import FloatArray, IntArray
from revar.simulation.simulate import simulate
from revar.theory.costs import one_step_costs, variance_of_visits

# About a second: what is lost when the process is killed.
EPISODES_OF_A_SHARD = 500_000
# Files of another layout are not read.
SHARD_VERSION = 1


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One problem, strategy, estimator and budget."""

    problem: Choice
    strategy: Choice
    estimator: Choice
    budget: int
    at_checkpoints: bool  # whether estimates are made along the way, or at the end alone
    known_transitions: bool
    seed: int

    def label(self) -> tuple[str, str, str, int]:
        """The names that identify this cell."""
        return self.problem.name, self.strategy.name, self.estimator.name, self.budget

    def key(self) -> str:
        """A hash of all that the results depend on, including the code, but not the labels."""
        parts: list[object] = [SHARD_VERSION, SOURCE_STAMP]
        parts += [self.budget, self.at_checkpoints, self.known_transitions, self.seed]
        parts += [(c.id, c.options) for c in (self.problem, self.strategy, self.estimator)]
        return digest_of(parts)


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """Some runs of a cell."""

    cell: Cell
    first_run: int
    runs: int

    @property
    def episodes(self) -> int:
        """How many episodes are played."""
        return self.runs * self.cell.budget

    def file_name(self) -> str:
        """Where the shard's result is stored."""
        return f"{self.cell.key()}-{self.first_run:06d}-{self.runs}.npz"


class ShardResult(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the runs of a shard gave."""

    checkpoints: IntArray  # [checkpoint]
    estimates: FloatArray  # [run, checkpoint]
    standard_errors: FloatArray  # [run, checkpoint]
    unvisited_probability: FloatArray  # [run, checkpoint]
    variances: FloatArray  # [run] sum of cost / visits after the last episode
    visits: IntArray  # [state, action] summed over the runs


def cells_of(experiment: Experiment, seed: int) -> list[Cell]:
    """Every cell, in the order of the declaration."""
    return [
        Cell(
            problem=problem,
            strategy=Choice(id=strategy.id, label=strategy.name, options=strategy.options),
            estimator=estimator,
            budget=budget,
            at_checkpoints=isinstance(experiment.episodes, int),
            known_transitions=experiment.known_transitions,
            seed=seed,
        )
        for problem in experiment.problem_choices()
        for strategy in experiment.strategy_choices()
        for estimator in experiment.estimator_choices(strategy)
        for budget in experiment.budgets()
    ]


def shards_of(cell: Cell, runs: int) -> Iterator[Shard]:
    """The cell's runs in parts of about equal work."""
    size = max(1, min(runs, EPISODES_OF_A_SHARD // cell.budget))
    for first in range(0, runs, size):
        yield Shard(cell=cell, first_run=first, runs=min(size, runs - first))


def play_shard(
    shard: Shard,
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ShardResult:
    """Play the shard's runs. An interrupt raises KeyboardInterrupt: half a shard is worth nothing.

    It is raised even if all runs had ended, because the shards that follow must stop, too.
    """
    cell = shard.cell
    problem = build_problem(cell.problem)
    result = simulate(
        problem.mdp,
        problem.policy,
        build_strategy(cell.strategy),
        episodes=cell.budget,
        runs=shard.runs,
        seed=cell.seed,
        first_run=shard.first_run,
        checkpoints=None if cell.at_checkpoints else [cell.budget],
        estimator=build_estimator(cell.estimator),
        threads=threads,
        progress=progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    costs = one_step_costs(problem.mdp, problem.policy, known_transitions=cell.known_transitions)
    return ShardResult(
        checkpoints=result.checkpoints,
        estimates=result.estimates,
        standard_errors=result.standard_errors,
        unvisited_probability=result.unvisited_probability,
        variances=np.array([variance_of_visits(costs, visits) for visits in result.visits]),
        visits=result.visits.sum(axis=0),
    )
