"""Running a study of critics, and what it gives: a table of runs and a manifest on disk."""

from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import msgspec
import numpy as np

from revar.errors import InputError
from revar.experiments.critics import (
    CriticShardResult,
    CriticStudy,
    critic_shards,
    digest_of_sources,
)
from revar.experiments.engines import Engine
from revar.experiments.results import MANIFEST, versions
from revar.experiments.runner import Progress, play_missing
from revar.experiments.storage import Columns, read_table, replace_file, write_table
from revar.interrupts import defer_interrupts
from revar.model.arrays import FloatArray

SCHEMA_VERSION = 1
TABLE = "runs"
KIND = "critics"


class CriticManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A finished study without the numbers of its runs."""

    kind: str = KIND
    schema_version: int = SCHEMA_VERSION
    experiment: CriticStudy  # as it was run
    quick: bool
    digest: str
    seed: int
    versions: dict[str, str]
    seconds: float


@dataclass(frozen=True, eq=False)
class CriticSeries:
    """The runs of a problem at a size."""

    problem: str
    episodes: int
    true_value: float
    true_value_error: float
    runs: CriticShardResult

    @property
    def ratios(self) -> FloatArray:
        """The variance of the value over that of the mean return of the same episodes, [run]."""
        return np.asarray((self.runs.standard_errors / self.runs.mean_return_errors) ** 2)

    @property
    def deviations(self) -> FloatArray:
        """The error of every run in standard errors, [run]."""
        spread = np.hypot(self.runs.standard_errors, self.true_value_error)
        return np.asarray((self.runs.values - self.true_value) / spread)

    @property
    def coverage(self) -> float:
        """How often the interval holds."""
        error = np.abs(self.runs.values - self.true_value)
        return float(np.mean(error <= self.runs.half_widths))

    @property
    def coverage_error(self) -> float:
        """The standard error of the coverage, if it is 95%."""
        return sqrt(0.95 * 0.05 / self.runs.values.size)


@dataclass(frozen=True, eq=False)
class CriticResults:
    """A finished study."""

    manifest: CriticManifest
    series: tuple[CriticSeries, ...]

    @property
    def experiment(self) -> CriticStudy:
        """What was run."""
        return self.manifest.experiment


@defer_interrupts()
def run_critic_study(
    study: CriticStudy,
    directory: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> CriticResults:
    """Run the study and store its results in `directory`; what is stored is not run again."""
    sized = study.at_size(quick=quick)
    found = _read_finished(sized, directory, seed)
    if found is not None:
        return found
    shards = critic_shards(sized, seed)
    stored = play_missing(shards, directory, engine, progress)
    fields = CriticShardResult.__struct_fields__
    lengths = [shard.runs for shard in shards]
    columns: Columns = {
        "problem": np.repeat([shard.problem.name for shard in shards], lengths),
        "episodes": np.repeat([shard.budget for shard in shards], lengths),
        "run": np.concatenate([shard.first_run + np.arange(shard.runs) for shard in shards]),
        **{
            name: np.concatenate([getattr(result, name) for result, _ in stored]) for name in fields
        },
    }
    manifest = CriticManifest(
        experiment=sized,
        quick=quick,
        digest=sized.digest(),
        seed=seed,
        versions=_versions(),
        seconds=sum(seconds for _, seconds in stored),
    )
    (directory / MANIFEST).unlink(missing_ok=True)
    write_table(directory / TABLE, columns, {"digest": manifest.digest, **manifest.versions})
    with replace_file(directory / MANIFEST) as new:
        new.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return CriticResults(manifest, _series(manifest, columns))


def _versions() -> dict[str, str]:
    return versions() | {"critics": digest_of_sources()}


def _read_finished(sized: CriticStudy, directory: Path, seed: int) -> CriticResults | None:
    """The results in the directory, if they are complete and of this very study."""
    try:
        found = read_critic_results(directory)
    except InputError:
        return None
    now = (sized.digest(), seed, _versions())
    made = found.manifest
    return found if (made.digest, made.seed, made.versions) == now else None


def holds_critic_study(directory: Path) -> bool:
    """Whether the finished experiment in a folder is a study of critics."""
    try:
        declared = msgspec.json.decode((directory / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return isinstance(declared, dict) and declared.get("kind") == KIND


def read_critic_results(directory: Path) -> CriticResults:
    """Read a finished study."""
    path = directory / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=CriticManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path} is not the manifest of a study of critics: {error}") from error
    try:
        return CriticResults(
            manifest, _series(manifest, read_table(directory / TABLE, words=("problem",)))
        )
    except (KeyError, ValueError) as error:
        raise InputError(f"the table in {directory} does not fit its manifest") from error


def _series(manifest: CriticManifest, columns: Columns) -> tuple[CriticSeries, ...]:
    found = []
    for problem in manifest.experiment.problems:
        mine = columns["problem"] == problem.name
        counts = columns["episodes"][mine]
        value, error = problem.value, problem.value_error
        if value is None:
            value = float(np.average(columns["mean_returns"][mine], weights=counts))
            variances = counts * columns["mean_return_errors"][mine] ** 2  # of single episodes
            error = sqrt(np.average(variances, weights=counts) / counts.sum())
        for size in manifest.experiment.sizes:
            rows = mine & (columns["episodes"] == size.episodes)
            runs = CriticShardResult(
                **{name: columns[name][rows] for name in CriticShardResult.__struct_fields__}
            )
            if runs.values.size != size.runs:
                raise ValueError
            found.append(CriticSeries(problem.name, size.episodes, value, error, runs))
    return tuple(found)
