"""The live examples run as they stand, and find what is true."""

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "live"


def said(command: list[str], **settings: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PATH": path, **settings},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(output: str, name: str) -> float:
    found = re.search(rf"{name}: (-?[\d.]+)", output)
    assert found is not None, output
    return float(found[1])


def test_the_ad_server() -> None:
    output = said([sys.executable, str(FOLDER / "ad_server.py")], VISITORS="600")
    low, high = number(output, "95% interval"), float(output.split(" to ")[1].split()[0])
    truth = number(output, "the truth")
    # Threads make every run another one, so that the bound leaves room: 4.9 standard errors.
    middle, half = (low + high) / 2, (high - low) / 2
    assert abs(middle - truth) < 2.5 * half
    assert 0 < half < 1


def test_curl_and_a_shell() -> None:
    output = said(["sh", str(FOLDER / "client.sh")], VISITORS="8")
    assert "finished: 8 of 8" in output
    assert number(output, "estimated value") > 0
