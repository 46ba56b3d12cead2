from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from revar import estimation_variance, simulate
from revar.experiments import shards
from revar.experiments.experiment import Choice, build_problem
from revar.experiments.runner import run_experiment
from revar.experiments.shards import Cell, cells_of, shards_of
from tests.experiments.small import assert_equal_results, small, tables_in

CELL = Cell(
    problem=Choice(id="tree", options={"depth": 2}),
    strategy=Choice(id="revar"),
    estimator=Choice(id="certainty-equivalence"),
    budget=30,
    at_checkpoints=False,
    known_transitions=False,
    seed=3,
)


@pytest.mark.parametrize("size", [1, 80, 100, 170])
def test_results_do_not_depend_on_the_cut(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = small()
    whole = run_experiment(experiment, tmp_path / "whole", seed=5)
    monkeypatch.setattr(shards, "EPISODES_OF_A_SHARD", size)
    cut = run_experiment(experiment, tmp_path / "cut", seed=5)
    assert len(list((tmp_path / "whole" / "shards").iterdir())) == len(whole.series)
    per_series = -(-experiment.runs // max(1, size // 40))
    assert len(list((tmp_path / "cut" / "shards").iterdir())) == per_series * len(whole.series)
    assert_equal_results(cut, whole)
    assert tables_in(tmp_path / "cut") == tables_in(tmp_path / "whole")


@pytest.mark.parametrize(("size", "runs"), [(1, 7), (60, 7), (89, 7), (10**9, 7), (30, 1)])
def test_every_run_is_in_one_shard(size: int, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "EPISODES_OF_A_SHARD", size)
    parts = list(shards_of(CELL, runs))
    played = [run for part in parts for run in range(part.first_run, part.first_run + part.runs)]
    assert played == list(range(runs))
    assert sum(part.episodes for part in parts) == runs * CELL.budget
    assert len({part.file_name() for part in parts}) == len(parts)


def test_a_shard_is_what_simulate_gives() -> None:
    problem = build_problem(CELL.problem)
    (shard,) = shards_of(CELL, 4)
    found = shard.play(threads=1)
    expected = simulate(
        problem.mdp, problem.policy, "revar", episodes=30, runs=4, seed=3, checkpoints=[30]
    )
    np.testing.assert_array_equal(found.estimates, expected.estimates)
    np.testing.assert_array_equal(found.standard_errors, expected.standard_errors)
    np.testing.assert_array_equal(found.visits, expected.visits.sum(axis=0))
    assert found.checkpoints.tolist() == [30]


def test_variances_are_those_of_the_visits() -> None:
    # Visits of K episodes in the shares of a behavior have K times its variance over K.
    cell = msgspec.structs.replace(CELL, strategy=Choice(id="oracle"), budget=40_000)
    (shard,) = shards_of(cell, 2)
    problem = build_problem(cell.problem)
    from revar import sampling_proportions

    behavior = sampling_proportions(problem.mdp, problem.policy).behavior
    exact = estimation_variance(problem.mdp, problem.policy, behavior)
    assert shard.play().variances * 40_000 == pytest.approx([exact, exact], rel=1e-3)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("problem", Choice(id="tree", options={"depth": 3})),
        ("problem", Choice(id="bandit", options={"depth": 2})),
        ("strategy", Choice(id="flow")),
        ("strategy", Choice(id="revar", options={"confidence_scale": 1.0})),
        ("estimator", Choice(id="certainty-equivalence", options={"known_transitions": True})),
        ("budget", 31),
        ("at_checkpoints", True),
        ("known_transitions", True),
        ("seed", 4),
        ("apart", True),
    ],
)
def test_shards_of_another_cell_have_another_name(field: str, value: Any) -> None:
    other = msgspec.structs.replace(CELL, **{field: value})
    assert other.key() != CELL.key()


def test_labels_do_not_change_what_is_stored() -> None:
    labelled = msgspec.structs.replace(
        CELL,
        strategy=Choice(id="revar", label="ours"),
        estimator=Choice(id="certainty-equivalence", label="usual"),
    )
    assert labelled.key() == CELL.key()
    assert labelled.label() == ("tree (depth=2)", "ours", "usual", 30)


def test_shards_of_other_code_have_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = CELL.key()
    monkeypatch.setattr(shards, "SOURCE_STAMP", "other code")
    assert CELL.key() != before


def test_cells_stand_in_the_order_of_the_declaration() -> None:
    cells = cells_of(small(episodes=[10, 20]), seed=9)
    assert [cell.label() for cell in cells] == [
        (problem, strategy, estimator, budget)
        for problem in ("example-1", "five arms")
        for strategy, estimator in (
            ("on-policy", "certainty-equivalence"),
            ("on-policy", "monte-carlo"),
            ("revar", "certainty-equivalence"),
        )
        for budget in (10, 20)
    ]
    assert {(cell.seed, cell.at_checkpoints) for cell in cells} == {(9, False)}
    assert {cell.at_checkpoints for cell in cells_of(small(), seed=0)} == {True}


@pytest.mark.parametrize("episodes", [20_000_000, 20], ids=["half way", "at the very end"])
def test_an_interrupt_is_never_lost(episodes: int) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    (shard,) = shards_of(msgspec.structs.replace(CELL, budget=episodes), 1)
    with pytest.raises(KeyboardInterrupt):
        shard.play(progress=interrupt)
