"""Machine code on disk: found again, and never used when it is out of date."""

import os
import pickle
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba

import revar
from revar.compilation import KeptCode

PROGRAM = """
import numpy as np
from revar.theory.limited_steps import limited_objective
one = np.ones((1, 1))
print(limited_objective(one, np.zeros((1, 1)), 4.0, 1.0, one, one, np.empty((1, 1)))[0])
"""


def copy_of_the_package(folder: Path) -> Path:
    package = folder / "revar"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(revar.__file__).parent, package, ignore=ignored)
    return package


def expected_error(folder: Path) -> float:
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    shown = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=folder, env=environment
    )
    return float(shown.stdout)


def test_an_edit_in_one_file_reaches_what_other_files_compiled_of_it(tmp_path: Path) -> None:
    # The error has a function of another file compiled into it.
    package = copy_of_the_package(tmp_path)
    assert expected_error(tmp_path) == 0.5  # 4 / (1 + 1) episodes
    assert list((package / "theory" / "__pycache__").glob("limited_steps.limited_objective-*.nbc"))
    steps = package / "theory" / "flow_steps.py"
    source = steps.read_text()
    line = "share = costs[s, a] / count\n"
    assert source.count(line) == 1
    steps.write_text(source.replace(line, line.replace("=", "= 4.0 *")))
    assert expected_error(tmp_path) == 2.0


RULE = """
from revar.compilation import compiled

@compiled
def rule(number):
    return {factor} * number
"""
LOOP = """
from revar.compilation import compiled, inlined, with_functions
from rule import rule

def step(number):
    return number

def loop(number):
    return step(number) + 1.0

print(compiled(with_functions(loop, step=inlined(rule)))(10.0))
"""


def run(folder: Path, program: str) -> str:
    # Python itself would take a file that changes within a second, to the same size, for the same.
    command = [sys.executable, "-B", program]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=folder
    ).stdout.strip()


def test_an_edited_function_reaches_the_copies_that_call_it(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    for factor in (2.0, 3.0):
        (tmp_path / "rule.py").write_text(RULE.format(factor=factor))
        assert run(tmp_path, "loop.py") == str(10.0 * factor + 1.0)
        assert list((tmp_path / "__pycache__").glob("loop.loop_with_rule_rule-*.nbc"))


def test_machine_code_of_an_older_revar_is_not_read(tmp_path: Path) -> None:
    """It may name modules that are gone."""
    (tmp_path / "own.py").write_text(RULE.format(factor=2.0) + "print(rule(10.0))\n")
    assert run(tmp_path, "own.py") == "20.0"
    (kept,) = (tmp_path / "__pycache__").glob("own.rule-*.nbc")
    name, _, held, _ = kept.name.rsplit(".", 3)
    older = kept.with_name(f"{name}.{'0' * 16}.{held}.nbc")
    numbered = kept.with_name(f"{name}.1.nbc")
    index = kept.with_name(f"{name}.nbi")  # as numba writes them
    kept.unlink()
    for path in (older, numbered, index):
        path.write_bytes(pickle.dumps(numba.__version__) + b"cgone.module\nType\n.")
    assert run(tmp_path, "own.py") == "20.0"
    assert list((tmp_path / "__pycache__").glob("own.*.nb*")) == [kept]  # others are removed


def test_what_processes_keep_at_the_same_time_is_not_mixed_up(tmp_path: Path) -> None:
    """Each keeps the machine code of another signature; numba's own files fail in most rounds."""
    keys = [(f"signature {number}", "a machine", "the same code") for number in range(8)]
    for turn in range(20):
        together = threading.Barrier(len(keys))

        def keep(
            key: tuple[str, ...], turn: int = turn, gate: threading.Barrier = together
        ) -> None:
            kept = KeptCode(str(tmp_path), f"function {turn}", "stamp")
            gate.wait()
            kept.save(key, key[0])

        with ThreadPoolExecutor(len(keys)) as pool:
            list(pool.map(keep, keys))
        kept = KeptCode(str(tmp_path), f"function {turn}", "stamp")
        assert [kept.load(key) for key in keys] == [key[0] for key in keys]
