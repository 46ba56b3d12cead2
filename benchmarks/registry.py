"""What a benchmark is: a function that measures one ratio, and the target it is held against."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """How long one unit of work took in the best of several repetitions."""

    what: str
    seconds: float
    unit: str  # "episode", "step", "run"

    def __str__(self) -> str:
        return f"{self.what}: {_readable(self.seconds)} per {self.unit}"


@dataclass(frozen=True)
class Ratio:
    """One cost over another, and how it was measured."""

    over: Cost
    under: Cost
    how: str

    @property
    def value(self) -> float:
        """The ratio itself."""
        return self.over.seconds / self.under.seconds


@dataclass(frozen=True)
class Benchmark:
    """A question, its target, and the function that answers it."""

    name: str
    target: float | None  # None: told for what it is
    at_most: bool  # else the target is a floor
    measure: Callable[[], Ratio]

    @property
    def rule(self) -> str:
        """The target in words."""
        if self.target is None:
            return "none"
        return f"{'at most' if self.at_most else 'at least'} {self.target:g}"

    def met(self, ratio: Ratio) -> bool:
        """Whether the ratio keeps to the target."""
        if self.target is None:
            return True
        return ratio.value <= self.target if self.at_most else ratio.value >= self.target


class NotMeasuredError(Exception):
    """What this machine lacks for a measurement."""


BENCHMARKS: list[Benchmark] = []


def benchmark(
    name: str, *, at_most: float | None = None, at_least: float | None = None
) -> Callable[[Callable[[], Ratio]], Callable[[], Ratio]]:
    """Register a function that measures one ratio, with one of the two targets or none."""
    if at_most is not None and at_least is not None:
        raise ValueError(f"benchmark {name!r} has two targets: at_most and at_least")

    def add(measure: Callable[[], Ratio]) -> Callable[[], Ratio]:
        target = at_most if at_most is not None else at_least
        BENCHMARKS.append(Benchmark(name, target, at_most is not None, measure))
        return measure

    return add


def _readable(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
