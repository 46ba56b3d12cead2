"""The optimal flow of large models: certified, and in memory for a few tables [L, S, A]."""

import tracemalloc

import numpy as np
import pytest

from revar import estimation_variance, optimal_flow
from revar.problems import problems

# The solver keeps behavior and flow, a reply and its flow, and what has no step is small.
MOST_TABLES = 6


def test_a_grid_of_900_states_and_90_steps() -> None:
    grid = problems.find("gridworld")(30, horizon=90)
    flow = optimal_flow(grid.mdp, grid.policy, tolerance=0.02)
    assert flow.gap <= 0.02 * flow.limit
    found = estimation_variance(grid.mdp, grid.policy, flow.behavior)
    assert flow.limit == pytest.approx(found, rel=1e-9)
    np.testing.assert_allclose(flow.behavior.sum(axis=2), 1.0, rtol=1e-12)
    # What a closer look finds lies between the bounds.
    closer = optimal_flow(grid.mdp, grid.policy, tolerance=0.005)
    assert closer.gap <= 0.005 * closer.limit
    assert flow.limit - flow.gap <= closer.limit <= flow.limit
    assert closer.limit - closer.gap <= flow.limit


@pytest.mark.parametrize(("size", "horizon"), [(10, 20), (10, 120), (20, 30)])
def test_memory_in_tables(size: int, horizon: int) -> None:
    """What NumPy allocates: room that compiled sweeps take for themselves is not traced."""
    grid = problems.find("gridworld")(size, horizon=horizon)
    optimal_flow(grid.mdp, grid.policy, tolerance=0.1)  # compile, and load what is cached
    tracemalloc.start()
    try:
        optimal_flow(grid.mdp, grid.policy, tolerance=0.02)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    tables = peak / (horizon * size**2 * 4 * 8)
    assert 1 < tables < MOST_TABLES  # at least the behavior that is returned
