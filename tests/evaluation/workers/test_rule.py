"""The batch rule, and that what is played follows from it and from nothing else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revar
from revar.collection.batches import Batch, BatchRequest, SharedPlan
from revar.environments.opening import environment_seed
from revar.evaluation.workers.pool import (
    AHEAD,
    SHARE_UNDER_WAY,
    InlinePool,
    PoolSettings,
    WorkerDeath,
    WorkerPool,
    default_batch,
)
from revar.evaluation.workers.worker import WorkerSetup
from revar.interrupts import Interrupt
from tests.collection.test_collection import same_data
from tests.environments.custom import Corridor


@given(
    workers=st.integers(1, 1000),
    longest=st.integers(1, 500),
    added=st.integers(0, 10**6),
    left=st.integers(1, 10**6),
)
def test_batches_under_way_are_a_share_of_what_is_added(
    workers: int, longest: int, added: int, left: int
) -> None:
    rule = PoolSettings("inline", None, workers, longest)
    length = rule.length(added, left, None)
    assert 1 <= length <= min(longest, left)
    assert length == 1 or rule.ahead * length <= SHARE_UNDER_WAY * added
    assert rule.length(added, left, 0) == 1


def test_the_default_follows_from_the_budget() -> None:
    assert default_batch(200, 8) == 1
    assert default_batch(20_000, 8) == 78
    assert default_batch(10**7, 8) == 256


def test_every_episode_has_a_seed_of_its_own() -> None:
    seeds = {environment_seed(seed, episode) for seed in range(3) for episode in range(5000)}
    assert len(seeds) == 15_000
    assert all(0 <= seed < 2**31 for seed in seeds)


class Late:
    """As many slots as there are workers, from which batches come back in any order."""

    def __init__(self, inner: InlinePool, workers: int, seed: int) -> None:
        self.inner, self.workers = inner, workers
        self.rng = np.random.default_rng(seed)
        self.held: list[Batch | WorkerDeath] = []
        self.requests: list[tuple[BatchRequest, SharedPlan]] = []

    @property
    def idle(self) -> int:
        return self.workers - len(self.held)

    def give(self, request: BatchRequest, plan: SharedPlan) -> None:
        self.requests.append((request, plan))
        self.inner.give(request, plan)
        self.held += self.inner.wait(0)

    def wait(self, seconds: float) -> list[Batch | WorkerDeath]:
        return [self.held.pop(int(self.rng.integers(len(self.held))))] if self.held else []

    def close(self) -> None:
        self.inner.close()


def late_run(monkeypatch: pytest.MonkeyPatch, seed: int, **options: Any) -> tuple[Any, Late]:
    made: list[Late] = []

    def start(self: PoolSettings, setup: WorkerSetup, interrupt: Interrupt) -> WorkerPool:
        made.append(Late(InlinePool(setup, interrupt), self.workers, seed))
        return made[0]

    with monkeypatch.context() as patch:
        patch.setattr(PoolSettings, "start", start)
        return revar.evaluate(Corridor, "uniform", horizon=9, seed=1, **options), made[0]


@pytest.mark.parametrize("strategy", ["flow", "revar", "cb-var", "ros", "on-policy"])
def test_the_order_in_which_batches_come_back_changes_nothing(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"strategy": strategy, "episodes": 250, "workers": 4, "batch": 8}
    plain = revar.evaluate(Corridor, "uniform", horizon=9, seed=1, engine="inline", **options)
    for shuffle in (0, 1):
        late, pool = late_run(monkeypatch, shuffle, **options)
        assert [request.number for request, _ in pool.requests] == list(range(len(pool.requests)))
        assert same_data(late.dataset, plain.dataset)
        assert (late.value, late.standard_error) == (plain.value, plain.standard_error)
        assert late.checkpoints == plain.checkpoints


def test_a_request_knows_exactly_the_batches_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch j is told of the visits of batches 0 to j - ahead, and of no others."""
    result, pool = late_run(monkeypatch, 3, episodes=300, workers=3, batch=8)
    steps = np.diff(result.dataset.start)
    ahead = AHEAD * 3
    counts = [request.count for request, _ in pool.requests]
    assert sum(counts) == 300
    assert max(counts) == 8
    first = np.concatenate([[0], np.cumsum(counts)])
    for (request, plan), batch in zip(pool.requests, range(len(counts)), strict=True):
        assert request.first == first[batch]
        added = int(first[max(0, batch + 1 - ahead)])
        assert plan.visits.sum() + request.visits.sum() == steps[:added].sum()
        assert request.count == PoolSettings("inline", None, 3, 8).length(
            added, 300 - request.first, None
        )
    versions = [plan.version for _, plan in pool.requests]
    assert versions == sorted(versions)
    assert len(set(versions)) < len(versions) / 3  # a plan serves several batches


def test_without_plans_that_learn_workers_and_batches_change_no_episode() -> None:
    """On-policy nothing depends on the data, and episodes are seeded one by one."""
    runs = [
        revar.evaluate(
            Corridor,
            "uniform",
            strategy="on-policy",
            episodes=120,
            horizon=9,
            seed=5,
            workers=workers,
            batch=batch,
            engine="inline",
        )
        for workers, batch in ((2, 1), (3, 1), (8, 64))
    ]
    assert all(same_data(run.dataset, runs[0].dataset) for run in runs)
    assert all(run.value == pytest.approx(runs[0].value, rel=1e-12) for run in runs)


def test_a_plan_serves_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    _, pool = late_run(monkeypatch, 0, episodes=300, workers=4, batch=4)
    plans = {id(plan): plan.version for _, plan in pool.requests}
    assert sorted(plans.values()) == list(range(len(plans)))  # each is made once
    assert 3 < len(plans) < 20 < len(pool.requests)


@pytest.mark.parametrize("engine", ["processes", "inline"])
def test_one_worker_is_the_serial_run(engine: str) -> None:
    serial = revar.evaluate(Corridor, "uniform", episodes=60, horizon=9, seed=1)
    single = revar.evaluate(
        Corridor, "uniform", episodes=60, horizon=9, seed=1, workers=1, engine=engine
    )
    assert same_data(single.dataset, serial.dataset)
    assert (single.value, single.standard_error) == (serial.value, serial.standard_error)
    assert single.conditions == serial.conditions


def test_the_value_is_right_and_its_error_honest() -> None:
    grid = revar.find_problem("gridworld")
    exact = revar.policy_value(grid.mdp, grid.policy)
    for strategy in ("flow", "revar", "on-policy"):
        result = revar.evaluate(
            "gridworld", None, strategy=strategy, episodes=600, seed=2, workers=8, engine="inline"
        )
        assert abs(result.value - exact) < 4 * result.standard_error < 1.0
        assert result.statistics.episodes == len(result.dataset) == 600
        again = revar.evaluate_data(result.dataset, grid.policy, horizon=grid.mdp.horizon)
        assert again.value == pytest.approx(result.value, rel=1e-9)
        assert again.standard_error == pytest.approx(result.standard_error, rel=1e-9)


def test_prior_data_and_half_width() -> None:
    earlier = revar.evaluate(Corridor, "uniform", strategy="uniform", episodes=300, horizon=9)
    result = revar.evaluate(
        Corridor,
        "uniform",
        episodes=5000,
        horizon=9,
        seed=1,
        prior=earlier.dataset,
        half_width=0.05,
        workers=3,
        engine="inline",
    )
    assert result.stopped == "half-width"
    assert result.prior_episodes == 300
    assert result.statistics.episodes == result.episodes + 300
    assert 100 <= result.episodes < 5000
    assert result.half_width <= 0.05


def test_a_request_can_be_told_apart_from_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Played again elsewhere, with the same plan, a request gives the same batch."""
    _, pool = late_run(monkeypatch, 0, episodes=60, workers=2, batch=4)
    request, plan = pool.requests[-1]
    pool.inner._worker.plan = plan
    one = pool.inner._worker.play(request)
    pool.inner._worker.play(replace(request, first=request.first + 1000))
    other = pool.inner._worker.play(request)
    assert same_data(one.episodes, other.episodes)
