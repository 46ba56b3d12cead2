from typing import Any

import numpy as np
import pytest

from revar import Dataset, Trajectory
from revar.errors import InputError
from revar.model.trajectory import ENDED


def test_successors_follow_from_the_states() -> None:
    ended = Trajectory.of([3, 1, 2], [0, 1, 0], [1.0, 2.0, 3.0])
    assert ended.successors.tolist() == [1, 2, ENDED]
    assert ended.terminated
    assert len(ended) == 3
    assert np.isnan(ended.propensities).all()
    cut = Trajectory.of([3, 1], [0, 1], [1.0, 2.0], last_successor=7, propensities=[0.5, 1.0])
    assert cut.successors.tolist() == [1, 7]
    assert not cut.terminated
    assert cut.propensities.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": [0, -1]}, "states at step 1 is -1"),
        ({"actions": [-2, 0]}, "actions at step 0 is -2"),
        ({"rewards": [0.0, np.nan]}, "rewards at step 1 is nan; it must be finite"),
        ({"rewards": [np.inf, 0.0]}, "rewards at step 0 is inf; it must be finite"),
        ({"last_successor": -2}, "successors at step 1 is -2"),
        ({"propensities": [0.0, 1.0]}, "propensities at step 0 is 0.0"),
        ({"propensities": [1.0, 1.5]}, "propensities at step 1 is 1.5"),
        ({"actions": [0]}, "actions has shape (1,), but states has (2,)"),
        ({"rewards": [0.0, 0.0, 0.0]}, "rewards has shape (3,), but states has (2,)"),
        ({"propensities": [[1.0, 1.0]]}, "propensities has shape (1, 2), but states has (2,)"),
        (
            {"states": [], "actions": [], "rewards": []},
            "a trajectory needs at least one step",
        ),
    ],
)
def test_bad_steps_are_named(changes: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"states": [0, 1], "actions": [0, 0], "rewards": [0.0, 0.0]}
    with pytest.raises(InputError) as caught:
        Trajectory.of(**{**good, **changes})
    assert str(caught.value) == message


def steps(successors: list[int]) -> tuple[Any, ...]:
    return (
        np.array([0, 1, 2, 0]),
        np.zeros(4, dtype=np.int64),
        np.zeros(4),
        np.array(successors),
        np.full(4, np.nan),
    )


@pytest.mark.parametrize(
    ("successors", "found"), [([1, 0, 0, ENDED], 0), ([1, ENDED, 0, ENDED], ENDED)]
)
def test_each_step_begins_where_the_one_before_it_led(successors: list[int], found: int) -> None:
    message = (
        f"successors at step 1 is {found}, but the next step of the episode is taken in state 2"
    )
    with pytest.raises(InputError) as caught:
        Trajectory(*steps(successors))
    assert str(caught.value) == message
    with pytest.raises(InputError) as caught:
        Dataset(np.array([0, 3, 4]), *steps(successors))
    assert str(caught.value) == message
    # Between episodes there is nothing to join.
    assert len(Dataset(np.array([0, 2, 3, 4]), *steps(successors))) == 3


@pytest.fixture
def episodes() -> list[Trajectory]:
    return [
        Trajectory.of([0, 1], [1, 0], [1.0, 2.0], propensities=[0.5, 0.25]),
        Trajectory.of([2], [0], [3.0], last_successor=0),
        Trajectory.of([0, 2, 1], [0, 0, 1], [4.0, 5.0, 6.0]),
    ]


def test_a_dataset_gives_back_its_episodes(episodes: list[Trajectory]) -> None:
    dataset = Dataset.of(episodes)
    assert len(dataset) == 3
    assert dataset.start.tolist() == [0, 2, 3, 6]
    assert dataset.step_in_episode.tolist() == [0, 1, 0, 0, 1, 2]
    for given, kept in zip(episodes, dataset, strict=True):
        for field in ("states", "actions", "rewards", "successors", "propensities"):
            assert np.array_equal(getattr(given, field), getattr(kept, field), equal_nan=True)
    assert dataset[1].successors.tolist() == [0]


def test_the_head_of_a_dataset(episodes: list[Trajectory]) -> None:
    head = Dataset.of(episodes).head(2)
    assert len(head) == 2
    assert head.rewards.tolist() == [1.0, 2.0, 3.0]
    assert len(Dataset.of(episodes).head(0)) == 0


def test_episodes_are_counted_from_zero(episodes: list[Trajectory]) -> None:
    dataset = Dataset.of(episodes)
    for episode in (3, -1):
        with pytest.raises(IndexError, match=f"episode {episode} of a dataset of 3"):
            dataset[episode]


def test_an_empty_dataset_is_possible() -> None:
    empty = Dataset.of([])
    assert len(empty) == 0
    assert list(empty) == []


@pytest.mark.parametrize("start", [[0, 2], [1, 4], [0, 5]])
def test_episodes_must_cover_the_steps(start: list[int]) -> None:
    with pytest.raises(InputError, match="must run from 0 to the number of steps"):
        Dataset(np.array(start), *steps([1, 2, 0, ENDED]))


def test_episodes_without_steps_are_refused() -> None:
    with pytest.raises(InputError, match="episode 1 of the dataset has no steps"):
        Dataset(np.array([0, 2, 2, 4]), *steps([1, 2, 0, ENDED]))
