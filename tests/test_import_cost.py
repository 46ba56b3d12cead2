"""What it costs to load the library; each measurement in a fresh interpreter."""

import subprocess
import sys
import time

import pytest


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def best_time(code: str, runs: int = 5) -> float:
    """The best of several: what the code costs when nothing else disturbs it."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run(code)
        times.append(time.perf_counter() - begin)
    return min(times)


def test_importing_costs_at_most_twice_what_numpy_and_scipy_cost() -> None:
    yardstick = best_time("import numpy, scipy.sparse")
    assert best_time("import revar") <= 2 * yardstick


HEAVY = ("numba", "scipy.stats", "matplotlib", "plotly", "pyarrow", "jinja2", "gymnasium", "ray")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["simulate", "--help"],
        ["demo", "--help"],
        ["list", "--help"],
        ["report", "--help"],
        ["reproduce", "--help"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    loaded = run(
        f"import sys\n"
        f"from revar.cli.main import revar\n"
        f"revar({arguments!r}, standalone_mode=False)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert loaded.startswith("Usage:")
    assert loaded.endswith("[]")


def test_importing_loads_no_dependency() -> None:
    loaded = run(
        "import sys, revar\n"
        "print([name for name in ('numpy', 'scipy', 'numba', 'click') if name in sys.modules])"
    )
    assert loaded == "[]"


def test_the_core_does_without_scipy_stats() -> None:
    loaded = run(
        "import sys, revar\n"
        "from revar.estimators import estimators\n"
        "from revar.problems import problems\n"
        "problem = problems.find('tree')()\n"
        "estimators.ids()\n"
        "revar.oracle_mse(problem.mdp, problem.policy, 1)\n"
        "print('scipy.stats' in sys.modules)"
    )
    assert loaded == "False"
