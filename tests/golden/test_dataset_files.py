"""Datasets written in format 1 stay readable, to the last bit, for ever."""

from pathlib import Path

import numpy as np
import pytest

from revar.datasets import Conditions, load_collected
from revar.model.trajectory import Dataset

HERE = Path(__file__).parent


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_format_1(suffix: str) -> None:
    dataset, conditions = load_collected(HERE / f"dataset_format_1.{suffix}")
    assert isinstance(dataset, Dataset)
    assert dataset.start.tolist() == [0, 2, 3]
    assert dataset.states.tolist() == [0, 1, 1]
    assert dataset.actions.tolist() == [1, 0, 0]
    assert dataset.rewards.tolist() == [0.1, 1 / 3, -2.0]
    assert dataset.successors.tolist() == [1, -1, 2]
    assert np.array_equal(dataset.propensities, [0.5, np.nan, np.nan], equal_nan=True)
    assert dataset.labels == ("start", (1, (2, "x")), 7)
    assert conditions == Conditions(
        environment="Lake-v1",
        strategy="Flow()",
        horizon=9,
        discount=0.99,
        seed=123456789,
        episodes=50,
        environments=2,
        prior_episodes=3,
        resumable=2,
        generators=('{"bit_generator": "PCG64"}',),
    )
