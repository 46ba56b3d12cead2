"""A study of critics: how much of the variance of returns they take, and whether intervals hold.

Every run is an evaluation of its own, with critics and from the same episodes as a mean return.
"""

import hashlib
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np

from revar.errors import InputError
from revar.evaluation.evaluate import evaluate
from revar.experiments.critic_problems import CriticProblem
from revar.experiments.experiment import digest_of, record_of
from revar.interrupts import POLL_SECONDS, stop_if_interrupted
from revar.model.arrays import FloatArray, IntArray

SHARD_VERSION = 1
RUNS_OF_A_SHARD = 5  # what is lost when the process is killed


class Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """So many runs of so many episodes."""

    episodes: int
    runs: int


class CriticStudy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is run: every problem at every size."""

    name: str
    title: str
    question: str
    sizes: tuple[Size, ...]
    problems: tuple[CriticProblem, ...]
    quick: tuple[Size, ...] = ()
    critics: tuple[str, ...] | None = None  # families; None: those that are installed
    drawn: tuple[str, ...] = ()  # problems of the figure
    notes: tuple[str, ...] = ()

    def at_size(self, *, quick: bool) -> "CriticStudy":
        """The study as it is run: the full one, or its quick version where it has one."""
        sizes = self.quick if quick and self.quick else self.sizes
        known = tuple(problem for problem in self.problems if problem.available)
        return msgspec.structs.replace(self, sizes=sizes, problems=known, quick=())

    def digest(self) -> str:
        """A hash of all that is declared."""
        return digest_of(self)


class CriticShardResult(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the runs of a shard gave."""

    values: FloatArray  # [run]
    standard_errors: FloatArray  # [run]
    half_widths: FloatArray  # [run]
    mean_returns: FloatArray  # [run] of the same episodes
    mean_return_errors: FloatArray  # [run]
    mean_return_half_widths: FloatArray  # [run]
    steps: IntArray  # [run]
    fitting_seconds: FloatArray  # [run]


class CriticShard(msgspec.Struct, frozen=True, kw_only=True, tag="critics"):
    """Some runs of a problem at a size."""

    problem: CriticProblem
    budget: int
    seed: int
    first_run: int
    runs: int
    critics: tuple[str, ...] | None = None
    result_type: ClassVar[type[CriticShardResult]] = CriticShardResult

    @property
    def title(self) -> str:
        """What is played, for a progress bar."""
        return f"{self.problem.name}: {self.budget} episodes"

    @property
    def episodes(self) -> int:
        """How many episodes are played."""
        return self.runs * self.budget

    def file_name(self) -> str:
        """Where the shard's result is stored; it names all that the result depends on."""
        parts = [
            SHARD_VERSION,
            digest_of_sources(),
            self.problem,
            self.budget,
            self.seed,
            self.critics,
        ]
        return f"{digest_of(parts)}-{self.first_run:06d}-{self.runs}.npz"

    def play(
        self, *, threads: int | None = None, progress: Callable[[int, int], None] | None = None
    ) -> CriticShardResult:
        """Evaluate the policy once for each run, several at a time."""
        rows = []
        pool = ThreadPoolExecutor(threads or 1)
        try:
            for evaluation in [
                pool.submit(self._evaluate, self.first_run + run) for run in range(self.runs)
            ]:
                while not evaluation.done():
                    stop_if_interrupted()
                    wait([evaluation], POLL_SECONDS)
                stop_if_interrupted()  # it may have been cut short
                rows.append(evaluation.result())
                if progress is not None:
                    progress(len(rows) * self.budget, self.episodes)
        finally:
            pool.shutdown(cancel_futures=True)
        columns = zip(*rows, strict=True)
        fields = CriticShardResult.__struct_fields__
        return CriticShardResult(
            **{name: np.array(column) for name, column in zip(fields, columns, strict=True)}
        )

    def _evaluate(self, run: int) -> tuple[float, ...]:
        seed = int(np.random.SeedSequence((self.seed, run)).generate_state(1)[0])
        result = evaluate(
            self.problem.environment,
            self.problem.build_policy(),
            episodes=self.budget,
            horizon=self.problem.horizon,
            method="critic",
            critics=None if self.critics is None else list(self.critics),
            seed=seed,
        )
        if not result.complete:
            raise KeyboardInterrupt
        findings = result.return_findings
        corrected = findings.corrected
        return (
            result.value,
            result.standard_error,
            result.half_width,
            corrected.mean_return,
            corrected.mean_return_error,
            result.quantile * corrected.mean_return_error,
            result.steps,
            findings.fitting_seconds,
        )


def load_critic_study() -> CriticStudy:
    """The built-in study."""
    source = files("revar.experiments").joinpath("built_in", "critics.toml")
    declared = tomllib.loads(source.read_text(encoding="utf-8"))
    return record_of(declared, CriticStudy, "experiment 'critics'")


def critic_shards(study: CriticStudy, seed: int) -> list[CriticShard]:
    """Everything that is to be run, the small budgets of all problems first."""
    if not study.problems:
        raise InputError(f"no environment of {study.name!r} is installed")
    return [
        CriticShard(
            problem=problem,
            budget=size.episodes,
            seed=seed,
            first_run=first,
            runs=min(RUNS_OF_A_SHARD, size.runs - first),
            critics=study.critics,
        )
        for size in study.sizes
        for problem in study.problems
        for first in range(0, size.runs, RUNS_OF_A_SHARD)
    ]


@cache
def digest_of_sources() -> str:
    """A digest of the code that the results depend on."""
    package = Path(__file__).parents[1]
    folders = ("critics", "evaluation/returns", "policies")
    sources = sorted(path for folder in folders for path in (package / folder).rglob("*.py"))
    every = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    return every.hexdigest()[:16]
