"""Limits while collecting: shares of plans and of actions taken, and what is never taken."""

from typing import Any

import numpy as np
import pytest

from revar import Limits, Task, VisitStatistics, simulate
from revar.model.structure import reachable_layers
from revar.problems import problems
from revar.simulation.plain import PlainRun, play_episode
from revar.simulation.world import World
from revar.strategies import Flow, FlowOracle
from revar.testing.problems import crossroads

GRID = problems.find("gridworld")()
RATIO = 3.0


def reached(problem: Any) -> Any:
    """Which (step, state) the target policy's actions lead to, [L, S]."""
    mdp = problem.mdp
    layers = reachable_layers(
        mdp.arrays.outcomes, mdp.arrays.initial, problem.policy > 0, mdp.horizon
    )
    found = np.zeros((mdp.horizon, mdp.states), dtype=bool)
    for t in range(mdp.horizon):
        found[t, layers.states[layers.start[t] : layers.start[t + 1]]] = True
    return found


@pytest.mark.parametrize("problem", [GRID, crossroads()], ids=["gridworld", "crossroads"])
@pytest.mark.parametrize("strategy", [Flow(), FlowOracle()], ids=repr)
def test_no_plan_exceeds_the_ratio(strategy: Any, problem: Any) -> None:
    """After any number of episodes of many runs, in every state that can be entered."""
    task = Task.of(problem.mdp, problem.policy, budget=400, limits=Limits(max_ratio=RATIO))
    data = simulate(
        problem.mdp, problem.policy, "flow", episodes=120, runs=15, limits=task.limits,
        keep_episodes=True,
    ).datasets  # fmt: skip
    entered = reached(problem)
    caps = np.minimum(1.0, RATIO * problem.policy)
    for dataset in data:
        for count in (0, 1, 2, 5, 17, 60, 120):
            statistics = VisitStatistics(problem.mdp.states, problem.mdp.actions)
            statistics.record_many(dataset.head(count))
            plan = strategy.plan(task if strategy.needs_model else task.without_model(), statistics)
            assert plan.scores.shape == (problem.mdp.horizon, *problem.policy.shape)
            assert (plan.scores[entered] <= np.broadcast_to(
                caps, plan.scores.shape)[entered] + 1e-12).all()  # fmt: skip
            np.testing.assert_allclose(plan.scores[entered].sum(axis=1), 1.0, atol=1e-9)
        if strategy.needs_model:
            break


def test_what_is_taken_follows_the_shares_within_a_visit() -> None:
    """Under one plan an action is taken at most share * visits + 1 times in a state at a step."""
    limits = Limits(max_ratio=RATIO)
    task = Task.of(GRID.mdp, GRID.policy, budget=600, limits=limits).without_model()
    caps = np.minimum(1.0, RATIO * GRID.policy)
    world = World.of(GRID.mdp)
    for seed in range(3):
        run = PlainRun(
            Flow(), task, VisitStatistics.for_model(GRID.mdp), np.random.default_rng(seed)
        )
        plans: list[Any] = []
        for _ in range(200):
            play_episode(run, world)
            if not plans or plans[-1] is not run.plan_in_force:
                plans.append(run.plan_in_force)
        assert len(plans) > 5
        for plan in plans:
            for (_, state), taken in plan.taken.items():
                row = taken[0, 0]
                assert (row <= caps[state] * row.sum() + 1.0 + 1e-9).all()


@pytest.mark.parametrize("strategy", ["flow", "flow-oracle", "on-policy"])
def test_forbidden_actions_are_never_taken(strategy: str) -> None:
    """Action 2 of states 0 and 1 leads to state 4, which the target policy never enters."""
    problem = crossroads()
    limits = Limits(forbidden=[(0, 2), (1, 2), (2, 0), (2, 2)])
    visits = simulate(
        problem.mdp, problem.policy, strategy, episodes=300, runs=20, limits=limits
    ).visits
    assert visits[:, limits.forbidden_pairs(5, 3)].sum() == 0
    assert visits[:, 4].sum() == 0
    assert (visits[:, problem.policy > 0] > 0).all()


def test_the_oracle_would_take_them_otherwise() -> None:
    """A short cut that the target policy never takes, to the one state that matters."""
    from revar import TabularMDP

    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1], transitions[0, 0, 2] = 0.95, 0.05
    transitions[0, 1, 2] = 1.0
    mdp = TabularMDP(
        transitions, np.zeros((3, 2)), [[0, 0], [0, 0], [5, 5]], [1.0, 0, 0], 2
    )  # fmt: skip
    policy = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    free, limited = (
        simulate(mdp, policy, "flow-oracle", episodes=200, runs=3, limits=limits).visits
        for limits in (None, Limits(forbidden=[1]))
    )
    assert free[:, 0, 1].min() > 100
    assert limited[:, :, 1].sum() == 0


@pytest.mark.parametrize(
    "limits", [Limits(min_return="100%"), Limits(max_sums=[(GRID.policy, 99)])]
)
def test_the_first_plan_is_the_target_policy_where_sums_are_limited(limits: Limits) -> None:
    task = Task.of(GRID.mdp, GRID.policy, budget=400, limits=limits).without_model()
    plan = Flow().plan(task, VisitStatistics(GRID.mdp.states, GRID.mdp.actions))
    np.testing.assert_array_equal(plan.scores, np.repeat(GRID.policy[None], GRID.mdp.horizon, 0))


def test_a_floor_costs_exploration() -> None:
    """At the target policy's own value: the return while collecting is not below it."""
    result = simulate(
        GRID.mdp, GRID.policy, "flow", episodes=400, runs=30, seed=3,
        limits=Limits(min_return="100%"), keep_episodes=True, checkpoints=[400],
    )  # fmt: skip
    returns = [np.add.reduceat(data.rewards, data.start[:-1]).mean() for data in result.datasets]
    error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    assert np.mean(returns) > float(result.true_value) - 3.0 * error
