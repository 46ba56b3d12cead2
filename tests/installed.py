"""The wheel in environments of its own: one without extras, one that has all of them.

What it depends on is linked from the environment of the tests, and compiled code copied from the
checkout: downloading the one and compiling the other would take minutes.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from zipfile import Path as ZipPath

from packaging.requirements import Requirement

import revar

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Environment:
    """A virtual environment that the wheel is installed in."""

    folder: Path

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, without what the tests have set up."""
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            cwd=cwd,
            env=clean | {"COLUMNS": "120"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the checkout."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, *, extras: bool) -> Environment:
    """A new environment with the wheel and what it requires, or all that the tests have."""
    venv.create(folder, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    if extras:
        others = [path for path in sys.path if path.endswith("site-packages")]
        (site / "others.pth").write_text("\n".join(others))
    else:
        for each in _required(wheel):
            _link(each, site)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"),
            *("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", str(wheel)),
        ],
        check=True,
    )
    source = Path(revar.__file__).parent
    for kept in source.rglob("*.nb[ic]"):
        place = site / "revar" / kept.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept, place)
    return Environment(folder)


def _required(wheel: Path) -> list[Distribution]:
    """The distributions that the wheel needs without extras, and what these need."""
    (info,) = (each for each in ZipPath(wheel).iterdir() if each.name.endswith(".dist-info"))
    known: dict[str, Distribution] = {}
    waiting = list(PathDistribution(info).requires or ())
    while waiting:
        needed = Requirement(waiting.pop())
        if needed.name in known or (needed.marker and not needed.marker.evaluate({"extra": ""})):
            continue
        known[needed.name] = distribution(needed.name)
        waiting += known[needed.name].requires or ()
    return list(known.values())


def _link(each: Distribution, site: Path) -> None:
    for top in {path.parts[0] for path in each.files or ()} - {".."}:
        if not (site / top).exists():
            (site / top).symlink_to(str(each.locate_file(top)))
