from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from revar.errors import InputError
from revar.experiments import results as results_module
from revar.experiments import shards
from revar.experiments.engines import Advance, LocalEngine
from revar.experiments.results import MANIFEST, read_manifest, read_results
from revar.experiments.runner import run_experiment
from tests.experiments.small import assert_equal_results, small, tables_in


@dataclass(frozen=True)
class Watched:
    """This process, with a note of what was played; interrupted before some shard."""

    stop_after: int | None = None
    backwards: bool = False
    played: list[Any] = field(default_factory=list)

    def play(self, shards: Sequence[Any], advance: Advance) -> Iterator[tuple[Any, Any, float]]:
        order = shards[::-1] if self.backwards else shards
        for shard, result, seconds in LocalEngine(threads=1).play(order, advance):
            if len(self.played) == self.stop_after:
                raise KeyboardInterrupt
            self.played.append(shard)
            yield shard, result, seconds


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs a shard: 3 shards for each of the 6 series."""
    monkeypatch.setattr(shards, "EPISODES_OF_A_SHARD", 80)


SHARDS = 18


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("after", [0, 1, 10, SHARDS - 1])
def test_an_interrupted_experiment_goes_on(after: int, tmp_path: Path) -> None:
    whole = run_experiment(small(), tmp_path / "whole", seed=2)
    first = Watched(stop_after=after)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(small(), tmp_path / "resumed", seed=2, engine=first)
    assert not (tmp_path / "resumed" / MANIFEST).exists()
    second = Watched()
    resumed = run_experiment(small(), tmp_path / "resumed", seed=2, engine=second)
    assert len(second.played) == SHARDS - after
    assert {shard.file_name() for shard in first.played}.isdisjoint(
        shard.file_name() for shard in second.played
    )
    assert_equal_results(resumed, whole)
    assert tables_in(tmp_path / "resumed") == tables_in(tmp_path / "whole")


@pytest.mark.usefixtures("small_shards")
def test_shards_may_come_in_any_order(tmp_path: Path) -> None:
    run_experiment(small(), tmp_path / "one", engine=Watched())
    run_experiment(small(), tmp_path / "other", engine=Watched(backwards=True))
    assert tables_in(tmp_path / "one") == tables_in(tmp_path / "other")


def test_a_finished_experiment_is_read(tmp_path: Path) -> None:
    done = run_experiment(small(), tmp_path)
    again = Watched()
    found = run_experiment(small(), tmp_path, engine=again)
    assert again.played == []
    assert_equal_results(found, done)
    assert found.manifest == done.manifest
    # Its shards are not needed any more.
    for path in (tmp_path / "shards").iterdir():
        path.unlink()
    assert_equal_results(run_experiment(small(), tmp_path, engine=again), done)
    assert again.played == []


def test_another_seed_is_run_anew(tmp_path: Path) -> None:
    one = run_experiment(small(), tmp_path, seed=0)
    again = Watched()
    other = run_experiment(small(), tmp_path, seed=1, engine=again)
    assert len(again.played) == 6
    assert (one.series[0].estimates != other.series[0].estimates).all()
    assert read_manifest(tmp_path).seed == 1


def test_only_what_a_change_concerns_is_played(tmp_path: Path) -> None:
    run_experiment(small(), tmp_path)
    changed = small(problems=["example-1", {"id": "bandit", "label": "a bandit"}, "example-2"])
    again = Watched()
    found = run_experiment(changed, tmp_path, engine=again)
    # A label is none of a shard's business; a new problem is.
    assert {shard.cell.problem.id for shard in again.played} == {"example-2"}
    assert found.problems() == ["example-1", "a bandit", "example-2"]
    more = Watched()
    run_experiment(small(runs=6), tmp_path, engine=more)
    assert len(more.played) == 6


def test_full_and_quick_are_not_mixed_up(tmp_path: Path) -> None:
    experiment = small(quick={"runs": 2, "episodes": 10})
    quick = run_experiment(experiment, tmp_path, quick=True)
    assert (quick.manifest.quick, quick.series[0].runs, quick.series[0].budget) == (True, 2, 10)
    full = run_experiment(experiment, tmp_path)
    assert (full.manifest.quick, full.series[0].runs, full.series[0].budget) == (False, 5, 40)


def test_another_version_is_run_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_experiment(small(), tmp_path)
    monkeypatch.setattr(shards, "SOURCE_STAMP", "other code")
    monkeypatch.setattr(results_module, "SOURCE_STAMP", "other code")
    again = Watched()
    run_experiment(small(), tmp_path, engine=again)
    assert len(again.played) == 6
    assert read_manifest(tmp_path).versions["source"] == "other code"


@pytest.mark.usefixtures("small_shards")
def test_damaged_shards_are_played_again(tmp_path: Path) -> None:
    run_experiment(small(), tmp_path)
    tables = tables_in(tmp_path)
    cut, changed, gone, *_ = sorted((tmp_path / "shards").iterdir())
    cut.write_bytes(cut.read_bytes()[:-100])
    changed.write_bytes(b"something else")
    gone.unlink()
    (tmp_path / MANIFEST).unlink()
    again = Watched()
    run_experiment(small(), tmp_path, engine=again)
    assert {shard.file_name() for shard in again.played} == {cut.name, changed.name, gone.name}
    assert tables_in(tmp_path) == tables


@pytest.mark.parametrize("name", ["estimates.parquet", "allocations.parquet", "visits.parquet"])
def test_damaged_tables_are_put_together_again(name: str, tmp_path: Path) -> None:
    run_experiment(small(), tmp_path)
    tables = tables_in(tmp_path)
    (tmp_path / name).write_bytes(tables[name][:-50])
    again = Watched()
    run_experiment(small(), tmp_path, engine=again)
    assert again.played == []  # from the shards
    assert tables_in(tmp_path) == tables


@pytest.mark.usefixtures("small_shards")
def test_progress_counts_episodes_to_the_end(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_experiment(small(), tmp_path, engine=Watched(stop_after=4))
    said: list[tuple[int, int, str]] = []
    run_experiment(small(), tmp_path, progress=lambda *each: said.append(each))
    total = 6 * 5 * 40
    assert {each[1] for each in said} == {total}
    done = [each[0] for each in said]
    assert done == sorted(done)
    # Four shards are there already: two of two runs and the last of one, then two runs.
    assert done[0] >= 280
    assert done[-1] == total
    assert said[-1][2] == "five arms: revar"


def test_the_manifest_tells_what_was_run(tmp_path: Path) -> None:
    results = run_experiment(small(), tmp_path, seed=4)
    manifest = read_manifest(tmp_path)
    assert manifest.experiment == small()
    assert manifest.digest == small().digest()
    assert (manifest.seed, manifest.quick, manifest.schema_version) == (4, False, 1)
    assert manifest.versions == results_module.versions()
    assert set(manifest.versions) == {"python", "revar-rl", "numpy", "scipy", "numba", "source"}
    assert manifest.seconds > 0
    assert [each.problem for each in manifest.exact] == ["example-1", "five arms"]
    assert [each.id for each in manifest.exact] == ["example-1", "bandit"]
    assert_equal_results(read_results(tmp_path), results)
    assert [s.label() for s in results.of("five arms", "on-policy")] == [
        ("five arms", "on-policy", "certainty-equivalence", 40),
        ("five arms", "on-policy", "monte-carlo", 40),
    ]


def test_nothing_is_played_of_what_cannot_be_built(tmp_path: Path) -> None:
    engine = Watched()
    with pytest.raises(InputError, match="unknown strategy 'rvar'"):
        run_experiment(small(strategies=["on-policy", "rvar"]), tmp_path, engine=engine)
    assert engine.played == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as caught:
        run_experiment(small(), tmp_path / "file" / "results")
    assert str(caught.value) == (
        f"results cannot be stored in {tmp_path / 'file' / 'results'}: Not a directory"
    )


def test_an_engine_that_gives_nothing_back_is_noticed(tmp_path: Path) -> None:
    class Idle:
        def play(self, shards: Sequence[Any], advance: Advance) -> Iterator[tuple[Any, Any, float]]:
            return iter(())

    with pytest.raises(InputError, match="shards vanished from"):
        run_experiment(small(), tmp_path, engine=Idle())
