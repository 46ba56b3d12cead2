"""Every example runs, and prints something."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
TELLING = {
    "blackjack": "stick from 16",
    "cart_pole": "the mean return would need",
    "compare_policies": "are the best",
    "custom_environment": "on-policy would need",
    "frozen_lake": "the exact value is",
    "safe_collection": "sum of bumps: at most 0.3",
    "taxi": "for a 95% interval",
    "trained_policy": "episodes of training: value",
}


def test_there_is_one_for_every_kind() -> None:
    assert {path.stem for path in EXAMPLES} >= set(TELLING)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_without_a_warning(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert TELLING.get(example.stem, "") in done.stdout
    assert done.stdout.strip()
