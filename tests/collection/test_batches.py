"""Batches: episodes played elsewhere are added to a collection as if it had played them."""

import numpy as np
import pytest

import revar
from revar import Dataset, VisitStatistics
from revar.collection import Collection
from revar.collection.batches import BatchRequest, Dispatcher, add_batch, pack
from tests.collection.test_collection import same_data


@pytest.fixture(scope="module")
def episodes() -> Dataset:
    result = revar.evaluate("gridworld", None, strategy="uniform", episodes=60, seed=3)
    dataset: Dataset = result.dataset
    return dataset


def request(first: int, count: int) -> BatchRequest:
    nothing = np.zeros(0, dtype=np.int64)
    return BatchRequest(0, first, count, 0, (), nothing, nothing)


def close(one: VisitStatistics, other: VisitStatistics) -> bool:
    states = max(one.states, other.states)
    left, right = one.run_statistics(states), other.run_statistics(states)
    whole = all(
        np.array_equal(getattr(left, name), getattr(right, name))
        for name in ("visits", "outcome_count", "initial_count")
    )
    return whole and all(
        np.allclose(getattr(left, name), getattr(right, name), rtol=1e-10, atol=1e-12)
        for name in ("reward_mean", "reward_squares", "outcome_reward_mean")
    )


def test_added_batches_are_the_episodes_and_what_they_tell(episodes: Dataset) -> None:
    policy = np.full(4, 0.25)
    collection = Collection("on-policy", horizon=12, actions=4, budget=60, seed=0)
    for first, end in ((0, 1), (1, 20), (20, 60)):
        batch = pack(request(first, end - first), episodes.part(first, end), known=0)
        assert len(batch.keys) <= 16
        add_batch(collection, batch, lambda key: policy)
    assert collection.finished == 60
    assert same_data(collection.dataset, episodes)
    assert collection.states.keys == episodes.labels
    other = Collection("on-policy", horizon=12, actions=4, seed=0)
    other.learn_from(episodes, lambda key: policy)
    assert close(collection.statistics, other.statistics)
    assert collection.estimate().value == pytest.approx(other.estimate().value, rel=1e-12)


def test_batches_added_late_are_kept_by_number(episodes: Dataset) -> None:
    policy = np.full(4, 0.25)
    collection = Collection("on-policy", horizon=12, actions=4, seed=0)
    for first, end in ((20, 60), (0, 20)):
        batch = pack(request(first, end - first), episodes.part(first, end), known=0)
        add_batch(collection, batch, lambda key: policy)
    found = collection.dataset
    assert found.labels is not None
    assert episodes.labels is not None
    assert np.array_equal(found.rewards, episodes.rewards)
    keys = [found.labels[state] for state in found.states.tolist()]
    assert keys == [episodes.labels[state] for state in episodes.states.tolist()]


def test_a_plan_is_sent_again_only_when_it_is_another(episodes: Dataset) -> None:
    policy = np.full(4, 0.25)
    collection = Collection("flow", horizon=12, actions=4, budget=60, seed=0)
    dispatcher = Dispatcher(collection)
    first = dispatcher.shared_plan()
    assert first.plan.scores.shape == (12, 0, 4)
    assert dispatcher.shared_plan() is first
    add_batch(collection, pack(request(0, 20), episodes.part(0, 20), known=0), lambda key: policy)
    second = dispatcher.shared_plan()
    assert second.version == 1
    assert second.visits.sum() == episodes.start[20]
    add_batch(collection, pack(request(20, 1), episodes.part(20, 21), known=0), lambda key: policy)
    told, plan = dispatcher.request(2, 21, 5)
    assert plan is second
    assert told.visits.sum() == episodes.start[21] - episodes.start[20]
