from math import inf

import numpy as np
import pytest

from revar.collection.checkpoints import checkpoint_times, quantile, student_quantile


@pytest.mark.parametrize(
    ("confidence", "checkpoints", "published"),
    [
        (0.95, 1, 1.960),
        (0.95, 2, 2.178),
        (0.95, 3, 2.289),
        (0.95, 5, 2.413),
        (0.95, 10, 2.555),
        (0.99, 2, 2.772),
        (0.99, 5, 2.986),
    ],
)
def test_equally_spaced_looks_give_pococks_constants(
    confidence: float, checkpoints: int, published: float
) -> None:
    """Table 1 of Pocock 1977, and the normal quantile for a single checkpoint."""
    assert quantile(confidence, list(range(1, checkpoints + 1))) == pytest.approx(
        published, abs=5e-4
    )


def test_geometric_looks_hold_together_in_a_simulation() -> None:
    times = checkpoint_times(5000)
    assert times == [100, 200, 400, 800, 1600, 3200, 5000]
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(200_000, len(times))) * np.sqrt(np.diff([0, *times]))
    paths = np.cumsum(steps, axis=1) / np.sqrt(times)
    inside = np.mean(np.all(np.abs(paths) < quantile(0.95, times), axis=1))
    assert inside == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 200_000))


def test_looks_grow_by_their_factor_up_to_the_budget() -> None:
    assert checkpoint_times(1000) == [100, 200, 400, 800, 1000]
    assert checkpoint_times(600, 1.5) == [100, 150, 225, 337, 506, 600]


def test_few_episodes_have_one_look() -> None:
    assert checkpoint_times(100) == [100]
    assert checkpoint_times(7) == [7]
    assert quantile(0.95, [7]) == quantile(0.95) == pytest.approx(1.959964, abs=1e-6)


@pytest.mark.parametrize("episodes", [2, 10, 100])
def test_student_has_the_chance_of_the_normal_quantile(episodes: int) -> None:
    from scipy import stats

    reach = student_quantile(quantile(0.9, [100, 200]), episodes)
    inside = stats.norm.cdf(quantile(0.9, [100, 200]))
    assert stats.t.cdf(reach, episodes - 1) == pytest.approx(inside, abs=1e-9)


def test_one_episode_has_no_end() -> None:
    assert student_quantile(1.96, 1) == inf
    assert student_quantile(1.96, 10**6) == pytest.approx(1.96, rel=1e-5)
