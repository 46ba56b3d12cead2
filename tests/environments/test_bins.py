import numpy as np
import pytest

from revar import Bins
from revar.errors import InputError


def test_states_are_the_places_between_edges() -> None:
    bins = Bins([[0.0], [-1.0, 1.0]])
    assert bins.counts == (2, 3)
    seen = {bins.state(o) for o in ([-5, -5], [-5, 0], [0, 1], [0.0, 0.999], [9, 9])}
    assert seen == {(0, 0), (0, 1), (1, 2), (1, 1)}


def test_uniform_bins_are_equally_wide_and_centres_lie_inside() -> None:
    bins = Bins.uniform([-2.0, 0.0], [2.0, 1.0], [4, 5])
    assert bins.edges[0] == (-1.0, 0.0, 1.0)
    for first in range(4):
        for second in range(5):
            assert bins.state(bins.centre((first, second))) == (first, second)
    assert bins.centre((0, 0)).tolist() == pytest.approx([-1.5, 0.1])
    assert bins.centre((3, 4)).tolist() == pytest.approx([1.5, 0.9])
    single = Bins([[], [2.0], [0.0]])
    for state in ((0, 0, 0), (0, 1, 1)):
        assert single.state(single.centre(state)) == state


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[1.0, 0.0]], r"edges of number 0 are \[1.0, 0.0\]; they must ascend"),
        ([[0.0], [np.nan]], "edges of number 1"),
        ([], "at least one number"),
    ],
)
def test_bad_edges_are_refused(edges: list[list[float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Bins(edges)


def test_bad_observations_are_refused() -> None:
    bins = Bins([[0.0], [0.0]])
    with pytest.raises(InputError, match="number 1 of an observation is nan"):
        bins.state([0.0, np.nan])
    with pytest.raises(InputError, match="has 3 numbers; bins are given for 2"):
        bins.state([0.0, 0.0, 1.0])
    with pytest.raises(InputError, match="must be the same"):
        Bins.uniform([0.0], [1.0], [2, 3])
    with pytest.raises(InputError, match="must be finite"):
        Bins.uniform([0.0], [np.inf], [2])
