"""A study of critics: declared, run in shards that resume, stored and read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from revar import evaluate
from revar.errors import InputError
from revar.experiments import critics
from revar.experiments.critic_results import (
    CriticResults,
    holds_critic_study,
    read_critic_results,
    run_critic_study,
)
from revar.experiments.critics import critic_shards, load_critic_study
from revar.experiments.engines import Advance, LocalEngine
from revar.experiments.results import MANIFEST
from tests.experiments.small import LINE, PENDULUM, STUDY

SHARDS = 4


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run a shard."""
    monkeypatch.setattr(critics, "RUNS_OF_A_SHARD", 1)


@dataclass
class Watched:
    """This process, with a note of what was played; interrupted before some shard."""

    stop_after: int | None = None
    played: list[str] = field(default_factory=list)

    def play(self, shards: Sequence[Any], advance: Advance) -> Iterator[tuple[Any, Any, float]]:
        for shard, result, seconds in LocalEngine(threads=1).play(shards, advance):
            if len(self.played) == self.stop_after:
                raise KeyboardInterrupt
            self.played.append(shard.file_name())
            yield shard, result, seconds


def assert_equal(found: CriticResults, expected: CriticResults) -> None:
    for one, other in zip(found.series, expected.series, strict=True):
        assert (one.problem, one.true_value) == (other.problem, other.true_value)
        for name in ("values", "standard_errors", "half_widths", "mean_returns", "steps"):
            assert np.array_equal(getattr(one.runs, name), getattr(other.runs, name))


def test_a_stopped_study_goes_on(tmp_path: Path) -> None:
    whole = run_critic_study(STUDY, tmp_path / "whole", seed=1)
    first = Watched(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        run_critic_study(STUDY, tmp_path / "resumed", seed=1, engine=first)
    assert not holds_critic_study(tmp_path / "resumed")
    second = Watched()
    resumed = run_critic_study(STUDY, tmp_path / "resumed", seed=1, engine=second)
    assert len(second.played) == SHARDS - 2
    assert set(first.played).isdisjoint(second.played)
    assert_equal(resumed, whole)
    assert holds_critic_study(tmp_path / "resumed")
    assert_equal(read_critic_results(tmp_path / "resumed"), whole)


def test_a_finished_study_is_read(tmp_path: Path) -> None:
    done = run_critic_study(STUDY, tmp_path)
    for path in (tmp_path / "shards").iterdir():
        path.unlink()  # they are not needed any more
    again = Watched()
    assert_equal(run_critic_study(STUDY, tmp_path, engine=again), done)
    assert again.played == []


def test_a_run_is_an_evaluation_of_its_own(tmp_path: Path) -> None:
    study = msgspec.structs.replace(STUDY, problems=(LINE,))
    (series,) = run_critic_study(study, tmp_path, seed=5).series
    seed = int(np.random.SeedSequence((5, 1)).generate_state(1)[0])
    expected = evaluate(
        "CartPole-v1",
        LINE.build_policy(),
        episodes=9,
        horizon=20,
        critics=["linear"],
        seed=seed,
    )
    assert series.runs.values[1] == expected.value
    assert series.runs.half_widths[1] == expected.half_width
    assert series.runs.mean_returns[1] == expected.return_findings.corrected.mean_return
    assert series.true_value == 19.0
    assert series.deviations[1] == pytest.approx((expected.value - 19.0) / expected.standard_error)


def test_a_value_that_is_not_known_is_the_mean_of_all_returns(tmp_path: Path) -> None:
    study = msgspec.structs.replace(STUDY, problems=(PENDULUM,))
    (series,) = run_critic_study(study, tmp_path).series
    assert series.true_value == pytest.approx(series.runs.mean_returns.mean())
    (runs,) = series.runs.values.shape
    pooled = np.mean(series.runs.mean_return_errors**2) / runs
    assert series.true_value_error == pytest.approx(np.sqrt(pooled))


def test_a_run_that_is_stopped_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(critics, "evaluate", lambda *_, **__: SimpleNamespace(complete=False))
    with pytest.raises(KeyboardInterrupt):
        run_critic_study(STUDY, tmp_path)
    assert list((tmp_path / "shards").glob("*.npz")) == []


def test_environments_that_are_not_installed_are_left_out(tmp_path: Path) -> None:
    missing = msgspec.structs.replace(LINE, name="missing", needs="no_such_module")
    study = msgspec.structs.replace(STUDY, problems=(LINE, missing))
    assert study.at_size(quick=False).problems == (LINE,)
    nothing = msgspec.structs.replace(STUDY, problems=(missing,))
    with pytest.raises(InputError, match="no environment of 'critics' is installed"):
        run_critic_study(nothing, tmp_path)


def test_the_built_in_study() -> None:
    study = load_critic_study()
    names = [problem.name for problem in study.problems]
    assert len(set(names)) == len(names) and set(study.drawn) <= set(names)
    for problem in study.problems:
        problem.build_policy()
    quick = study.at_size(quick=True)
    assert quick.sizes == study.quick and not quick.quick
    # Whatever they depend on is in their names.
    shards = critic_shards(quick, 0) + critic_shards(quick, 1)
    assert len({shard.file_name() for shard in shards}) == len(shards)


def test_damage_is_named_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not the manifest of a study of critics"):
        read_critic_results(tmp_path)
    run_critic_study(STUDY, tmp_path)
    manifest = (tmp_path / MANIFEST).read_text().replace('"runs": 2', '"runs": 3')
    (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(InputError, match="does not fit its manifest"):
        read_critic_results(tmp_path)
