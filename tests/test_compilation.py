import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import revar

PROGRAM = """
import revar
from revar.estimators import CertaintyEquivalence
task = revar.Task(policy=[[1.0]], horizon=1, initial=[1.0])
data = revar.VisitStatistics(states=1, actions=1)
for reward in (1.0, 3.0):
    data.record(revar.Trajectory.of([0], [0], [reward]))
print(CertaintyEquivalence().estimate(task, data).standard_error)
"""


def copy_of_the_package(folder: Path) -> Path:
    package = folder / "revar"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(revar.__file__).parent, package, ignore=ignored)
    return package


def standard_error(folder: Path) -> float:
    command = [sys.executable, "-c", PROGRAM]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    return float(shown.stdout)


@pytest.mark.slow
def test_an_edit_in_one_file_reaches_what_other_files_compiled_of_it(tmp_path: Path) -> None:
    # The estimator has the recursions of another file compiled into it.
    package = copy_of_the_package(tmp_path)
    before = standard_error(tmp_path)
    recursions = package / "theory" / "recursions.py"
    source = recursions.read_text()
    line = "cost = w * w * reward_variance[s, a]\n"
    assert source.count(line) == 1
    recursions.write_text(source.replace(line, line.replace("=", "= 4.0 *", 1)))
    assert abs(standard_error(tmp_path) / before - 2.0) < 1e-9


@pytest.mark.slow
def test_machine_code_of_older_sources_does_no_harm(tmp_path: Path) -> None:
    """What is kept on disk names types by their classes, which may be gone after an update."""
    package = copy_of_the_package(tmp_path)
    before = standard_error(tmp_path)
    renamed = 0
    for path in package.rglob("*.py"):
        source = path.read_text()
        renamed += source.count("Outcomes")
        path.write_text(source.replace("Outcomes", "Followers"))
    assert renamed > 10
    assert standard_error(tmp_path) == before
