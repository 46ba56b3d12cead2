"""Flow keeps limits on sums with confidence, though it does not know the model."""

import numpy as np
import pytest

import revar
from revar.model.arrays import FloatArray
from revar.model.limits import Limits, SumLimit
from revar.model.mdp import TabularMDP
from revar.model.question import Values
from revar.model.statistics import VisitStatistics
from revar.model.task import Task
from revar.problems import find_problem
from revar.simulation.result import SimulationResult
from revar.strategies.flow import Flow
from revar.theory.costs import one_step_costs
from revar.theory.values import occupancy

GRID = find_problem("gridworld")


def costly_river() -> tuple[TabularMDP, FloatArray]:
    """RiverSwim with a good left bank, where the target policy stays: exploring is expensive."""
    river = find_problem("riverswim").mdp
    mean, std = np.zeros((6, 2)), np.zeros((6, 2))
    mean[0, 0], mean[5, 1] = 0.5, 1.0
    std[0, 0], std[5, 1] = 0.1, 3.0
    mdp = TabularMDP(river.transitions, mean, std, river.initial, river.horizon)
    return mdp, np.tile([0.7, 0.3], (6, 1))


def collected_returns(mdp: TabularMDP, result: SimulationResult) -> FloatArray:
    """The mean return of each run, but for the noise of rewards, [run]."""
    sums = np.einsum("rsa,sa->r", result.visits, mdp.reward_mean)
    return np.asarray(sums / result.episodes)


@pytest.mark.parametrize("share", ["100%", "90%"])
def test_the_return_while_collecting_is_not_below_the_floor(share: str) -> None:
    mdp, policy = costly_river()
    limits = Limits(min_return=share)
    floor = limits.least_return(revar.policy_value(mdp, policy))
    assert floor is not None
    free = revar.optimal_flow(mdp, policy).behavior
    assert np.sum(occupancy(mdp, free) * mdp.reward_mean) < floor  # exploring is expensive
    result = revar.simulate(
        mdp, policy, "flow", episodes=1000, runs=60, seed=1, limits=limits, checkpoints=[1000]
    )
    returns = collected_returns(mdp, result)
    assert returns.mean() > floor - 2 * returns.std(ddof=1) / np.sqrt(60)
    assert np.mean(returns < floor) < 0.1 + 3 * np.sqrt(0.1 * 0.9 / 60)
    limit = revar.optimal_flow(mdp, policy, limits=limits).limit
    excess = 1000 * result.mse[-1] - 1.15 * limit
    assert excess < 3 * 1000 * result.mse_standard_error[-1]


def test_without_the_floor_it_would_be_missed() -> None:
    mdp, policy = costly_river()
    result = revar.simulate(mdp, policy, "flow", episodes=1000, runs=20, seed=1)
    assert collected_returns(mdp, result).max() < revar.policy_value(mdp, policy)


def test_the_first_plan_is_the_target_policy() -> None:
    nothing = VisitStatistics.for_model(GRID.mdp)
    for limits in (
        Limits(min_return="100%"),
        Limits(min_return=0.3),
        Limits(max_sums=[(np.ones((16, 4)), 11.0)]),
    ):
        task = Task.of(GRID.mdp, GRID.policy, budget=100, limits=limits).without_model()
        plan = Flow().plan(task, nothing)
        np.testing.assert_array_equal(plan.scores, GRID.policy[None].repeat(12, axis=0))
        assert plan.visits_first == 0


def statistics_after(episodes: int, mdp: TabularMDP, policy: FloatArray) -> VisitStatistics:
    result = revar.simulate(
        mdp, policy, "on-policy", episodes=episodes, runs=1, seed=2, keep_episodes=True
    )
    statistics = VisitStatistics.for_model(mdp)
    statistics.record_many(result.datasets[0])
    return statistics


def planned_sum(
    task: Task, mdp: TabularMDP, statistics: VisitStatistics, amounts: FloatArray
) -> float:
    visits = occupancy(mdp, Flow().plan(task, statistics).scores).sum(axis=0)
    return float(np.sum(visits * amounts))


def test_a_floor_that_nothing_reaches_leaves_the_target_policy() -> None:
    mdp, policy = costly_river()
    task = Task.of(mdp, policy, budget=1000, limits=Limits(min_return=1000.0)).without_model()
    plan = Flow().plan(task, statistics_after(200, mdp, policy))
    np.testing.assert_allclose(plan.scores, policy[None].repeat(20, axis=0))


def test_a_floor_far_below_changes_no_plan() -> None:
    mdp, policy = costly_river()
    statistics = statistics_after(200, mdp, policy)
    plans = [
        Flow()
        .plan(Task.of(mdp, policy, budget=1000, limits=limits).without_model(), statistics)
        .scores
        for limits in (Limits(min_return=-1e6), Limits(max_sums=[(np.ones((6, 2)), 1e6)]))
    ]
    np.testing.assert_array_equal(plans[0], plans[1])


def test_sums_are_limited_and_more_confidence_leaves_more_room() -> None:
    mdp, policy = costly_river()
    swims = np.zeros((6, 2))
    swims[:, 1] = 1.0
    statistics = statistics_after(300, mdp, policy)
    sums = []
    for confidence in (0.6, 0.9, 0.99):
        limits = Limits(max_sums=[(swims, 7.0)], confidence=confidence)
        task = Task.of(mdp, policy, budget=1000, limits=limits).without_model()
        sums.append(planned_sum(task, mdp, statistics, swims))
    assert max(sums) < 7.0
    free = Task.of(mdp, policy, budget=1000).without_model()
    assert planned_sum(free, mdp, statistics, swims) > 7.0


def test_amounts_that_vary_leave_room_for_their_noise() -> None:
    mdp, policy = costly_river()
    swims = np.zeros((6, 2))
    swims[:, 1] = 1.0
    statistics = statistics_after(300, mdp, policy)
    sums = []
    for variance in (0.0, 4.0):
        limit = SumLimit("swims", swims, 7.0, np.full((6, 2), variance))
        task = Task.of(mdp, policy, budget=1000, limits=Limits(max_sums=[limit]))
        sums.append(planned_sum(task.without_model(), mdp, statistics, swims))
    assert sums[1] < sums[0]


def test_several_limits_hold_together() -> None:
    mdp, policy = costly_river()
    swims = np.zeros((6, 2))
    swims[:, 1] = 1.0
    limits = Limits(min_return="90%", max_sums=[(swims, 8.0)], max_ratio=3.0)
    task = Task.of(mdp, policy, budget=2000, limits=limits).without_model()
    scores = Flow().plan(task, statistics_after(1000, mdp, policy)).scores
    flow = occupancy(mdp, scores).sum(axis=0)
    assert np.sum(flow * swims) <= 8.0
    assert np.sum(flow * mdp.reward_mean) >= 0.9 * revar.policy_value(mdp, policy)
    assert (scores <= 3.0 * policy + 1e-12).all()


def test_of_several_policies_the_floor_is_a_share_of_their_mean() -> None:
    mdp, policy = costly_river()
    other = np.tile([0.5, 0.5], (6, 1))
    question = Values([policy, other])
    limits = Limits(min_return="100%")
    mean = np.mean([revar.policy_value(mdp, each) for each in (policy, other)])
    result = revar.simulate(
        mdp, question, "flow", episodes=600, runs=20, seed=3, limits=limits, checkpoints=[600]
    )
    returns = collected_returns(mdp, result)
    assert returns.mean() > mean - 2 * returns.std(ddof=1) / np.sqrt(20)


def test_a_negative_value_has_its_floor_below_it() -> None:
    mdp, policy = costly_river()
    means, noise = mdp.reward_mean - 1.0, np.full((6, 2), 0.1)
    paid = TabularMDP(mdp.transitions, means, noise, mdp.initial, mdp.horizon)
    value = revar.policy_value(paid, policy)
    assert value < 0
    limits = Limits(min_return="90%", confidence=0.99)
    assert limits.least_return(value) == pytest.approx(1.1 * value)
    task = Task.of(paid, policy, budget=2000, limits=limits).without_model()
    statistics = statistics_after(1000, paid, policy)
    assert planned_sum(task, paid, statistics, paid.reward_mean) >= 1.1 * value


def test_costs_of_the_answer_are_not_what_the_safety_is_judged_by() -> None:
    """Pairs that tell nothing about the answer still earn or lose return."""
    mean = np.array([[1.0, 0.0, 0.5]])
    mdp = TabularMDP(np.zeros((1, 3, 1)), mean, np.array([[0.0, 2.0, 0.0]]), [1.0], 1)
    policy = np.array([[0.4, 0.2, 0.4]])
    assert not one_step_costs(mdp, policy)[0, [0, 2]].any()
    limits = Limits(min_return="100%")
    result = revar.simulate(mdp, policy, "flow", episodes=500, runs=40, seed=4, limits=limits)
    returns = collected_returns(mdp, result)
    assert returns.mean() > 0.6 - 2 * returns.std(ddof=1) / np.sqrt(40)
    noisy = result.visits[:, 0, 1] / 500
    assert noisy.mean() > 0.2 + 3 * noisy.std(ddof=1) / np.sqrt(40)  # what is safe is used


def test_what_has_no_data_does_not_look_good() -> None:
    """Where every step loses, a way that nobody has gone must not look like an early end."""
    mdp, policy = costly_river()
    losing = TabularMDP(
        mdp.transitions, mdp.reward_mean - 1.0, np.full((6, 2), 0.1), mdp.initial, mdp.horizon
    )
    statistics = statistics_after(30, losing, policy)
    assert (statistics.visits[4:] == 0).any()
    limits = Limits(min_return="100%", confidence=0.95)
    task = Task.of(losing, policy, budget=1000, limits=limits).without_model()
    value = revar.policy_value(losing, policy)
    assert planned_sum(task, losing, statistics, losing.reward_mean) > value - 0.02 * abs(value)
