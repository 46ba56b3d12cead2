import os
import re
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


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, with no machine code yet."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(Path(revar.__file__).parent, tmp_path / "revar", ignore=ignored)


def standard_error(package: Path) -> float:
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    shown = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        cwd=package.parent,
        env=environment,
    )
    return float(shown.stdout)


def test_an_edit_in_one_file_reaches_what_other_files_compiled_of_it(package: Path) -> None:
    # The estimator has the recursions of another file compiled into it.
    before = standard_error(package)
    recursions = package / "theory" / "recursions.py"
    source = recursions.read_text()
    line = "cost = w * w * reward_variance[s, a]\n"
    assert source.count(line) == 1
    recursions.write_text(source.replace(line, line.replace("=", "= 4.0 *", 1)))
    assert abs(standard_error(package) / before - 2.0) < 1e-9


def test_machine_code_of_an_older_version_with_other_classes_is_not_read(package: Path) -> None:
    before = standard_error(package)
    for path in package.rglob("*.py"):
        path.write_text(re.sub(r"\bLayers\b", "RenamedLayers", path.read_text()))
    assert standard_error(package) == before
