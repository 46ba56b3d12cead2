"""The parts in which an experiment is run, each a pure function of what it declares.

A cell is one problem, strategy, estimator and budget; a shard is some of its runs. Run i of a cell
draws from the same stream in any shard, so that results do not depend on how runs are divided.
"""

from collections.abc import Callable, Iterator
from typing import ClassVar

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
from revar.model.mdp import TabularMDP
from revar.model.question import Question
from revar.problems import Problem
from revar.simulation.result import log_spaced
from revar.simulation.simulate import simulate
from revar.theory.costs import one_step_costs, variance_of_visits

# About a second: what is lost when the process is killed.
EPISODES_OF_A_SHARD = 500_000
# Files of another layout are not read.
SHARD_VERSION = 1


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One problem, strategy, estimator and budget; `apart` as in `StrategyChoice`."""

    problem: Choice
    strategy: Choice
    estimator: Choice
    budget: int
    at_checkpoints: bool  # whether estimates are made along the way, or at the end alone
    known_transitions: bool
    seed: int
    apart: bool = False

    def label(self) -> tuple[str, str, str, int]:
        """The names that identify this cell."""
        return self.problem.name, self.strategy.name, self.estimator.name, self.budget

    def key(self) -> str:
        """A hash of all that the results depend on, including the code, but not the labels."""
        parts: list[object] = [SHARD_VERSION, SOURCE_STAMP]
        parts += [self.budget, self.at_checkpoints, self.known_transitions, self.seed, self.apart]
        parts += [(c.id, c.options) for c in (self.problem, self.strategy, self.estimator)]
        return digest_of(parts)


class ShardResult(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the runs of a shard gave."""

    checkpoints: IntArray  # [checkpoint]
    estimates: FloatArray  # [run, checkpoint]
    standard_errors: FloatArray  # [run, checkpoint]
    unvisited_probability: FloatArray  # [run, checkpoint]
    variances: FloatArray  # [run] sum of cost / visits after the last episode
    visits: IntArray  # [state, action] summed over the runs


class Shard(msgspec.Struct, frozen=True, kw_only=True, tag="runs"):
    """Some runs of a cell."""

    cell: Cell
    first_run: int
    runs: int
    result_type: ClassVar[type[ShardResult]] = ShardResult

    @property
    def title(self) -> str:
        """What is played, for a progress bar."""
        return f"{self.cell.problem.name}: {self.cell.strategy.name}"

    @property
    def episodes(self) -> int:
        """How many episodes are played."""
        return self.runs * self.cell.budget

    def file_name(self) -> str:
        """Where the shard's result is stored."""
        return f"{self.cell.key()}-{self.first_run:06d}-{self.runs}.npz"

    def play(
        self, *, threads: int | None = None, progress: Callable[[int, int], None] | None = None
    ) -> ShardResult:
        """Play the runs. An interrupt raises KeyboardInterrupt: half a shard is worth nothing.

        It is raised even if all runs had ended, because the shards that follow must stop, too.
        """
        cell = self.cell
        problem = build_problem(cell.problem)
        points = log_spaced(cell.budget) if cell.at_checkpoints else np.array([cell.budget])
        if cell.apart:
            return _play_apart(self, problem, points, threads, progress)
        return _play(self, problem.mdp, problem.question, points, cell.seed, threads, progress)


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
            apart=bool(strategy.apart),
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


def _play(
    shard: Shard,
    mdp: TabularMDP,
    question: Question,
    points: IntArray,
    seed: int,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> ShardResult:
    """Play for one question, up to the last of the checkpoints."""
    cell = shard.cell
    result = simulate(
        mdp,
        question,
        build_strategy(cell.strategy),
        episodes=int(points[-1]),
        runs=shard.runs,
        seed=seed,
        first_run=shard.first_run,
        checkpoints=points,
        estimator=build_estimator(cell.estimator),
        threads=threads,
        progress=progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    costs = one_step_costs(mdp, question, known_transitions=cell.known_transitions)
    return ShardResult(
        checkpoints=points,
        estimates=result.estimates,
        standard_errors=result.standard_errors,
        unvisited_probability=result.unvisited_probability,
        variances=np.array([variance_of_visits(costs, visits) for visits in result.visits]),
        visits=result.visits.sum(axis=0),
    )


def _play_apart(
    shard: Shard,
    problem: Problem,
    points: IntArray,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> ShardResult:
    """Play for each policy by itself, and put their independent estimates together."""
    question = problem.question
    count = len(question.policies)
    shares = points // count  # episodes of each policy
    own_points = np.unique(shares[shares > 0])
    # Streams of their own: errors of one run are independent.
    seeds = np.random.SeedSequence(shard.cell.seed).generate_state(count)
    parts = []
    for number, policy in enumerate(question.policies):
        played = number * shard.runs * int(own_points[-1])

        def report(done: int, total: int, played: int = played) -> None:
            if progress is not None:
                progress(played + done, count * total)

        asked = Question.of_value(policy)
        seed = int(seeds[number])
        parts.append(_play(shard, problem.mdp, asked, own_points, seed, threads, report))

    def at_points(own: FloatArray) -> FloatArray:
        """From the policies' checkpoints to those of the whole; none without an episode of each."""
        return np.where(shares > 0, own[:, np.searchsorted(own_points, shares)], np.nan)

    row = question.combinations.coefficients[0]  # [J]
    estimates = np.tensordot(row, [part.estimates for part in parts], 1)
    variances = np.tensordot(row**2, [part.standard_errors**2 for part in parts], 1)
    return ShardResult(
        checkpoints=points,
        estimates=at_points(estimates),
        standard_errors=at_points(np.sqrt(variances)),
        unvisited_probability=at_points(np.max([p.unvisited_probability for p in parts], axis=0)),
        variances=np.tensordot(row**2, [part.variances for part in parts], 1),
        visits=np.sum([part.visits for part in parts], axis=0),
    )
