"""Run an experiment: the shards that are missing, then the tables."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revar.errors import InputError
from revar.experiments.engines import AnyShard, Engine, LocalEngine
from revar.experiments.exact import ExactValues, compute_exact_values
from revar.experiments.experiment import Experiment, check_experiment
from revar.experiments.results import (
    Manifest,
    Results,
    Series,
    read_manifest,
    read_results,
    versions,
    write_results,
)
from revar.experiments.shards import Cell, ShardResult, cells_of, shards_of
from revar.experiments.storage import ShardStore
from revar.interrupts import defer_interrupts, stop_if_interrupted

# (episodes done, episodes in all, what is played)
Progress = Callable[[int, int, str], None]


@defer_interrupts()
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

    Each finished shard is stored at once. After an interrupt (Ctrl-C raises KeyboardInterrupt) the
    next call continues from there, and ends with the same tables; a finished experiment is read.
    """
    sized = check_experiment(experiment).at_size(quick=quick)
    finished = _read_finished(sized, directory, seed)
    if finished is not None:
        return finished
    cells = cells_of(sized, seed)
    parts = [list(shards_of(cell, sized.runs)) for cell in cells]
    stored = play_missing([shard for part in parts for shard in part], directory, engine, progress)
    exact = tuple(_exact_values(sized))
    found = iter(stored)
    series = []
    spent = sum(seconds for _, seconds in stored)
    for cell, part in zip(cells, parts, strict=True):
        results_of_cell = [result for result, _ in itertools.islice(found, len(part))]
        series.append(_merge_shards(cell, results_of_cell, exact))
    manifest = Manifest(
        experiment=sized,
        quick=quick,
        digest=sized.digest(),
        seed=seed,
        versions=versions(),
        seconds=spent,
        exact=exact,
    )
    results = Results(manifest, tuple(series))
    write_results(directory, results)
    return results


def play_missing(
    shards: Sequence[AnyShard],
    directory: Path,
    engine: Engine | None,
    progress: Progress | None,
) -> list[tuple[Any, float]]:
    """Play those shards that are not stored in the directory; what each gave, and its seconds."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"results cannot be stored in {directory}: {error.strerror}") from error
    store = ShardStore(directory / "shards")
    missing = []
    for shard in shards:
        stop_if_interrupted()
        if store.read(shard) is None:
            missing.append(shard)
    tally = _Tally(shards, missing, progress)
    for shard, result, seconds in (engine or LocalEngine()).play(missing, tally.advance):
        store.write(shard, result, seconds)
        tally.finish(shard)
        stop_if_interrupted()
    stored = [store.read(shard) for shard in shards]
    whole = [each for each in stored if each is not None]
    if len(whole) < len(shards):
        raise InputError(f"shards vanished from {store.directory} while they were needed")
    return whole


class _Tally:
    """Counts the episodes played, for a progress bar."""

    def __init__(
        self,
        shards: Sequence[AnyShard],
        missing: Sequence[AnyShard],
        progress: Progress | None,
    ) -> None:
        self.total = sum(shard.episodes for shard in shards)
        self.done = self.total - sum(shard.episodes for shard in missing)
        self.open: dict[int, int] = {}  # episodes of the shards that are being played
        self.progress = progress

    def advance(self, shard: AnyShard, episodes: int) -> None:
        """Note how many episodes of a shard are played."""
        self.open[id(shard)] = episodes
        self._show(shard)

    def finish(self, shard: AnyShard) -> None:
        """Note that a shard is stored."""
        self.open.pop(id(shard), None)
        self.done += shard.episodes
        self._show(shard)

    def _show(self, shard: AnyShard) -> None:
        if self.progress is not None:
            self.progress(self.done + sum(self.open.values()), self.total, shard.title)


def _exact_values(sized: Experiment) -> Iterator[ExactValues]:
    for choice in sized.problem_choices():
        stop_if_interrupted()
        yield compute_exact_values(choice, known_transitions=sized.known_transitions)


def _read_finished(sized: Experiment, directory: Path, seed: int) -> Results | None:
    """Read the results in the directory, if they are complete and of this very experiment."""
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


def _merge_shards(cell: Cell, parts: list[ShardResult], exact: tuple[ExactValues, ...]) -> Series:
    problem, strategy, estimator, budget = cell.label()
    return Series(
        true_value=next(each.value for each in exact if each.problem == problem),
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
