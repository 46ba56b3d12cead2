"""A disk that is full or may not be written to: the value is there, and so are the episodes."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import revar
from revar.datasets import files
from revar.evaluation import episode_file
from revar.evaluation.run import UnsavedError
from tests.environments.custom import Corridor, Faulty

# The command with a limit on the size of the files that it writes.
LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
sys.argv = ["revar", *{arguments}]
from revar.cli.main import main
main()
"""


def run_limited(size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LIMITED.format(size=size, arguments=list(arguments))],
        capture_output=True,
        text=True,
        check=False,
    )


def refuse_to_write(monkeypatch: pytest.MonkeyPatch, *, everywhere: bool = False) -> None:
    """As if the disk of the file, or every disk, were full."""
    save = files.save_dataset

    def full(dataset: Any, path: Any, **options: Any) -> None:
        if everywhere or Path(path).name == "data.npz":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        save(dataset, path, **options)

    monkeypatch.setattr(episode_file, "save_dataset", full)


@pytest.mark.parametrize("method", ["table", "mean"])
def test_episodes_are_kept_in_a_file_that_is_named(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"episodes": 40, "horizon": 9, "seed": 1, "method": method}
    settings["strategy"] = "on-policy"
    refuse_to_write(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UnsavedError) as caught:
        revar.evaluate(Corridor(3), "uniform", save=tmp_path / "data.npz", **settings)
    (kept,) = tmp_path.glob("revar-*.npz")
    assert str(caught.value) == (
        f"{tmp_path / 'data.npz'} cannot be written (No space left on device); the 40 episodes are "
        f"in {kept}"
    )
    result = caught.value.result
    assert result.complete and result.episodes == 40
    again = revar.evaluate(Corridor(3), "uniform", resume=kept, **settings)
    assert again.value == result.value


def test_episodes_are_in_memory_where_no_disk_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_write(monkeypatch, everywhere=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UnsavedError, match="the episodes are in memory alone") as caught:
        revar.evaluate(
            Corridor(3),
            "uniform",
            strategy="on-policy",
            episodes=20,
            horizon=9,
            save=tmp_path / "data.npz",
        )
    assert len(caught.value.result.dataset) == 20
    assert list(tmp_path.iterdir()) == []


def test_a_disk_with_room_again_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, tries = files.save_dataset, []

    def full_at_first(*args: Any, **options: Any) -> None:
        tries.append(args)
        if len(tries) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(*args, **options)

    monkeypatch.setattr(episode_file, "save_dataset", full_at_first)
    path = tmp_path / "data.npz"
    result = revar.evaluate(
        Corridor(3), "uniform", strategy="on-policy", episodes=90, horizon=9, save=path
    )
    assert len(tries) > 1
    assert len(revar.load_dataset(path)) == result.episodes == 90


def test_what_goes_wrong_besides_is_said_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_write(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(
        UnsavedError, match=r"the simulator crashed; .*data.npz cannot be written .* are in /"
    ):
        revar.evaluate(
            Faulty("raise"),
            "uniform",
            strategy="on-policy",
            episodes=90,
            horizon=9,
            save=tmp_path / "data.npz",
        )


def test_the_command_prints_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real limit of the system, which writing more than 300 bytes meets."""
    monkeypatch.chdir(tmp_path)
    command = ("evaluate", "gridworld", "--strategy", "on-policy", "--episodes", "30", "--json")
    done = run_limited(300, *command, "--output", "data.npz")
    assert json.loads(done.stdout)["episodes"] == 30
    assert done.returncode == 1
    assert done.stderr.startswith("Error: data.npz cannot be written (File too large), and neither")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_full_pipe_ends_in_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "revar", "list", "problems"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "Error: No space left on device\n"
