"""Episodes counted at once give what is recorded step by step."""

import numpy as np
import pytest

import revar
from revar.model.moments import EpisodeCounter
from revar.model.statistics import VisitStatistics
from revar.model.trajectory import Dataset, Trajectory


@pytest.fixture(scope="module")
def data() -> Dataset:
    grid = revar.find_problem("gridworld")
    return revar.simulate(
        grid.mdp, grid.policy, "uniform", episodes=40, runs=1, keep_episodes=True
    ).datasets[0]


def counted(data: Dataset, times: list[int], states: int = 16, actions: int = 4) -> VisitStatistics:
    counter = EpisodeCounter(data, states, actions)
    return VisitStatistics.from_arrays(counter.arrays(np.array(times, dtype=np.int64)))


def assert_same(one: VisitStatistics, other: VisitStatistics) -> None:
    expected, found = one.run_statistics(16), other.run_statistics(16)
    for name in ("visits", "outcome_count", "initial_count"):
        assert np.array_equal(getattr(expected, name), getattr(found, name))
    for name in ("mean", "squares", "cubes", "quartics"):
        assert np.allclose(getattr(expected, f"reward_{name}"), getattr(found, f"reward_{name}"))
    assert np.allclose(expected.outcome_reward_mean, found.outcome_reward_mean)
    for left, right in zip(expected.outcomes, found.outcomes, strict=True):
        assert np.allclose(left, right)


def test_taking_every_episode_once_gives_the_statistics(data: Dataset) -> None:
    statistics = VisitStatistics(16, 4)
    statistics.record_many(data)
    assert_same(statistics, counted(data, [1] * 40))


def test_episodes_taken_several_times_or_never(data: Dataset) -> None:
    times = [k % 3 for k in range(40)]
    statistics = VisitStatistics(16, 4)
    statistics.record_many(data)  # so that outcomes of episodes never taken have their slots
    again = VisitStatistics.from_arrays(
        {
            name: array if name in ("pair", "successor") else np.zeros_like(array)
            for name, array in statistics.arrays().items()
        }
    )
    for episode, number in zip(data, times, strict=True):
        again.record_many([episode] * number)
    assert_same(again, counted(data, times))


def test_rewards_far_from_zero_keep_their_variance() -> None:
    far = Dataset.of([Trajectory.of([0, 0], [1, 1], [1e9 + 1, 1e9 + 2])])
    assert counted(far, [1], 1, 2).reward_variance[0, 1] == pytest.approx(0.5)


def test_no_episodes_give_empty_statistics() -> None:
    empty = counted(Dataset.of([]), [], 3, 2)
    assert (empty.states, empty.episodes, empty.visits.sum()) == (3, 0, 0)
