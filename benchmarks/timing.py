"""Timing that a busy machine disturbs least: long enough, in turns, best of several.

Work of one thread is timed by the CPU time of this process, which other processes on the same cores
do not add to. Where threads are compared only the clock on the wall will do, and only while the
cores are free.
"""

from collections.abc import Callable
from time import perf_counter, process_time

from benchmarks.neighbours import share_of_others, used
from benchmarks.registry import NotMeasuredError

# A measurement shorter than this is mostly noise.
LEAST_SECONDS = 0.25
REPEATS = 15
# On the wall a repetition counts if others took less than this part of the cores.
QUIET = 0.1
MOST_REPEATS = 80

# Work of a given size: a number of runs or of episodes.
Work = Callable[[int], object]
Clock = Callable[[], float]


def best_per_unit(*works: Work, repeats: int = REPEATS) -> list[float]:
    """CPU seconds per unit of each work, the best of `repeats` rounds in which they take turns.

    Each is first done once unmeasured (compilation, caches), then at growing sizes until it takes
    LEAST_SECONDS; the size found is what the rounds repeat.
    """
    sizes = [_long_enough(work) for work in works]
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for i, (work, size) in enumerate(zip(works, sizes, strict=True)):
            best[i] = min(best[i], _seconds(work, size, process_time) / size)
    return best


def best_on_the_wall(*works: Work, repeats: int = REPEATS) -> list[float]:
    """Like `best_per_unit`, in elapsed seconds; repetitions that others disturbed do not count."""
    # Two threads have used twice the CPU time when LEAST_SECONDS are over.
    sizes = [_long_enough(work, 2.0 * LEAST_SECONDS) for work in works]
    best = [float("inf")] * len(works)
    quiet = [0] * len(works)
    least = 1.0
    for _ in range(MOST_REPEATS):
        for i, (work, size) in enumerate(zip(works, sizes, strict=True)):
            before = used()
            seconds = _seconds(work, size, perf_counter)
            others = share_of_others(before, used())
            least = min(least, others)
            if others < QUIET:
                quiet[i] += 1
                best[i] = min(best[i], seconds / size)
        if min(quiet) >= repeats:
            break
    if min(quiet) == 0:
        raise NotMeasuredError(f"other processes took {least:.0%} of the cores or more")
    return best


def best_marginal(*works: Work, small: int, large: int, repeats: int = REPEATS) -> list[float]:
    """Seconds per unit between the sizes `small` and `large`: what does not grow cancels out.

    The best time of each size is taken before the difference, so that one disturbed repetition
    does not matter.
    """
    best = [[float("inf"), float("inf")] for _ in works]
    for work in works:
        work(small)
    for _ in range(repeats):
        for i, work in enumerate(works):
            for j, size in enumerate((small, large)):
                best[i][j] = min(best[i][j], _seconds(work, size, process_time))
    return [(long - short) / (large - small) for short, long in best]


def _long_enough(work: Work, least: float = LEAST_SECONDS) -> int:
    size = 1
    work(size)
    while (taken := _seconds(work, size, process_time)) < least:
        # Aim a little above, and never more than tenfold: a first estimate may be far off.
        size = int(size * min(10.0, 1.2 * least / max(taken, 1e-9))) + 1
    return size


def _seconds(work: Work, size: int, clock: Clock) -> float:
    before = clock()
    work(size)
    return clock() - before
