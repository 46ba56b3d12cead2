"""Ctrl-C is noted, and acted upon where it does no harm."""

import signal
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from revar import simulate
from revar.cli.main import revar
from revar.experiments import critics
from revar.experiments.critic_results import run_critic_study
from revar.experiments.storage import ShardStore
from revar.interrupts import (
    Interrupt,
    catch_interrupts,
    defer_interrupts,
    is_interrupted,
    stop_if_interrupted,
)
from revar.problems import problems
from revar.simulation.result import Job
from tests.experiments.small import STUDY

COMMAND = ("simulate", "--problem", "bandit", "--strategy", "on-policy", "--runs", "3")


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    """What a terminal gives; a test leaves it as it was."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupt_before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Let Ctrl-C come in at the first call of a function."""
    function = getattr(owner, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, function)
        signal.raise_signal(signal.SIGINT)
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)


def command(folder: Path) -> Result:
    return CliRunner().invoke(revar, [*COMMAND, "--episodes", "20", "--output", str(folder)])


def test_a_shard_that_is_being_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised there, it would become "Can't close the ZIP file": a ValueError, exit code 1."""
    write = ShardStore.write

    def interrupted(*arguments: Any) -> None:
        interrupt_before(monkeypatch, zlib, "compressobj")
        write(*arguments)

    monkeypatch.setattr(ShardStore, "write", interrupted)
    result = command(tmp_path)
    assert result.exit_code == 130
    stored = list((tmp_path / "shards").iterdir())
    assert result.stderr.strip().endswith("the same command goes on from there.")
    assert [path.suffix for path in stored] == [".npz"]


def test_the_report_is_written_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from revar.reports import pages

    interrupt_before(monkeypatch, pages, "write_report")
    result = command(tmp_path)
    assert (result.exit_code, result.stderr.strip()) == (130, "Interrupted.")
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize("step", ["__init__", "result"])
def test_simulate_tells_of_one_before_and_after_the_runs(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    interrupt_before(monkeypatch, Job, step)
    tree = problems.find("tree")()
    result = simulate(tree.mdp, tree.policy, "on-policy", episodes=20, runs=2)
    assert result.interrupted
    assert result.complete is (step == "result")


def test_evaluations_in_threads_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever notices, however it ends: it was Ctrl-C, and what follows is not begun."""
    begun = []

    def cut_short(*_: Any, **__: Any) -> Any:
        begun.append(1)
        signal.raise_signal(signal.SIGINT)
        with catch_interrupts() as interrupt:
            for _attempt in range(1000):
                if interrupt.asked:
                    raise ValueError("stopped before the first episode")
                threading.Event().wait(0.01)
        return SimpleNamespace(complete=False)

    monkeypatch.setattr(critics, "evaluate", cut_short)
    with pytest.raises(KeyboardInterrupt):
        run_critic_study(STUDY, tmp_path)
    assert len(begun) == 1
    assert list((tmp_path / "shards").glob("*.npz")) == []


def test_blocks_share_what_is_noted() -> None:
    with catch_interrupts() as outer:
        with catch_interrupts() as inner:
            signal.raise_signal(signal.SIGINT)
        assert inner is outer
        assert outer.asked and is_interrupted()
        with pytest.raises(KeyboardInterrupt):
            stop_if_interrupted()
        with outer.ignore():
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert not is_interrupted()
    stop_if_interrupted()


def test_what_is_deferred_comes_at_the_end() -> None:
    done = []

    @defer_interrupts()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]


def test_what_the_second_one_breaks_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), catch_interrupts():
        signal.raise_signal(signal.SIGINT)
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise SystemError("returned a result with an exception set") from None
    with pytest.raises(SystemError), catch_interrupts():
        signal.raise_signal(signal.SIGINT)
        raise SystemError


def test_other_threads_and_processes_that_ignore_it() -> None:
    found: list[Interrupt] = []

    def work() -> None:
        with catch_interrupts() as interrupt:
            found.append(interrupt)

    def in_a_thread() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    in_a_thread()
    with catch_interrupts() as interrupt:
        in_a_thread()
    assert found[0] is not interrupt and found[1] is interrupt
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with catch_interrupts() as interrupt:
        signal.raise_signal(signal.SIGINT)
        assert not interrupt.asked
    signal.signal(signal.SIGINT, signal.default_int_handler)
