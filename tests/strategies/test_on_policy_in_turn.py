"""On-policy collection of several policies: episodes follow each in its turn."""

from typing import Any

import numpy as np
import pytest

from revar import Best, Difference, TabularMDP, Task, Values, VisitStatistics, simulate
from revar.errors import InputError
from revar.problems import problems
from revar.strategies import OnPolicy, Plan, Selection, find_strategy

# Three arms, of which each policy takes its own: the action tells whose turn it was.
ARMS = TabularMDP(np.zeros((1, 3, 1)), [[1.0, 2.0, 3.0]], 1.0, [1.0], 1)
POLICIES = list(np.eye(3)[:, None])


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("shares", "round_"),
    [(None, [0, 1, 2]), ((1, 2, 1), [0, 1, 1, 2]), ((3, 1, 1), [0, 0, 0, 1, 2])],
    ids=str,
)
def test_episodes_follow_each_policy_in_turn(
    shares: tuple[int, ...] | None, round_: list[int], compiled: bool
) -> None:
    result = simulate(
        ARMS,
        Best(POLICIES),
        OnPolicy(shares=shares),
        episodes=600,  # longer than the compiled loop plays between two looks at the stop flag
        runs=2,
        checkpoints=[7, 600],
        keep_episodes=True,
        compiled=compiled,
    )
    for data in result.datasets:
        assert data.actions.tolist() == [round_[k % len(round_)] for k in range(600)]
        assert (data.propensities == 1.0).all()


def test_the_plan_has_a_table_for_each_policy() -> None:
    task = Task.of(ARMS, Values(POLICIES))
    plan = OnPolicy().plan(task, VisitStatistics(1, 3))
    assert plan.alternates
    assert not plan.by_step
    assert plan.selection is Selection.SAMPLE
    np.testing.assert_array_equal(plan.scores, task.policies)
    single = OnPolicy().plan(Task.of(ARMS, POLICIES[0]), VisitStatistics(1, 3))
    assert not single.alternates


def test_as_many_policies_as_steps_are_not_taken_for_steps() -> None:
    # Two steps, two policies: episodes of the second take action 1 at both steps.
    transitions = np.zeros((1, 2, 1))
    transitions[0, :, 0] = 1.0
    mdp = TabularMDP(transitions, 0.0, 1.0, [1.0], 2)
    first, second = np.eye(2)[:, None]
    for compiled in (True, False):
        result = simulate(
            mdp,
            Difference(first, second),
            "on-policy",
            episodes=4,
            runs=1,
            keep_episodes=True,
            compiled=compiled,
        )
        assert result.datasets[0].actions.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_each_policy_alone_gives_its_own_episodes() -> None:
    """Half the episodes are on-policy for each: their mean returns estimate the two values."""
    problem = problems.find("gridworld")()
    other = np.full(problem.policy.shape, 0.25)
    question = Difference(problem.policy, other)
    result = simulate(problem.mdp, question, "on-policy", episodes=2000, runs=1, keep_episodes=True)
    data = result.datasets[0]
    returns = np.add.reduceat(data.rewards, data.start[:-1])
    for number, value in enumerate([1.42875, 1.63715]):  # of the gridworld's policies A and C
        own = returns[number::2]
        assert abs(own.mean() - value) < 4 * own.std(ddof=1) / np.sqrt(own.size)
        rows = question.policies[number]
        for k in range(number, 40, 2):
            steps = slice(data.start[k], data.start[k + 1])
            shares = rows[data.states[steps], data.actions[steps]]
            assert data.propensities[steps].tolist() == shares.tolist()


@pytest.mark.parametrize(
    "shares", [(1,), (1, 2, 3), (1, 0), (1, -1), (1, 0.5), (), 2, [1, 2]], ids=str
)
def test_shares_that_do_not_fit_are_refused(shares: Any) -> None:
    question = Difference(*POLICIES[:2])
    with pytest.raises(InputError, match=r"shares are .*; they must be a tuple of a positive") as e:
        simulate(ARMS, question, OnPolicy(shares=shares), episodes=1, runs=1)
    assert str(e.value).endswith("for each of 2 policies")


def test_other_strategies_see_the_mean_policy() -> None:
    """Uniform and ROS take what any of the policies takes; a state without a row does not count."""
    first = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    second = np.array([[0.0, 1.0, 0.0], [0.0, 0.2, 0.8]])
    question = Difference(first, second)
    np.testing.assert_allclose(question.policy, [[0.25, 0.75, 0.0], [0.0, 0.2, 0.8]], rtol=1e-15)
    task = Task(question.policy, 2, question=question)
    nothing = VisitStatistics(2, 3)
    uniform: Plan = find_strategy("uniform").plan(task, nothing)
    assert uniform.scores[0].tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    np.testing.assert_array_equal(find_strategy("ros").plan(task, nothing).scores[0], task.policy)
