"""A run killed, then interrupted, then left alone gives the tables of one never stopped."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from revar.experiments.experiment import read_experiment
from revar.experiments.results import MANIFEST
from revar.experiments.runner import run_experiment
from tests.experiments.small import tables_in

SPEC = """
name = "stopped"
title = "A run that is stopped"
question = "Does it matter?"
runs = 300
episodes = [500, 1000]
problems = ["tree"]
strategies = ["on-policy", "revar"]
"""
# Shards of 10 runs at most: 30 and 30 for 500 episodes, 60 and 60 for 1000.
PROGRAM = """
import signal, sys
from revar.experiments import shards
from revar.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it otherwise
shards.EPISODES_OF_A_SHARD = 5000
sys.argv = ["revar", *sys.argv[1:]]
main()
"""
SHARDS = 180
FINISHED = "shards/[!.]*.npz"  # a file that is being written begins with a dot


def start(spec: Path, out: Path) -> "subprocess.Popen[str]":
    command = [
        "reproduce",
        "--spec",
        str(spec),
        "--output",
        str(out),
        "--no-report",
        "--threads",
        "1",
    ]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stop_half_way(process: "subprocess.Popen[str]", folder: Path, stop: signal.Signals) -> str:
    """Stop it once it has stored ten more shards; returns what it said on standard error."""
    before = len(list(folder.glob(FINISHED)))
    deadline = time.monotonic() + 60
    while len(list(folder.glob(FINISHED))) < before + 10:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(stop)
    return process.communicate(timeout=30)[1]


def test_killed_and_interrupted_runs_end_with_the_same_tables(tmp_path: Path) -> None:
    spec, folder = tmp_path / "stopped.toml", tmp_path / "stopped" / "stopped"
    spec.write_text(SPEC)

    process = start(spec, tmp_path / "stopped")
    stop_half_way(process, folder, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    killed = len(list(folder.glob(FINISHED)))
    assert 10 <= killed < SHARDS
    assert not (folder / MANIFEST).exists()

    process = start(spec, tmp_path / "stopped")
    said = stop_half_way(process, folder, signal.SIGINT)
    assert process.returncode == 130
    assert said.strip().endswith(
        f"Stopped. What is finished of 'stopped' is stored in {folder}; the same command goes on "
        f"from there."
    )
    assert "Traceback" not in said
    assert killed < len(list(folder.glob(FINISHED))) < SHARDS
    assert not (folder / MANIFEST).exists()

    process = start(spec, tmp_path / "stopped")
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    assert len(list(folder.glob(FINISHED))) == SHARDS
    run_experiment(read_experiment(spec), tmp_path / "whole")
    assert set(tables_in(folder)) == {
        "allocations.parquet",
        "estimates.parquet",
        "visits.parquet",
    }
    assert tables_in(folder) == tables_in(tmp_path / "whole")
