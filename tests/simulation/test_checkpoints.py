import numpy as np
import pytest
from numpy.typing import ArrayLike

from revar import simulate
from revar.errors import InputError
from revar.problems import problems
from revar.simulation.result import log_spaced

TREE = problems.find("tree")(3)


@pytest.mark.parametrize("episodes", [1, 2, 3, 10, 999, 1000, 50_000])
def test_by_default_they_are_spaced_evenly_in_logarithm(episodes: int) -> None:
    points = log_spaced(episodes)
    assert points[0] == 1
    assert points[-1] == episodes
    assert np.all(np.diff(points) > 0)
    # Eight a decade: each is at most 10^(1/8) times the one before, and one for rounding.
    assert np.all(points[1:] <= np.ceil(10 ** (1 / 8) * points[:-1]) + 1)
    assert points.size <= 8 * np.log10(max(episodes, 2)) + 3


def test_results_have_a_column_for_each() -> None:
    result = simulate(TREE.mdp, TREE.policy, "on-policy", episodes=500, runs=2)
    assert result.checkpoints.tolist() == log_spaced(500).tolist()
    shape = (2, result.checkpoints.size)
    assert result.estimates.shape == result.standard_errors.shape == shape
    assert result.unvisited_probability.shape == shape


@pytest.mark.parametrize(
    ("given", "expected"), [(7, [7]), ([3, 20], [3, 20]), (np.array([1.0, 40.0]), [1, 40])]
)
def test_they_can_be_given(given: ArrayLike, expected: list[int]) -> None:
    result = simulate(TREE.mdp, TREE.policy, "revar", episodes=40, runs=2, checkpoints=given)
    assert result.checkpoints.tolist() == expected
    assert result.checkpoints.dtype == np.int64


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("strategy", ["on-policy", "revar"])
def test_they_do_not_disturb_what_is_collected(strategy: str, compiled: bool | None) -> None:
    every, few = (
        simulate(
            TREE.mdp,
            TREE.policy,
            strategy,
            episodes=300,
            runs=3,
            checkpoints=points,
            compiled=compiled,
        )
        for points in (np.arange(1, 301), [10, 270])
    )
    assert np.array_equal(every.visits, few.visits)
    assert np.array_equal(every.estimates[:, [9, 269]], few.estimates)
    assert np.array_equal(every.standard_errors[:, [9, 269]], few.standard_errors)
    # Visits are those of the last episode, whatever the last checkpoint.
    assert few.visits.sum(axis=(1, 2)).tolist() == [900] * 3


def test_a_checkpoint_sees_the_episodes_up_to_it() -> None:
    """On-policy collection does not know its budget, so a shorter one is its beginning."""
    long = simulate(TREE.mdp, TREE.policy, "on-policy", episodes=50, runs=3, checkpoints=[20, 50])
    short = simulate(TREE.mdp, TREE.policy, "on-policy", episodes=20, runs=3, checkpoints=[20])
    assert np.array_equal(long.estimates[:, :1], short.estimates)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], r"checkpoints must be whole numbers of episodes; got \[\]"),
        ([1.5], r"checkpoints must be whole numbers of episodes; got \[1\.5\]"),
        ([float("nan")], "checkpoints must be whole numbers of episodes"),
        ([[1, 2]], "checkpoints must be whole numbers of episodes"),
        (["soon"], "checkpoints is not an array of numbers"),
        ([0, 5], r"must increase from at least 1 to at most episodes = 40; got \[0, 5\]"),
        ([5, 5], "must increase"),
        ([9, 5], "must increase"),
        ([41], "to at most episodes = 40"),
        ([float("inf")], "to at most episodes = 40"),
    ],
)
def test_impossible_ones_are_refused(points: ArrayLike, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(TREE.mdp, TREE.policy, "on-policy", episodes=40, runs=1, checkpoints=points)
