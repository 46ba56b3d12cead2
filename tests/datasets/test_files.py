"""Datasets on disk, in our own form and in Minari's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import revar
from revar import Dataset, Trajectory
from revar.datasets import Conditions, append_dataset, load_collected, merge_datasets
from revar.errors import InputError
from tests.collection.test_collection import same_data

SUFFIXES = [".npz", ".parquet"]


def some_data(labels: Any = ("start", (1, 2), True)) -> Dataset:
    return Dataset.of(
        [
            Trajectory.of([0, 1], [1, 0], [0.1, 1 / 3], propensities=[0.5, np.nan]),
            Trajectory.of([1], [0], [-2.0], last_successor=2),
        ],
        labels,
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("labels", [None, (0, 1, 2), ("start", (1, (2, "x")), True)])
def test_saved_and_loaded_to_the_bit(suffix: str, labels: Any, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    revar.save_dataset(some_data(labels), path)
    loaded = revar.load_dataset(path)
    assert same_data(loaded, some_data())
    assert loaded.labels == labels
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_conditions_travel_along(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    terms = Conditions("lake", "Flow()", 9, 0.9, 2**60, 50, generators=("{}",))
    revar.save_dataset(some_data(), path, conditions=terms)
    assert load_collected(path)[1] == terms


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_appending_joins_states_by_their_labels(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    revar.append_dataset(some_data(), path)
    more = Dataset.of(
        [Trajectory.of([0, 1], [0, 1], [5.0, 6.0], last_successor=0)], ((1, 2), "new")
    )
    revar.append_dataset(more, path)
    found = revar.load_dataset(path)
    assert len(found) == 3
    assert found.labels == ("start", (1, 2), True, "new")
    assert found[2].states.tolist() == [1, 3]
    assert found[2].successors.tolist() == [3, 1]
    assert same_data(merge_datasets(some_data(), more), found)


def test_observations_of_different_environments_are_not_merged() -> None:
    one = some_data(((14, 10, 0), (15, 10, 0), (16, 10, 0)))
    other = some_data(((1, 0), (1, 1), (0, 1)))
    with pytest.raises(InputError, match=r"states such as \(14, 10, 0\) and \(1, 0\)"):
        merge_datasets(one, other)


def test_joining_without_labels_keeps_numbers() -> None:
    assert merge_datasets(some_data(None), some_data(None)).labels is None
    mixed = merge_datasets(some_data(None), Dataset.of([Trajectory.of([0], [0], [1.0])], (2,)))
    assert mixed.labels == (0, 1, 2)
    assert mixed[2].states.tolist() == [2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.csv", "x", "saved as .npz or .parquet"),
        ("bad.npz", "x", "is not a dataset saved by revar"),
        ("bad.parquet", "x", "is not a dataset saved by revar"),
        ("missing.npz", None, "no such file"),
    ],
)
def test_files_that_are_no_datasets(
    name: str, content: str | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        revar.load_dataset(tmp_path / name)


def test_damaged_content_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, format="revar.Dataset", version="2")
    with pytest.raises(InputError, match="has dataset format 2; this revar reads format 1"):
        revar.load_dataset(path)
    np.savez(path, format="revar.Dataset", version="1")
    with pytest.raises(InputError, match="is incomplete: it has no 'states'"):
        revar.load_dataset(path)
    np.savez(path, start=np.zeros(1))
    with pytest.raises(InputError, match="format field is missing"):
        revar.load_dataset(path)
    with pytest.raises(InputError, match="cannot be stored"):
        revar.save_dataset(some_data((0, 1, object())), path)
    with pytest.raises(InputError, match="there is no folder"):
        revar.save_dataset(some_data(), tmp_path / "no" / "data.npz")


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Blackjack-v1"])
def test_minari_keeps_what_matters(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = gymnasium.make(name)
    result = revar.evaluate(env, "uniform", strategy="on-policy", episodes=30, seed=0)
    revar.to_minari(result.dataset, "revar/test-v0", env)
    again = revar.from_minari("revar/test-v0")
    assert again.labels == result.dataset.labels
    assert same_data(again, result.dataset)
    prior = revar.evaluate(env, "uniform", episodes=10, seed=1, prior=again)
    assert prior.prior_episodes == 30
    with pytest.raises(InputError, match="Minari refuses"):
        revar.to_minari(result.dataset, "revar/test-v0", env)
    assert again.action_count == env.action_space.n  # type: ignore[attr-defined]


def test_minari_with_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with pytest.raises(InputError, match="Minari cannot load dataset 'missing/x-v0'"):
        revar.from_minari("missing/x-v0")
    result = revar.evaluate("FrozenLake-v1", "uniform", episodes=30, seed=0)
    with pytest.raises(
        InputError, match=r"the dataset has action 3, the environment Discrete\(2\)"
    ):
        revar.to_minari(result.dataset, "revar/other-v0", "Blackjack-v1")
    with pytest.raises(InputError, match="env is an int"):
        revar.to_minari(result.dataset, "revar/other-v0", 3)
    with pytest.raises(InputError, match="mdp is an int; it must be a TabularMDP"):
        revar.to_gymnasium(3)
    revar.to_minari(result.dataset, "revar/by-name-v0", "FrozenLake-v1")
    assert same_data(revar.from_minari("revar/by-name-v0"), result.dataset)


def priced_data() -> Dataset:
    """With what steps cost, and an amount whose name is no file's."""
    data = some_data()
    return replace(
        data, amounts={"cost": np.array([0.5, 1 / 3, 2.0]), "risk/fall": np.array([0.0, 1.0, -1.0])}
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_amounts_are_saved_and_loaded_to_the_bit(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    revar.save_dataset(priced_data(), path)
    loaded = revar.load_dataset(path)
    assert same_data(loaded, some_data())
    assert list(loaded.amounts) == ["cost", "risk/fall"]
    for name, amounts in priced_data().amounts.items():
        assert np.array_equal(loaded.amounts[name], amounts)
    both = append_dataset(priced_data(), path)
    assert both.amounts["cost"].tolist() == 2 * priced_data().amounts["cost"].tolist()


def test_merged_datasets_keep_the_amounts_of_both() -> None:
    first, second = priced_data(), replace(priced_data(), amounts={"cost": np.ones(3)})
    merged = merge_datasets(first, second)
    assert list(merged.amounts) == ["cost"]
    assert np.array_equal(merged.amounts["cost"], [0.5, 1 / 3, 2.0, 1.0, 1.0, 1.0])
    assert merge_datasets(first, some_data()).amounts == {}


def test_amounts_go_to_minari_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    result = revar.evaluate(
        "FrozenLake-v1", "uniform", budget=90, cost=lambda seen, action: 1.0 + action, seed=0
    )
    revar.to_minari(result.dataset, "revar/priced-v0", "FrozenLake-v1")
    back = revar.from_minari("revar/priced-v0")
    assert same_data(back, result.dataset)
    assert np.array_equal(back.amounts["cost"], result.dataset.amounts["cost"])
