import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from revar.charts.chart import spread_apart

places = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)
gaps = st.floats(0.1, 50.0)


def assert_apart(found: np.ndarray, gap: float) -> None:
    assert np.all(np.diff(np.sort(found)) >= gap - 1e-6)


@given(places, gaps)
def test_places_are_apart_and_keep_their_order(wanted: list[float], gap: float) -> None:
    room = gap * len(wanted)
    found = spread_apart(wanted, gap, -1e3 - room, 1e3 + room)
    assert_apart(found, gap)
    assert np.array_equal(np.argsort(found), np.argsort(wanted, kind="stable"))
    # In the middle of all room nothing is moved in one direction only.
    assert np.mean(found) == pytest.approx(np.mean(wanted), abs=1e-6)


@given(places, gaps, st.floats(-1e3, 1e3), st.floats(0.0, 500.0))
def test_places_stay_between_the_ends_where_they_fit(
    wanted: list[float], gap: float, low: float, spare: float
) -> None:
    high = low + gap * (len(wanted) - 1) + spare
    found = spread_apart(wanted, gap, low, high)
    assert_apart(found, gap)
    assert found.min() >= low - 1e-6
    assert found.max() <= high + 1e-6


@given(places, gaps, st.lists(st.floats(0.0, 60.0), min_size=12, max_size=12), st.floats(-1e3, 1e3))
def test_no_other_places_are_nearer(
    wanted: list[float], gap: float, more: list[float], start: float
) -> None:
    low, high = -2e3, 2e3
    # Some other places that are apart, in the same order.
    other = start + np.cumsum([0.0, *(gap + each for each in more[1 : len(wanted)])])
    assume(other[-1] <= high)
    found = np.sort(spread_apart(wanted, gap, low, high))
    ordered = np.sort(wanted)
    assert np.sum((found - ordered) ** 2) <= np.sum((other - ordered) ** 2) + 1e-6


def test_places_that_are_apart_stay() -> None:
    assert spread_apart([30.0, 10.0, 20.0], 10.0, 0.0, 100.0).tolist() == [30.0, 10.0, 20.0]
    assert spread_apart([5.0, 5.0], 2.0, 0.0, 10.0).tolist() == [4.0, 6.0]
    assert spread_apart([0.0, 0.0], 2.0, 0.0, 10.0).tolist() == [0.0, 2.0]
    assert spread_apart([10.0, 10.0], 2.0, 0.0, 10.0).tolist() == [8.0, 10.0]
    # Without room enough they are apart all the same.
    assert_apart(spread_apart([1.0, 2.0, 3.0], 5.0, 0.0, 4.0), 5.0)
