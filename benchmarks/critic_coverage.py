"""Are values with critics unbiased, and do their intervals hold? Many runs of 50 episodes.

`python -m benchmarks.critic_coverage` writes benchmarks/results/critic_coverage.md and .json:
linear systems whose values are known in closed form, and CartPole and Pendulum, whose values come
from many episodes. Rows that are stored already are kept unless `--anew` is given. `--first` begins
with another run, so that others are played.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.stats import t as student

from benchmarks.linear_quadratic import LinearQuadratic
from benchmarks.machine import facts
from benchmarks.side_by_side import play_side_by_side
from revar.critics.estimate import default_families, estimate_returns
from revar.critics.interface import Experience
from revar.experiments.critic_problems import CriticProblem
from revar.experiments.critics import load_critic_study

RESULTS = Path(__file__).with_name("results")
EPISODES = 50
RESETS = 10 * EPISODES
PLAYED = (
    "CartPole, mean 32",
    "CartPole, mean 84",
    "CartPole, mean 182",
    "Pendulum, PPO",
    "Pendulum, deterministic",
)


@dataclass(frozen=True)
class Row:
    """The errors of many runs, in standard errors."""

    problem: str
    critics: str
    runs: int
    mean: float  # of errors, each over its standard error
    deviation: float
    covered: float  # share of 95% intervals that hold
    plain_covered: float  # of those of the mean return
    ratio: float  # variance over that of the mean return, the median
    seconds: float  # for each run

    @property
    def line(self) -> str:
        """The row of a table."""
        error = self.deviation / np.sqrt(self.runs)
        return (
            f"| {self.problem} | {self.critics} | {self.runs} | {self.mean:+.2f} ± {error:.2f} | "
            f"{self.deviation:.2f} | {self.covered:.1%} | {self.plain_covered:.1%} | "
            f"{self.ratio:.2f} | {self.seconds:.1f} |"
        )


Run = tuple[float, float, float, float]  # error and standard error, of the value and the mean


def main() -> None:
    """Measure the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--critics", nargs="+", default=["linear"], help="families")
    parser.add_argument("--anew", action="store_true", help="measure all rows anew")
    parser.add_argument("--problem", help="measure rows whose name contains this")
    options = parser.parse_args()
    path = RESULTS / "critic_coverage.json"
    stored = [] if options.anew or not path.exists() else json.loads(path.read_text())["rows"]
    rows = {(row["problem"], row["critics"]): Row(**row) for row in stored}
    console = Console()
    numbers = range(options.first, options.first + options.runs)
    for name, runs in _problems(options.critics, numbers):
        named = f"{name}, from run {options.first}" if options.first else name
        key = (named, "+".join(options.critics))
        if options.problem and options.problem not in name:
            continue
        if key not in rows or rows[key].runs < options.runs:
            began = time.perf_counter()
            rows[key] = _row(*key, list(runs), began)
            _write(path, list(rows.values()))
        console.print(rows[key].line, highlight=False)


def _problems(critics: list[str], numbers: range) -> Iterator[tuple[str, Iterator[Run]]]:
    for dimensions in (1, 4):
        for normal in (False, True):
            system = LinearQuadratic(dimensions, normal)
            yield (
                f"linear-quadratic, {dimensions} dim., {system.law}",
                (_solve(system, critics, run) for run in numbers),
            )
    for problem in load_critic_study().problems:
        if problem.name in PLAYED:
            yield problem.name, (_play(problem, critics, run) for run in numbers)


def _solve(system: LinearQuadratic, critics: list[str], run: int) -> Run:
    experience = system.play(EPISODES, RESETS, np.random.default_rng([1, run]))
    return _errors(experience, critics, run, system.value(), 0.0)


def _play(problem: CriticProblem, critics: list[str], run: int) -> Run:
    experience = play_side_by_side(problem, EPISODES, RESETS, np.random.default_rng([2, run]))
    assert problem.value is not None
    return _errors(experience, critics, run, problem.value, problem.value_error)


def _errors(
    experience: Experience, critics: list[str], run: int, value: float, value_error: float
) -> Run:
    found = estimate_returns(experience, default_families(critics), seed=run)
    return (
        found.value - value,
        float(np.hypot(found.standard_error, value_error)),
        found.mean_return - value,
        float(np.hypot(found.mean_return_error, value_error)),
    )


def _row(problem: str, critics: str, runs: list[Run], began: float) -> Row:
    errors, spreads, plain_errors, plain_spreads = np.array(runs).T
    z, plain = errors / spreads, plain_errors / plain_spreads
    reach = float(student.ppf(0.975, EPISODES - 1))
    return Row(
        problem,
        critics,
        len(runs),
        float(z.mean()),
        float(z.std(ddof=1)),
        float(np.mean(np.abs(z) <= reach)),
        float(np.mean(np.abs(plain) <= reach)),
        float(np.median(spreads**2 / plain_spreads**2)),
        (time.perf_counter() - began) / len(runs),
    )


def _write(path: Path, rows: list[Row]) -> None:
    machine = facts()
    content = {"machine": machine, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1) + "\n")
    lines = [
        "# Intervals of values with critics",
        "",
        f"`python -m benchmarks.critic_coverage`: runs of {EPISODES} episodes, with ten extra "
        "resets for each. z is the error of a run over its standard error (that of the value it is "
        "compared with included); coverage, of 95% intervals; ratio, the variance over that of the "
        "mean return, the median of the runs.",
        "",
        "| problem | critics | runs | mean z ± s.e. | sd of z | coverage | of the mean return | "
        "ratio | s a run |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
        *(row.line for row in rows),
        "",
        ", ".join(f"{name}: {value}" for name, value in machine.items()),
        "",
    ]
    path.with_suffix(".md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
