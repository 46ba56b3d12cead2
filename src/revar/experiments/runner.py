"""Running an experiment: the shards that are not there yet, then the tables."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from revar.errors import InputError
from revar.experiments.engines import Engine, LocalEngine
from revar.experiments.facts import Facts, facts_of
from revar.experiments.results import (
    Manifest,
    Results,
    Series,
    read_manifest,
    read_results,
    versions,
    write_results,
)
from revar.experiments.shards import Cell, Shard, ShardResult, cells_of, shards_of
from revar.experiments.specification import Experiment, checked
from revar.experiments.store import ShardStore

# (steps done, steps in all, what is being played)
Progress = Callable[[int, int, str], None]


def run_experiment(
    experiment: Experiment,
    directory: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run an experiment and store its results in `directory`.

    Shards are stored as they are finished. An interrupted experiment (Ctrl-C raises
    KeyboardInterrupt) goes on from there when it is called again, and ends with the same tables; a
    finished one is read.
    """
    sized = checked(experiment).at_size(quick=quick)
    finished = _finished(sized, directory, seed)
    if finished is not None:
        return finished
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"results cannot be stored in {directory}: {error.strerror}") from error
    cells = cells_of(sized, seed)
    parts = [list(shards_of(cell, sized.runs)) for cell in cells]
    shards = [shard for part in parts for shard in part]
    store = ShardStore(directory / "shards")
    missing = [shard for shard in shards if store.read(shard) is None]
    tally = _Tally(shards, missing, progress)
    for shard, result, seconds in (engine or LocalEngine()).play(missing, tally.advance):
        store.write(shard, result, seconds)
        tally.finish(shard)
    facts = tuple(
        facts_of(choice, known_transitions=sized.known_transitions)
        for choice in sized.problem_choices()
    )
    series = []
    spent = 0.0
    for cell, part in zip(cells, parts, strict=True):
        stored = [store.read(shard) for shard in part]
        whole = [each for each in stored if each is not None]
        if len(whole) < len(part):
            raise InputError(f"shards vanished from {store.directory} while they were needed")
        spent += sum(seconds for _, seconds in whole)
        series.append(_joined(cell, [result for result, _ in whole], facts))
    manifest = Manifest(
        experiment=sized,
        quick=quick,
        digest=sized.digest(),
        seed=seed,
        versions=versions(),
        seconds=spent,
        facts=facts,
    )
    results = Results(manifest, tuple(series))
    write_results(directory, results)
    return results


class _Tally:
    """How much of an experiment is done."""

    def __init__(
        self, shards: list[Shard], missing: list[Shard], progress: Progress | None
    ) -> None:
        self.total = sum(shard.episodes for shard in shards)
        self.done = self.total - sum(shard.episodes for shard in missing)
        self.open: dict[int, int] = {}  # episodes of the shards that are being played
        self.progress = progress

    def advance(self, shard: Shard, episodes: int) -> None:
        """Note how far a shard is."""
        self.open[id(shard)] = episodes
        self._show(shard)

    def finish(self, shard: Shard) -> None:
        """Note that a shard is stored."""
        self.open.pop(id(shard), None)
        self.done += shard.episodes
        self._show(shard)

    def _show(self, shard: Shard) -> None:
        if self.progress is not None:
            cell = shard.cell
            self.progress(
                self.done + sum(self.open.values()),
                self.total,
                f"{cell.problem.name}: {cell.strategy.name}",
            )


def _finished(sized: Experiment, directory: Path, seed: int) -> Results | None:
    """The results in the directory, if they are those of this very experiment and whole."""
    try:
        manifest = read_manifest(directory)
        if (manifest.digest, manifest.seed, manifest.versions) != (
            sized.digest(),
            seed,
            versions(),
        ):
            return None
        return read_results(directory)
    except InputError:
        return None


def _joined(cell: Cell, parts: list[ShardResult], facts: tuple[Facts, ...]) -> Series:
    problem, strategy, estimator, budget = cell.label()
    return Series(
        true_value=next(each.value for each in facts if each.problem == problem),
        problem=problem,
        strategy=strategy,
        estimator=estimator,
        budget=budget,
        checkpoints=parts[0].checkpoints,
        estimates=np.concatenate([part.estimates for part in parts]),
        standard_errors=np.concatenate([part.standard_errors for part in parts]),
        unvisited_probability=np.concatenate([part.unvisited_probability for part in parts]),
        variances=np.concatenate([part.variances for part in parts]),
        visits=np.sum([part.visits for part in parts], axis=0),
    )
