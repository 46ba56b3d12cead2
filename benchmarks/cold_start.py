"""CPU seconds of a first `evaluate` and a first `compare`, with nothing compiled before.

`python -m benchmarks.cold_start` measures this tree; `python -m benchmarks.cold_start COMMIT`
that commit too, in turns with this tree, and the ratio. The same call is then made again in the
same process: what it takes less is what compiling took.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]

CALLS = {
    "evaluate": 'revar.evaluate("frozenlake", policies[0], episodes=100, seed=1)',
    "compare": 'revar.compare("frozenlake", dict(zip("ab", policies)), episodes=100, seed=1)',
}
PROGRAM = """
from time import process_time
import revar
policies = [revar.find_problem("frozenlake", epsilon=epsilon).policy for epsilon in (0.2, 0.3)]
for _ in range(2):
    before = process_time()
    {call}
    print(process_time() - before)
"""


def seconds(tree: Path, call: str) -> tuple[float, float]:
    """What the call takes in a fresh process, with an empty cache, and when it is made again."""
    with TemporaryDirectory() as cache:
        told = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(call=call)],
            env=os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(tree / "src")},
            cwd=tree,
            check=True,
            capture_output=True,
            text=True,
        )
    first, again = told.stdout.split()
    return float(first), float(again)


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The files of a commit, in a folder of their own."""
    with TemporaryDirectory() as folder:
        files = subprocess.run(
            ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=files.stdout, check=True)
        yield Path(folder)


def measure(trees: dict[str, Path]) -> None:
    """Show a line for each call and tree; ratios are to the last tree."""
    for name, call in CALLS.items():
        taken = {which: seconds(tree, call) for which, tree in trees.items()}
        slowest = list(taken.values())[-1][0]
        for which, (first, again) in taken.items():
            ratio = f", {first / slowest:.2f} of the last" if len(trees) > 1 else ""
            print(f"{name}, {which}: {first:.1f} s, again {again:.2f} s{ratio}")


def main() -> None:
    """Measure this tree, and a commit if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", help="to compare this tree to")
    commit = parser.parse_args().commit
    if commit is None:
        measure({"this tree": ROOT})
    else:
        with checked_out(commit) as tree:
            measure({"this tree": ROOT, commit: tree})


if __name__ == "__main__":
    main()
