"""From scores to actions: argmax b/T, unvisited actions first, ties by lot."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from revar import Task, VisitStatistics
from revar.errors import InputError
from revar.model.budget import Budget
from revar.simulation.plain import PlainRun
from revar.strategies import Plan, Selection
from revar.strategies.selection import sampled_action
from tests.strategies.fixed_plan import FixedPlan, asked, run_in_one_state

# The value that a chi-square variable of so many degrees of freedom passes once in 1000 times.
CHI_SQUARE = {1: 10.828, 2: 13.816, 3: 16.266}
TRACKED = [Selection.TRACK, Selection.LARGEST]
EVEN = [0.25] * 4


def plan(scores: ArrayLike, selection: Selection, visits_first: int = 1) -> Plan:
    return Plan(np.reshape(scores, (1, 1, -1)), selection, visits_first=visits_first)


def assert_drawn_from(counts: ArrayLike, shares: ArrayLike) -> None:
    """Pearson's test that the counts come from those shares."""
    seen, probability = np.asarray(counts, dtype=np.float64), np.asarray(shares)
    possible = probability > 0
    assert seen[~possible].sum() == 0
    expected = seen.sum() * probability[possible]
    statistic = float(np.sum((seen[possible] - expected) ** 2 / expected))
    assert statistic < CHI_SQUARE[int(possible.sum()) - 1]


@pytest.mark.parametrize("selection", TRACKED)
def test_unvisited_actions_go_first_whatever_their_scores(selection: Selection) -> None:
    counts = asked(plan([0.9, 0.0, 0.1, 0.0], selection), EVEN, [3, 0, 5, 0], times=2000)
    assert_drawn_from(counts, [0.0, 0.5, 0.0, 0.5])


@pytest.mark.parametrize("selection", TRACKED)
def test_actions_below_their_first_visits_go_before_the_rest(selection: Selection) -> None:
    scores = plan([0.9, 0.05, 0.05], selection, visits_first=3)
    even = [1 / 3] * 3
    # The least visited one before the others.
    assert asked(scores, even, [7, 1, 2], times=50).tolist() == [0, 50, 0]
    assert asked(scores, even, [7, 2, 0], times=50).tolist() == [0, 0, 50]
    assert_drawn_from(asked(scores, even, [7, 2, 2], times=1000), [0.0, 0.5, 0.5])
    # Then the scores decide.
    assert asked(scores, even, [3, 3, 3], times=50).tolist() == [50, 0, 0]


def test_tracking_takes_the_largest_score_per_visit() -> None:
    scores = [0.5, 0.3, 0.2]
    even = [1 / 3] * 3
    # 0.5/50, 0.3/20 and 0.2/15: the second is furthest behind its share.
    counts = asked(plan(scores, Selection.TRACK), even, [50, 20, 15], times=50)
    assert counts.tolist() == [0, 50, 0]
    counts = asked(plan(scores, Selection.TRACK), even, [29, 20, 15], times=50)
    assert counts.tolist() == [50, 0, 0]
    # Shares need not be normalized.
    counts = asked(plan([5.0, 3.0, 2.0], Selection.TRACK), even, [50, 20, 13], times=50)
    assert counts.tolist() == [0, 0, 50]


def test_an_index_does_not_look_at_visits() -> None:
    counts = asked(plan([0.5, 0.3, 0.2], Selection.LARGEST), [1 / 3] * 3, [500, 2, 1], times=50)
    assert counts.tolist() == [50, 0, 0]


def test_tracking_matches_its_shares() -> None:
    shares = np.array([0.6, 0.05, 0.35])
    run = run_in_one_state(plan(shares, Selection.TRACK), [1 / 3] * 3, [0, 0, 0])
    for _ in range(1000):
        action, _ = run.act(0, 0)
        run.statistics.record_step(0, action, 0.0, -1)
    # Deterministic tracking never falls a whole visit per action behind.
    assert np.abs(run.statistics.visits[0] - 1000 * shares).max() <= 2


def test_followed_shares_are_matched_from_the_first_draw_on() -> None:
    shares = [0.6, 0.0, 0.4]
    even = [1 / 3] * 3
    first = [
        run_in_one_state(plan(shares, Selection.FOLLOW), even, [9, 1, 1], seed).act(0, 0)[0]
        for seed in range(2000)
    ]
    assert_drawn_from(np.bincount(first, minlength=3), shares)
    # Visits made under other plans do not count: share * (asked + 1) - taken decides.
    run = run_in_one_state(plan(shares, Selection.FOLLOW), even, [9, 1, 1])
    for asked_before in range(100):
        run.act(0, 0)
        assert run.plan_in_force is not None
        taken = run.plan_in_force.taken[0, 0][0, 0]
        assert np.abs(taken - (asked_before + 1) * np.array(shares)).max() < 1
    assert taken.tolist() == [60, 0, 40]


def test_unvisited_target_actions_go_before_followed_shares() -> None:
    scores = plan([1.0, 0.0, 0.0], Selection.FOLLOW)
    assert asked(scores, [0.5, 0.5, 0.0], [5, 0, 0], times=20).tolist() == [0, 20, 0]
    # An action that the target policy never takes is taken where it has a share, and only there.
    assert asked(scores, [0.0, 0.5, 0.5], [0, 1, 1], times=20).tolist() == [20, 0, 0]


def test_matched_shares_make_up_for_all_visits_of_the_state() -> None:
    shares = [0.6, 0.0, 0.4]
    even = [1 / 3] * 3
    # The first time in a state the action is drawn; no action has to be tried first.
    matched = plan(shares, Selection.MATCH)
    assert_drawn_from(asked(matched, even, [0, 0, 0], times=4000), shares)
    assert asked(matched, even, [0, 0, 1], times=20).tolist() == [20, 0, 0]
    # score - T(s,a)/T(s) is 0.1, -, -0.1 and then -0.05, -, 0.05; the same for a tie.
    assert asked(matched, even, [5, 0, 5], times=20).tolist() == [20, 0, 0]
    assert asked(matched, even, [13, 0, 7], times=20).tolist() == [0, 0, 20]
    assert_drawn_from(
        asked(plan(EVEN, Selection.MATCH), EVEN, [2, 1, 3, 1], 4000), [0, 0.5, 0, 0.5]
    )


@pytest.mark.parametrize(
    ("scores", "visits", "selection", "shares"),
    [
        ([0.2, 0.2, 0.2, 0.2], [4, 4, 4, 4], Selection.TRACK, [0.25, 0.25, 0.25, 0.25]),
        ([0.2, 0.1, 0.2, 0.1], [4, 4, 4, 2], Selection.TRACK, [1 / 3, 0.0, 1 / 3, 1 / 3]),
        ([0.4, 0.1, 0.4, 0.1], [9, 1, 2, 5], Selection.LARGEST, [0.5, 0.0, 0.5, 0.0]),
        ([0.0, 0.0, 0.0, 0.0], [9, 1, 2, 5], Selection.TRACK, [0.25, 0.25, 0.25, 0.25]),
        ([0.0, 0.0, 0.0, 0.0], [0, 0, 0, 0], Selection.LARGEST, [0.25, 0.25, 0.25, 0.25]),
    ],
)
def test_ties_are_broken_evenly(
    scores: list[float], visits: list[int], selection: Selection, shares: list[float]
) -> None:
    counts = asked(plan(scores, selection), EVEN, visits, times=4000, seed=1)
    assert_drawn_from(counts, shares)


@pytest.mark.parametrize("selection", TRACKED)
def test_actions_outside_the_target_policy_are_never_taken(selection: Selection) -> None:
    policy = [0.5, 0.0, 0.5, 0.0]
    counts = asked(plan([0.1, 0.7, 0.1, 0.1], selection), policy, [5, 0, 5, 1], times=500)
    assert counts[[1, 3]].tolist() == [0, 0]
    assert_drawn_from(counts, policy)


def test_sampled_actions_follow_their_probabilities() -> None:
    shares = [0.5, 0.0, 0.3, 0.2]
    assert_drawn_from(asked(plan(shares, Selection.SAMPLE), EVEN, [0, 0, 0, 9], 4000), shares)


def test_the_propensity_is_known_where_an_action_was_sampled() -> None:
    sampled = run_in_one_state(plan([0.75, 0.25], Selection.SAMPLE), [0.5, 0.5], [1, 1])
    for _ in range(20):
        action, propensity = sampled.act(0, 0)
        assert propensity == [0.75, 0.25][action]
    for selection in TRACKED:
        tracked = run_in_one_state(plan([0.75, 0.25], selection), [0.5, 0.5], [1, 1])
        assert np.isnan(tracked.act(0, 0)[1])


def test_every_draw_falls_on_an_action_that_has_a_share() -> None:
    scores = np.array([[[0.0, 0.25, 0.0, 0.5, 0.25, 0.0]]])
    for draw, action in [(0.0, 1), (0.2499, 1), (0.25, 3), (0.7499, 3), (0.75, 4), (1 - 2**-53, 4)]:
        assert sampled_action(scores, 0, 0, draw) == action
    # Where rounding leaves the sum below the largest draw, that draw takes the last action.
    short = np.array([[[0.1] * 10]])
    short[0, 0, 9] -= 1e-12
    assert sampled_action(short, 0, 0, 1 - 2**-53) == 9


def test_nothing_is_drawn_where_nothing_is_open() -> None:
    for selection in TRACKED:
        run = run_in_one_state(plan([0.7, 0.3], selection), [0.5, 0.5], [1, 1])
        before = run.rng.bit_generator.state
        run.act(0, 0)
        assert run.rng.bit_generator.state == before
        tied = run_in_one_state(plan([0.5, 0.5], selection), [0.5, 0.5], [1, 1])
        tied.act(0, 0)
        assert tied.rng.bit_generator.state != before


def test_plans_for_each_step_are_followed_step_by_step() -> None:
    tables = np.zeros((3, 1, 3))
    tables[[0, 1, 2], 0, [2, 0, 1]] = 1.0
    task = Task(np.full((1, 3), 1 / 3), 3, budget=Budget(1))
    strategy = FixedPlan(Plan(tables, Selection.SAMPLE))
    run = PlainRun(strategy, task, VisitStatistics(1, 3), np.random.default_rng(0))
    for _ in range(2):
        taken = []
        for step in range(3):
            action, _ = run.act(step, 0)
            run.statistics.record_step(0, action, 0.0, 0)
            taken.append(action)
        assert taken == [2, 0, 1]


def test_sampling_where_the_plan_has_no_probabilities_is_refused() -> None:
    tables = np.array([[[0.5, 0.5], [0.0, 0.0], [0.6, 0.3]]])
    task = Task(np.full((3, 2), 0.5), 2, budget=Budget(1))
    strategy = FixedPlan(Plan(tables, Selection.SAMPLE))
    run = PlainRun(strategy, task, VisitStatistics(3, 2), np.random.default_rng(0))
    assert run.act(0, 0)[0] in (0, 1)
    with pytest.raises(InputError, match=r"'fixed-plan' gives the actions of state 1 .* sum to 0;"):
        run.act(0, 1)
    with pytest.raises(InputError, match=r"of state 2 probabilities that sum to 0\.9;"):
        run.act(0, 2)


def test_a_state_without_a_target_policy_is_refused() -> None:
    task = Task(np.array([[0.5, 0.5], [0.0, 0.0]]), 2, budget=Budget(1))
    strategy = FixedPlan(Plan(np.ones((1, 2, 2)), Selection.TRACK))
    run = PlainRun(strategy, task, VisitStatistics(2, 2), np.random.default_rng(0))
    with pytest.raises(InputError, match="the target policy takes no action in state 1"):
        run.act(0, 1)
