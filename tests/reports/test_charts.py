import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from revar.reports.charts import EXACT, exact_style, spread_apart, styles_of
from revar.reports.interactive import SYMBOLS
from revar.strategies import strategies

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


def test_every_strategy_has_a_look_of_its_own() -> None:
    styles = styles_of([(strategy_id, strategy_id) for strategy_id in strategies.ids()])
    assert len(set(styles.values())) == len(styles)
    assert {style.marker for style in styles.values()} <= set(SYMBOLS)


def test_a_strategy_that_is_there_twice_is_told_apart() -> None:
    styles = styles_of([("revar", f"c = {c}") for c in (0, 0.1, 1, 10)])
    assert len(set(styles.values())) == 4


def test_a_strategy_looks_the_same_in_every_report() -> None:
    one = styles_of([("flow", "flow"), ("revar", "revar")])
    other = styles_of([("on-policy", "on-policy"), ("revar", "c = 1"), ("flow", "ours")])
    assert one["flow"] == other["ours"]
    assert one["revar"] == other["c = 1"]
    assert exact_style("on-policy").color == other["on-policy"].color
    assert exact_style("limit") == EXACT
