"""Results of an experiment, and its three tables and manifest on disk (docs/experiments.md)."""

import itertools
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from revar.compilation import SOURCE_STAMP
from revar.errors import InputError
from revar.experiments.exact import ExactValues
from revar.experiments.experiment import Experiment
from revar.experiments.shards import cells_of
from revar.experiments.storage import Columns, read_table, replace_file, write_table
from revar.model.arrays import FloatArray, IntArray
from revar.simulation.result import RunEstimates

SCHEMA_VERSION = 1
MANIFEST = "experiment.json"
TABLES = ("estimates", "allocations", "visits")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A finished experiment without the numbers of its runs."""

    schema_version: int = SCHEMA_VERSION
    experiment: Experiment
    quick: bool
    digest: str  # of the experiment as it was run
    seed: int
    versions: dict[str, str]
    seconds: float  # spent on the runs, whenever that was
    exact: tuple[ExactValues, ...] = msgspec.field(name="facts")  # its name in the file


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Series(RunEstimates):
    """The runs of one problem, strategy, estimator and budget."""

    problem: str
    budget: int
    variances: FloatArray  # [run] sum of cost / visits after the last episode
    visits: IntArray  # [state, action] after the last episode, summed over the runs

    @property
    def scaled(self) -> FloatArray:
        """K*MSE at every checkpoint, [checkpoint]."""
        return np.asarray(self.checkpoints * self.mse)

    @property
    def scaled_standard_error(self) -> FloatArray:
        """The standard error of `scaled`, [checkpoint]."""
        return np.asarray(self.checkpoints * self.mse_standard_error)

    def label(self) -> tuple[str, str, str, int]:
        """The names that identify this series."""
        return self.problem, self.strategy, self.estimator, self.budget


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """A finished experiment."""

    manifest: Manifest
    series: tuple[Series, ...]

    def __repr__(self) -> str:
        return f"Results(experiment={self.experiment.name!r}, series={len(self.series)})"

    @property
    def experiment(self) -> Experiment:
        """What was run."""
        return self.manifest.experiment

    def problems(self) -> list[str]:
        """The labels of the problems, in order."""
        return [exact.problem for exact in self.manifest.exact]

    def strategies(self) -> list[str]:
        """The labels of the strategies, in order."""
        return [choice.name for choice in self.experiment.strategy_choices()]

    def exact(self, problem: str) -> ExactValues:
        """What theory says of the problem."""
        return next(exact for exact in self.manifest.exact if exact.problem == problem)

    def of(
        self, problem: str | None = None, strategy: str | None = None, budget: int | None = None
    ) -> list[Series]:
        """The series of a problem, a strategy, a budget, in the order of the declaration."""
        return [
            series
            for series in self.series
            if problem in (None, series.problem)
            and strategy in (None, series.strategy)
            and budget in (None, series.budget)
        ]


def versions() -> dict[str, str]:
    """Versions that the numbers depend on; `source` is a digest of the numerical code."""
    packages = ("revar-rl", "numpy", "scipy", "numba")
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "source": SOURCE_STAMP[:16],
    }


def write_results(directory: Path, results: Results) -> None:
    """Write the tables, then the manifest: where there is a manifest, the tables are complete."""
    manifest = results.manifest
    metadata = {
        "schema_version": str(manifest.schema_version),
        "experiment": manifest.experiment.name,
        "digest": manifest.digest,
        "seed": str(manifest.seed),
        **manifest.versions,
    }
    (directory / MANIFEST).unlink(missing_ok=True)
    columns = (_estimates(results), _allocations(results), _visits(results))
    for name, table in zip(TABLES, columns, strict=True):
        write_table(directory / name, table, metadata)
    with replace_file(directory / MANIFEST) as new:
        new.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of a finished experiment."""
    path = directory / MANIFEST
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{directory} holds no finished experiment: there is no {MANIFEST}"
        ) from error
    try:
        declared = msgspec.json.decode(text)
        found = declared.get("schema_version") if isinstance(declared, dict) else None
        if found != SCHEMA_VERSION:
            raise InputError(f"{path} has schema {found}; this revar reads schema {SCHEMA_VERSION}")
        return msgspec.convert(declared, Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{path} is not a manifest: {error}") from error


def read_results(directory: Path) -> Results:
    """Read a finished experiment."""
    manifest = read_manifest(directory)
    tables = [read_table(directory / name, words=KEYS) for name in TABLES]
    try:
        return Results(manifest, tuple(_read_series(manifest, *tables)))
    except (KeyError, ValueError) as error:
        raise InputError(f"the tables in {directory} do not fit their manifest") from error


Label = tuple[str, str, str, int]
KEYS = ("problem", "strategy", "estimator", "budget")


def _read_series(
    manifest: Manifest, estimates: Columns, allocations: Columns, visits: Columns
) -> Iterator[Series]:
    """The series that the manifest declares; ValueError where the tables hold anything else."""
    exact = {each.problem: each for each in manifest.exact}
    runs = np.arange(manifest.experiment.runs)
    groups = zip(_groups(estimates), _groups(allocations), _groups(visits), strict=True)
    promised = [cell.label() for cell in cells_of(manifest.experiment, manifest.seed)]
    for label, found in zip(promised, groups, strict=True):
        if any(each != label for each, _ in found):
            raise ValueError
        estimated, allocated, visited = (rows for _, rows in found)
        problem, strategy, estimator, budget = label
        checkpoints = np.unique(estimates["episodes"][estimated])
        shape = (runs.size, checkpoints.size)
        for column, expected in (
            (estimates["run"][estimated], np.repeat(runs, checkpoints.size)),
            (estimates["episodes"][estimated], np.tile(checkpoints, runs.size)),
            (allocations["run"][allocated], runs),
        ):
            if not np.array_equal(column, expected):
                raise ValueError
        yield Series(
            true_value=exact[problem].value,
            problem=problem,
            strategy=strategy,
            estimator=estimator,
            budget=budget,
            checkpoints=checkpoints,
            estimates=estimates["estimate"][estimated].reshape(shape),
            standard_errors=estimates["standard_error"][estimated].reshape(shape),
            unvisited_probability=estimates["unvisited_probability"][estimated].reshape(shape),
            variances=allocations["variance"][allocated],
            visits=visits["visits"][visited].reshape(exact[problem].states, exact[problem].actions),
        )


def _groups(columns: Columns) -> Iterator[tuple[Label, slice]]:
    """The rows of each series: they stand together, in the order of the declaration."""
    length = columns["budget"].size
    if length == 0:
        return
    changes = np.zeros(length - 1, dtype=bool)
    for name in KEYS:
        changes |= columns[name][1:] != columns[name][:-1]
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), length]
    for start, end in itertools.pairwise(edges):
        problem, strategy, estimator, budget = (columns[name][start] for name in KEYS)
        yield (str(problem), str(strategy), str(estimator), int(budget)), slice(start, end)


def _labels(results: Results, rows: list[int]) -> Columns:
    """The key columns, each series' label repeated for its rows."""
    labels = [series.label() for series in results.series]
    return {name: np.repeat([label[i] for label in labels], rows) for i, name in enumerate(KEYS)}


def _estimates(results: Results) -> Columns:
    series = results.series
    return _labels(results, [s.estimates.size for s in series]) | {
        "run": _concatenate(np.repeat(np.arange(s.runs), s.checkpoints.size) for s in series),
        "episodes": _concatenate(np.tile(s.checkpoints, s.runs) for s in series),
        "estimate": _concatenate(s.estimates.ravel() for s in series),
        "standard_error": _concatenate(s.standard_errors.ravel() for s in series),
        "unvisited_probability": _concatenate(s.unvisited_probability.ravel() for s in series),
    }


def _allocations(results: Results) -> Columns:
    series = results.series
    return _labels(results, [s.runs for s in series]) | {
        "run": _concatenate(np.arange(s.runs) for s in series),
        "variance": _concatenate(s.variances for s in series),
    }


def _visits(results: Results) -> Columns:
    series = results.series
    return _labels(results, [s.visits.size for s in series]) | {
        "state": _concatenate(
            np.repeat(np.arange(len(s.visits)), s.visits.shape[1]) for s in series
        ),
        "action": _concatenate(
            np.tile(np.arange(s.visits.shape[1]), len(s.visits)) for s in series
        ),
        "visits": _concatenate(s.visits.ravel() for s in series),
    }


def _concatenate(parts: Iterator[Any]) -> np.ndarray[Any, Any]:
    return np.concatenate(list(parts))
