import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar import TabularMDP, Trajectory, VisitStatistics
from revar.errors import InputError
from revar.model.moments import push
from revar.model.trajectory import ENDED, Dataset
from tests.plain_model import MODELS

ACTIONS = 2


@st.composite
def episodes(draw: Callable[..., Any], largest_state: int = 4) -> Trajectory:
    """An episode over a few states, with rewards of ordinary size."""
    length = draw(st.integers(1, 5))
    state = st.integers(0, largest_state)
    return Trajectory.of(
        draw(st.lists(state, min_size=length, max_size=length)),
        draw(st.lists(st.integers(0, ACTIONS - 1), min_size=length, max_size=length)),
        draw(st.lists(st.floats(-10, 10), min_size=length, max_size=length)),
        last_successor=draw(st.one_of(st.just(ENDED), state)),
    )


samples = st.lists(episodes(), max_size=8)


def recorded(trajectories: list[Trajectory]) -> VisitStatistics:
    statistics = VisitStatistics(0, ACTIONS)
    statistics.record_many(trajectories)
    return statistics


@dataclass(frozen=True)
class Rows:
    """The raw data as one row a step."""

    state: Any
    action: Any
    reward: Any
    successor: Any

    @classmethod
    def of(cls, trajectories: list[Trajectory]) -> "Rows":
        data = Dataset.of(trajectories)
        return cls(data.states, data.actions, data.rewards, data.successors)

    def rewards(self, state: int, action: int, successor: int | None = None) -> Any:
        chosen = (self.state == state) & (self.action == action)
        if successor is not None:
            chosen &= self.successor == successor
        return self.reward[chosen]


def assert_summarises(statistics: VisitStatistics, trajectories: list[Trajectory]) -> None:
    """Compare with a direct computation from the raw data, pair by pair."""
    rows = Rows.of(trajectories)
    states = int(max([-1, *rows.state, *rows.successor])) + 1
    assert statistics.states == states
    assert statistics.episodes == len(trajectories)
    starts = [int(trajectory.states[0]) for trajectory in trajectories]
    assert statistics.initial_count.tolist() == [starts.count(s) for s in range(states)]
    observed = statistics.run_statistics(states)
    for state in range(states):
        for action in range(ACTIONS):
            rewards = rows.rewards(state, action)
            count = rewards.size
            assert statistics.visits[state, action] == count
            mean = rewards.mean() if count else 0.0
            assert statistics.reward_mean[state, action] == pytest.approx(mean, abs=1e-12)
            variance = rewards.var(ddof=1) if count > 1 else np.nan
            assert statistics.reward_variance[state, action] == pytest.approx(
                variance, rel=1e-9, abs=1e-12, nan_ok=True
            )
            for power, sums in ((3, observed.reward_cubes), (4, observed.reward_quartics)):
                assert sums[state, action] == pytest.approx(
                    ((rewards - mean) ** power).sum(), rel=1e-9, abs=1e-8
                )
            pair = state * ACTIONS + action
            slots = slice(*observed.outcomes.row_start[pair : pair + 2])
            seen = sorted(set(rows.successor[(rows.state == state) & (rows.action == action)]))
            seen = [s for s in seen if s != ENDED] + [ENDED] * (ENDED in seen)
            successors = observed.outcomes.successor[slots]
            assert successors.tolist() == [states if s == ENDED else s for s in seen]
            for slot, successor in enumerate(seen, start=slots.start):
                landed = rows.rewards(state, action, successor)
                assert observed.outcome_count[slot] == landed.size
                assert observed.outcomes.probability[slot] == landed.size / count
                assert observed.outcome_reward_mean[slot] == pytest.approx(landed.mean(), abs=1e-12)


def assert_same(one: VisitStatistics, other: VisitStatistics) -> None:
    """Equal counts, and moments equal to rounding."""
    assert (one.states, one.actions, one.runs) == (other.states, other.actions, other.runs)
    for run in range(one.runs or 1):
        left, right = one.run_statistics(one.states, run), other.run_statistics(other.states, run)
        assert np.array_equal(left.visits, right.visits)
        assert np.array_equal(left.initial_count, right.initial_count)
        assert np.array_equal(left.outcome_count, right.outcome_count)
        for a, b in zip(left.outcomes, right.outcomes, strict=True):
            assert np.array_equal(a, b)
        for field in ("reward_mean", "reward_squares", "outcome_reward_mean"):
            np.testing.assert_allclose(
                getattr(left, field), getattr(right, field), rtol=1e-9, atol=1e-12
            )
        for field in ("reward_cubes", "reward_quartics"):
            np.testing.assert_allclose(
                getattr(left, field), getattr(right, field), rtol=1e-9, atol=1e-8
            )


@given(samples)
def test_recording_summarises_the_raw_data(sample: list[Trajectory]) -> None:
    assert_summarises(recorded(sample), sample)


@given(samples, samples)
def test_merging_is_recording_both(one: list[Trajectory], other: list[Trajectory]) -> None:
    left, right = recorded(one), recorded(other)
    merged = left.merge(right)
    assert_summarises(merged, one + other)
    # Neither part was changed.
    assert_summarises(left, one)
    assert_summarises(right, other)


@given(samples, samples)
def test_adding_is_merging_in_place(one: list[Trajectory], other: list[Trajectory]) -> None:
    statistics, more = recorded(one), recorded(other)
    merged = statistics.merge(more).arrays()
    statistics.add(more)
    for name, array in statistics.arrays().items():
        assert np.array_equal(array, merged[name]), name
    assert_same(statistics, recorded(one + other))
    assert_summarises(more, other)
    # What was merged can be added to like anything that was recorded.
    statistics.record_many(one)
    assert_same(statistics, recorded(one + other + one))


@given(samples, samples)
def test_merging_is_commutative(one: list[Trajectory], other: list[Trajectory]) -> None:
    left, right = recorded(one), recorded(other)
    assert_same(left.merge(right), right.merge(left))


@given(samples, samples, samples)
def test_merging_is_associative(
    one: list[Trajectory], two: list[Trajectory], three: list[Trajectory]
) -> None:
    a, b, c = recorded(one), recorded(two), recorded(three)
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))


@given(samples)
def test_nothing_is_neutral(sample: list[Trajectory]) -> None:
    statistics = recorded(sample)
    assert_same(VisitStatistics(0, ACTIONS).merge(statistics), statistics)
    assert_same(statistics.merge(VisitStatistics(0, ACTIONS)), statistics)


@pytest.mark.parametrize("parts", [1, 7])
def test_a_huge_mean_does_not_drown_a_small_deviation(parts: int) -> None:
    # A plain sum of squares has no digits left for 1e-6 beside 1e18.
    rewards = np.random.default_rng(0).normal(1e9, 1e-3, size=3500)
    statistics = VisitStatistics(1, 1)
    for part in np.split(rewards, parts):
        shard = VisitStatistics(1, 1)
        for reward in part:
            shard.record(Trajectory.of([0], [0], [reward]))
        statistics = statistics.merge(shard)
    centred = rewards - 1e9  # exact in floating point
    # Every update rounds the mean to a multiple of 1.2e-7: a random walk of standard deviation
    # 1.2e-7 sqrt(3500/12) = 2e-6 at most.
    assert statistics.reward_mean[0, 0] - 1e9 == pytest.approx(centred.mean(), abs=6e-6)
    assert statistics.reward_variance[0, 0] == pytest.approx(centred.var(ddof=1), rel=1e-3)


def test_new_states_and_successors_make_room() -> None:
    statistics = VisitStatistics(1, ACTIONS)
    trajectories = [
        Trajectory.of([s, 2 * s], [s % 2, 0], [float(s), -float(s)], last_successor=50 - s)
        for s in range(40)
    ]
    for count, trajectory in enumerate(trajectories, start=1):
        statistics.record(trajectory)
        assert statistics.visits.sum() == 2 * count
    assert statistics.states == 79
    assert_summarises(statistics, trajectories)


def test_steps_can_be_recorded_as_they_happen() -> None:
    statistics = VisitStatistics(0, ACTIONS)
    statistics.start_episode(3)
    statistics.record_step(3, 1, 2.5, 1)
    statistics.record_step(1, 0, -1.0, ENDED)
    whole = recorded([Trajectory.of([3, 1], [1, 0], [2.5, -1.0])])
    assert_same(statistics, whole)


@given(samples, samples)
def test_runs_are_kept_apart(one: list[Trajectory], other: list[Trajectory]) -> None:
    both = VisitStatistics(5, ACTIONS, runs=2)
    both.record_many(one, run=0)
    both.record_many(other, run=1)
    assert both.visits.shape == (2, 5, ACTIONS)
    assert both.episodes.tolist() == [len(one), len(other)]
    for run, sample in enumerate((one, other)):
        alone = VisitStatistics(5, ACTIONS)
        alone.record_many(sample)
        assert np.array_equal(both.visits[run], alone.visits)
        assert np.array_equal(both.reward_mean[run], alone.reward_mean)
        assert np.array_equal(both.reward_variance[run], alone.reward_variance, equal_nan=True)
        assert np.array_equal(both.initial_count[run], alone.initial_count)
        # The other run's outcomes have slots here too, with a count of zero.
        mine, expected = both.run_statistics(5, run), alone.run_statistics(5)
        taken = mine.outcome_count > 0
        assert np.array_equal(mine.outcomes.successor[taken], expected.outcomes.successor)
        assert np.array_equal(mine.outcomes.probability[taken], expected.outcomes.probability)
        assert np.array_equal(mine.outcome_reward_mean[taken], expected.outcome_reward_mean)
        assert np.all(mine.outcomes.probability[~taken] == 0.0)


@given(samples, samples)
def test_runs_merge_run_by_run(one: list[Trajectory], other: list[Trajectory]) -> None:
    def of(first: list[Trajectory], second: list[Trajectory]) -> VisitStatistics:
        statistics = VisitStatistics(0, ACTIONS, runs=2)
        statistics.record_many(first, run=0)
        statistics.record_many(second, run=1)
        return statistics

    assert_same(of(one, other).merge(of(other, other)), of(one + other, other + other))


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_a_model_gives_a_slot_to_every_outcome(kind: str) -> None:
    mdp = MODELS[kind](2).mdp()
    observed = VisitStatistics.for_model(mdp).run_statistics(mdp.states)
    assert np.array_equal(observed.outcomes.row_start, mdp.outcomes.row_start)
    assert np.array_equal(observed.outcomes.successor, mdp.outcomes.successor)
    assert not observed.outcome_count.any()
    assert not observed.outcomes.probability.any()


def test_known_slots_do_not_change_what_is_learned() -> None:
    mdp = TabularMDP(np.full((3, ACTIONS, 3), 0.25), 0.0, 1.0, [1.0, 0.0, 0.0], 4)
    sample = [
        Trajectory.of([0, 2, 2], [1, 0, 0], [1.0, 2.0, 4.0]),
        Trajectory.of([0, 1], [1, 1], [3.0, 3.0], last_successor=2),
    ]
    known = VisitStatistics.for_model(mdp, runs=3)
    known.record_many(sample, run=2)
    learned = recorded(sample)
    layout = known.run_statistics(3, 2)
    assert np.array_equal(layout.outcomes.successor, mdp.outcomes.successor)
    assert layout.outcome_count.sum() == 5
    taken = layout.outcome_count > 0
    assert np.array_equal(layout.outcome_count[taken], learned.run_statistics(3).outcome_count)
    assert np.array_equal(known.reward_mean[2], learned.reward_mean)
    assert not known.visits[:2].any()


def test_reading_for_a_larger_policy_changes_nothing() -> None:
    statistics = recorded([Trajectory.of([0, 1], [0, 1], [1.0, 2.0])])
    observed = statistics.run_statistics(5)
    assert observed.visits.shape == (5, ACTIONS)
    assert observed.outcomes.row_start.tolist() == [0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]
    assert observed.outcomes.successor.tolist() == [1, 5]
    assert statistics.states == 2
    assert statistics.visits.shape == (2, ACTIONS)
    observed.visits[:] = 9
    observed.outcome_count[:] = 9
    assert statistics.visits.sum() == 2
    assert statistics.run_statistics(2).outcome_count.tolist() == [1, 1]


def test_a_smaller_policy_is_refused() -> None:
    statistics = recorded([Trajectory.of([0, 4], [0, 1], [1.0, 2.0])])
    with pytest.raises(InputError, match="the data has 5 states, the target policy covers 4"):
        statistics.run_statistics(4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda s: s.record(Trajectory.of([0, 9], [1, 2], [1.0, 1.0])),
            "action 2 in a trajectory; there are 2 actions",
        ),
        (
            lambda s: s.record(Trajectory.of([9], [0], [1.0]), run=1),
            "run 1 of statistics of 1 runs",
        ),
        (
            lambda s: s.record(Trajectory.of([9], [0], [1.0]), run=-1),
            "run -1 of statistics of 1 runs",
        ),
        (lambda s: s.start_episode(-1), "an episode began in state -1; states count from 0"),
        (lambda s: s.start_episode(9, run=1), "run 1 of statistics of 1 runs"),
        (lambda s: s.record_step(9, 2, 1.0, 9), "action 2 in state 9; there are 2 actions"),
        (lambda s: s.record_step(9, -1, 1.0, 9), "action -1 in state 9; there are 2 actions"),
        (lambda s: s.record_step(9, 0, np.nan, 9), "the reward of state 9, action 0 is nan"),
        (lambda s: s.record_step(9, 0, np.inf, 9), "the reward of state 9, action 0 is inf"),
        (
            lambda s: s.record_step(-1, 0, 1.0, 9),
            "a step from state -1 to 9; states count from 0",
        ),
        (
            lambda s: s.record_step(9, 0, 1.0, -2),
            "a step from state 9 to -2; states count from 0",
        ),
        (lambda s: s.record_step(9, 0, 1.0, 9, run=3), "run 3 of statistics of 1 runs"),
    ],
)
def test_what_is_refused_leaves_no_trace(
    call: Callable[[VisitStatistics], None], message: str
) -> None:
    sample = [Trajectory.of([0, 1], [0, 1], [1.0, 2.0])]
    statistics = recorded(sample)
    with pytest.raises(InputError) as caught:
        call(statistics)
    assert str(caught.value) == message
    assert_summarises(statistics, sample)


def test_episodes_before_a_refused_one_are_kept() -> None:
    good, bad = Trajectory.of([0], [0], [1.0]), Trajectory.of([0], [5], [1.0])
    statistics = VisitStatistics(0, ACTIONS)
    with pytest.raises(InputError, match="action 5"):
        statistics.record_many([good, bad, good])
    assert_summarises(statistics, [good])


def test_only_like_is_merged_with_like() -> None:
    with pytest.raises(InputError, match="2 actions and runs=None with 3 actions and runs=None"):
        VisitStatistics(1, 2).merge(VisitStatistics(1, 3))
    with pytest.raises(InputError, match="2 actions and runs=None with 2 actions and runs=4"):
        VisitStatistics(1, 2).merge(VisitStatistics(1, 2, runs=4))
    with pytest.raises(InputError, match="2 actions and runs=None with 3 actions and runs=None"):
        VisitStatistics(1, 2).add(VisitStatistics(1, 3))


@pytest.mark.parametrize("arguments", [(-1, 2, None), (2, 0, None), (2, 2, 0)])
def test_impossible_sizes_are_refused(arguments: tuple[int, int, int | None]) -> None:
    states, actions, runs = arguments
    with pytest.raises(InputError, match="statistics need actions >= 1"):
        VisitStatistics(states, actions, runs=runs)


def random_steps(count: int, runs: int) -> list[tuple[int, int, float, int, int]]:
    rng = np.random.default_rng(5)
    return [
        (
            int(rng.integers(1 + i // 10)),  # states and slots keep growing
            int(rng.integers(ACTIONS)),
            float(rng.normal(3.0, 2.0)),
            int(rng.integers(ENDED, 1 + i // 10)),
            int(rng.integers(runs)),
        )
        for i in range(count)
    ]


def same_bits(one: VisitStatistics, other: VisitStatistics) -> bool:
    left, right = one.arrays(), other.arrays()
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


@pytest.mark.parametrize("runs", [1, 3])
def test_steps_that_wait_are_summarised_as_if_one_by_one(runs: int) -> None:
    steps = random_steps(300, runs)
    waiting = VisitStatistics(0, ACTIONS, runs=runs)
    at_once = VisitStatistics(0, ACTIONS, runs=runs)
    plain: dict[tuple[int, int, int], Any] = {}
    outcomes: dict[tuple[int, int, int, int], tuple[int, float]] = {}
    push_plainly = cast(Any, push).py_func
    for state, action, reward, successor, run in steps:
        waiting.record_step(state, action, reward, successor, run=run)
        at_once.record_step(state, action, reward, successor, run=run)
        assert at_once.reward_mean.shape[1] == at_once.states  # read after each step
        place = (run, state, action)
        count, *moments = plain.get(place, (0, 0.0, 0.0, 0.0, 0.0))
        plain[place] = (count + 1, *push_plainly(count + 1, *moments, reward))
        seen, mean = outcomes.get((*place, successor), (0, 0.0))
        outcomes[*place, successor] = (seen + 1, mean + (reward - mean) / (seen + 1))
        assert waiting.visits[place] == count + 1
    assert same_bits(waiting, at_once)
    arrays = waiting.arrays()
    for place, expected in plain.items():
        found = [arrays[name][place] for name in ("visits", "mean", "squares", "cubes", "quartics")]
        assert found == list(expected)
    for (run, state, action, successor), expected in outcomes.items():
        slot = np.flatnonzero(
            (arrays["pair"] == state * ACTIONS + action) & (arrays["successor"] == successor)
        ).item()
        assert (arrays["count"][run, slot], arrays["outcome_mean"][run, slot]) == expected


def test_a_copy_goes_on_as_the_original_does() -> None:
    steps = random_steps(120, 1)
    original = VisitStatistics(0, ACTIONS)
    for state, action, reward, successor, _ in steps[:60]:
        original.record_step(state, action, reward, successor)
    copies = [copy.deepcopy(original), pickle.loads(pickle.dumps(original))]
    for state, action, reward, successor, _ in steps[60:]:
        for statistics in (original, *copies):
            statistics.record_step(state, action, reward, successor)
    assert all(same_bits(original, each) for each in copies)
    assert all(np.array_equal(original.visits, each.visits) for each in copies)


def test_steps_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("revar.model.statistics.PENDING", 4)
    statistics = VisitStatistics(1, ACTIONS)
    for _ in range(50):
        statistics.start_episode(0)
        statistics.record_step(0, 0, 1.0, ENDED)
        assert len(statistics._pending_rewards) <= 4
    assert statistics.reward_mean[0, 0] == 1.0


def test_several_threads_may_read_what_waits() -> None:
    """The first one summarises; nothing is counted twice, and nobody sees half of it."""
    for _ in range(30):
        statistics = VisitStatistics(2, 2)
        for i in range(30_000):
            statistics.record_step(i % 2, i % 2, float(i % 7), (i + 1) % 2)
        with ThreadPoolExecutor(4) as pool:
            tasks = [pool.submit(statistics.run_statistics, 2) for _ in range(8)]
            seen = [task.result() for task in tasks]
        for read in seen:
            assert read.visits.sum() == read.outcome_count.sum() == 30_000
            assert np.array_equal(read.reward_squares, seen[0].reward_squares)


@pytest.mark.parametrize("run", [0, 1])
def test_many_steps_at_once_are_recorded_as_one_by_one(run: int) -> None:
    draw = np.random.default_rng(4)
    together, single = (VisitStatistics(2, 3, runs=2) for _ in range(2))
    for count in (1, 40, 500):
        states, successors = draw.integers(20, size=count), draw.integers(-1, 25, size=count)
        actions, rewards = draw.integers(3, size=count), draw.normal(size=count)
        columns = [each.tolist() for each in (states, actions, rewards, successors)]
        together.record_steps(*columns, run=run)
        for step in zip(*columns, strict=True):
            single.record_step(*step, run=run)
    assert together.recorded == single.recorded
    found, wanted = together.arrays(), single.arrays()
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    with pytest.raises(InputError, match="action 3 in state 1"):
        together.record_steps([1] * 50, [0] * 49 + [3], [0.5] * 50, [0] * 50, run=run)
    assert together.recorded == single.recorded
