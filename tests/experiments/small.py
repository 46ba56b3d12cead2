"""Experiments that take a moment, and what makes two results equal."""

from pathlib import Path
from typing import Any

import numpy as np

from revar.experiments.critic_problems import CriticProblem
from revar.experiments.critics import CriticStudy, Size
from revar.experiments.experiment import Experiment, record_of
from revar.experiments.results import Results, Series

SMALL: dict[str, Any] = {
    "name": "small",
    "title": "A small experiment",
    "question": "Is it small?",
    "runs": 5,
    "episodes": 40,
    "problems": ["example-1", {"id": "bandit", "label": "five arms"}],
    "strategies": [
        {"id": "on-policy", "estimators": ["certainty-equivalence", "monte-carlo"]},
        "revar",
    ],
}

SMALL_TOML = """
name = "small"
title = "A small experiment"
question = "Is it small?"
runs = 5
episodes = 40
problems = ["example-1", { id = "bandit", label = "five arms" }]
strategies = [
  { id = "on-policy", estimators = ["certainty-equivalence", "monte-carlo"] },
  "revar",
]
"""

LINE = CriticProblem(
    name="line", environment="CartPole-v1", policy="cartpole-line:1", horizon=20, value=19.0
)
PENDULUM = CriticProblem(
    name="pendulum", environment="Pendulum-v1", policy="normal-network:pendulum_ppo", horizon=10
)
STUDY = CriticStudy(
    name="critics",
    title="Small",
    question="Does it run?",
    sizes=(Size(episodes=9, runs=2),),
    problems=(LINE, PENDULUM),
    critics=("linear",),
)


def small(**changes: Any) -> Experiment:
    """The small experiment, with some fields changed."""
    return record_of(SMALL | changes, Experiment, "small")


def assert_equal_results(found: Results, expected: Results) -> None:
    """Every number equal to the last bit; NaN is NaN."""
    assert [s.label() for s in found.series] == [s.label() for s in expected.series]
    for one, other in zip(found.series, expected.series, strict=True):
        assert_equal_series(one, other)


def assert_equal_series(found: Series, expected: Series) -> None:
    """Every number of two series equal, and of the same kind."""
    assert found.true_value == expected.true_value
    for name in (
        "checkpoints",
        "estimates",
        "standard_errors",
        "unvisited_probability",
        "variances",
        "visits",
    ):
        one, other = getattr(found, name), getattr(expected, name)
        np.testing.assert_array_equal(one, other, strict=True)


def tables_in(directory: Path) -> dict[str, bytes]:
    """The three tables as they are on disk."""
    files = [path for path in directory.iterdir() if path.suffix in (".parquet", ".csv")]
    return {path.name: path.read_bytes() for path in sorted(files)}
