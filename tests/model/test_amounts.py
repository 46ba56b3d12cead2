"""Amounts of steps by pair, and totals of episodes: what NumPy makes of the same numbers."""

from math import inf
from typing import Any

import numpy as np
import pytest

from revar import Dataset
from revar.errors import InputError
from revar.model.amounts import AmountStatistics, EpisodeTotals, check_amount
from revar.model.trajectory import Trajectory

NAMES = ("cost", "unsafe")


def random_episodes(seed: int, episodes: int, states: int = 5) -> Dataset:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(episodes):
        steps = int(rng.integers(1, 7))
        path = rng.integers(states, size=steps)
        made.append(
            Trajectory(
                path,
                rng.integers(3, size=steps),
                rng.normal(size=steps),
                np.append(path[1:], -1),
                np.full(steps, np.nan),
                {"cost": rng.exponential(size=steps), "unsafe": rng.normal(size=steps)},
            )
        )
    return Dataset.of(made)


def test_means_and_variances_by_pair() -> None:
    data = random_episodes(1, 40)
    known = AmountStatistics(NAMES, 3)
    known.record_many(data)
    means, variances = known.means(7), known.variances(7)
    assert means.shape == variances.shape == (2, 7, 3)
    for number, name in enumerate(NAMES):
        amounts = data.amounts[name]
        for state in range(7):
            for action in range(3):
                here = amounts[(data.states == state) & (data.actions == action)]
                expected = here.mean() if here.size else amounts.mean()
                assert means[number, state, action] == pytest.approx(expected)
                spread = here.var() if here.size else 0.0
                assert variances[number, state, action] == pytest.approx(spread, abs=1e-12)


def test_one_by_one_and_at_once_are_the_same_bits() -> None:
    data = random_episodes(2, 30, states=40)
    at_once, one_by_one = AmountStatistics(NAMES, 3), AmountStatistics(NAMES, 3)
    at_once.record_many(data.head(10))
    at_once.record_many(data.part(10, 30))
    for i in range(data.states.size):
        amounts = [float(data.amounts[name][i]) for name in NAMES]
        one_by_one.record(int(data.states[i]), int(data.actions[i]), amounts)
    np.testing.assert_array_equal(at_once.means(50), one_by_one.means(50))
    np.testing.assert_array_equal(at_once.variances(50), one_by_one.variances(50))


def test_without_data_and_for_fewer_states() -> None:
    known = AmountStatistics(NAMES, 2)
    assert known.means(3).tolist() == np.zeros((2, 3, 2)).tolist()
    known.record(4, 1, (2.0, -1.0))
    assert known.means(2).shape == (2, 2, 2)
    assert set(known.means(2)[0].ravel()) == {2.0}  # of pairs without data, that of all steps
    assert known.means(0).shape == (2, 0, 2)


def test_episodes_that_lack_an_amount_are_left_out() -> None:
    data = random_episodes(3, 5)
    known = AmountStatistics(NAMES, 3)
    known.record_many(Dataset.of([*data]))
    before = known.means(5)
    lacking = [
        Trajectory(e.states, e.actions, e.rewards, e.successors, e.propensities,
                   {"cost": e.amounts["cost"]})
        for e in random_episodes(4, 5)
    ]  # fmt: skip
    known.record_many(Dataset.of(lacking))
    np.testing.assert_array_equal(known.means(5), before)


def test_arrays_and_back() -> None:
    known = AmountStatistics(NAMES, 3)
    known.record_many(random_episodes(5, 20))
    again = AmountStatistics.from_arrays(NAMES, known.arrays())
    np.testing.assert_array_equal(again.means(9), known.means(9))
    np.testing.assert_array_equal(again.variances(9), known.variances(9))


def test_totals_of_episodes() -> None:
    totals = EpisodeTotals(("return", "cost"))
    assert totals.mean("cost") == (0.0, inf)
    numbers = np.random.default_rng(0).normal(-5.0, 1.0, size=(30, 2))
    totals.add(numbers[:1])
    assert totals.mean("return")[0] == pytest.approx(numbers[0, 0])
    assert totals.mean("return")[1] == inf
    totals.add(numbers[1:])
    for place, name in enumerate(totals.names):
        column = numbers[:, place]
        mean, error = totals.mean(name)
        assert mean == pytest.approx(column.mean())
        assert error == pytest.approx(column.std(ddof=1) / np.sqrt(30))
    np.testing.assert_array_equal(totals.largest, numbers.max(axis=0))  # all are negative


@pytest.mark.parametrize(
    ("amount", "name", "message"),
    [
        ("much", "cost", "the cost of step 3 is 'much', which is no number"),
        (None, "unsafe", "the unsafe of step 3 is None, which is no number"),
        ([1.0, 2.0], "cost", "is .1.0, 2.0., which is no number"),
        (float("nan"), "cost", "the cost of step 3 is nan; it must be finite"),
        (-inf, "unsafe", "the unsafe of step 3 is -inf; it must be finite"),
        (-0.5, "cost", "the cost of step 3 is -0.5; it must not be negative"),
    ],
)
def test_amounts_that_are_none(amount: Any, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_amount(amount, name, "step 3")


def test_amounts_of_any_number() -> None:
    assert check_amount(np.float32(0.5), "cost", "x") == 0.5
    assert check_amount(True, "unsafe", "x") == 1.0
    assert check_amount(-2, "unsafe", "x") == -2.0
