"""A large simulation in parts: runs that begin at another number are the same runs."""

from typing import Any

import numpy as np
import pytest

from revar import find_problem, simulate
from revar.errors import InputError


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "revar"},
        {"strategy": "flow"},
        {"strategy": "revar", "compiled": False},
        {"strategy": "on-policy", "estimator": "doubly-robust", "keep_episodes": True},
    ],
    ids=["compiled", "flow", "plain", "whole episodes"],
)
def test_parts_are_rows_of_the_whole(options: dict[str, Any]) -> None:
    problem = find_problem("gridworld", size=3)

    def runs(count: int, first: int) -> Any:
        return simulate(
            problem.mdp,
            problem.policy,
            episodes=12,
            runs=count,
            first_run=first,
            seed=7,
            checkpoints=[6, 12],
            **options,
        )

    whole = runs(7, 0)
    parts = [runs(3, 0), runs(1, 3), runs(3, 4)]
    for field in ("estimates", "standard_errors", "unvisited_probability", "visits"):
        joined = np.concatenate([getattr(part, field) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, field), strict=True)
    rewards = [data.rewards for part in parts for data in part.datasets]
    assert len(rewards) == len(whole.datasets)
    for one, other in zip(rewards, whole.datasets, strict=True):
        np.testing.assert_array_equal(one, other.rewards)
    # The runs differ from each other, or nothing would be shown.
    assert np.unique(whole.estimates[:, -1]).size == 7


@pytest.mark.parametrize("first", [-1, 1.5, "2", None])
def test_numbers_of_runs_are_whole(first: Any) -> None:
    problem = find_problem("bandit")
    message = f"first_run is {first!r}; it must be a whole number of at least 0"
    with pytest.raises(InputError) as caught:
        simulate(problem.mdp, problem.policy, "on-policy", episodes=1, runs=1, first_run=first)
    assert str(caught.value) == message
