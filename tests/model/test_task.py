from typing import Any

import numpy as np
import pytest

from revar import Task
from revar.errors import InputError
from revar.problems import problems


def test_a_task_of_a_model_knows_it() -> None:
    problem = problems.find("gridworld")(discount=0.5)
    task = Task.of(problem.mdp, problem.policy, episodes=7)
    assert (task.states, task.actions, task.horizon, task.discount) == (16, 4, 12, 0.5)
    assert task.episodes == 7
    assert task.known_model("anyone") is problem.mdp
    assert task.initial is not None
    assert np.array_equal(task.initial, problem.mdp.initial)


def test_a_task_without_a_model_says_who_asked_for_it() -> None:
    task = Task(np.full((1, 2), 0.5), 1)
    with pytest.raises(InputError, match="the oracle needs the true model, and this task has none"):
        task.known_model("the oracle")


def test_writing_to_a_task_leaves_the_model_alone() -> None:
    problem = problems.find("tree")()
    task = Task.of(problem.mdp, problem.policy)
    assert task.initial is not None
    task.initial[:] = 0.5
    assert problem.mdp.initial[0] == 1.0


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([[0.9, 0.9]], "policy of state 0 sums to 1.8; it must sum to 1"),
        ([[0.5, float("nan")]], "policy of state 0, action 1 is nan; it must be finite"),
        ([0.5, 0.5], r"policy has shape \(2,\); it must be \[states, actions\]"),
    ],
)
def test_bad_policies_are_refused(policy: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Task(policy=policy, horizon=1)


def test_the_first_state_s_distribution_is_checked() -> None:
    with pytest.raises(InputError, match="initial of state 0 is 3; it must lie in"):
        Task(policy=np.array([[1.0]]), horizon=1, initial=np.array([3.0]))
    with pytest.raises(InputError, match="initial has 2 states; the policy covers 1"):
        Task(policy=np.array([[1.0]]), horizon=1, initial=np.array([0.5, 0.5]))


def test_the_model_can_be_withheld() -> None:
    problem = problems.find("tree")()
    task = Task.of(problem.mdp, problem.policy, episodes=5)
    blind = task.without_model()
    assert blind.model is None
    assert task.model is problem.mdp
    assert np.array_equal(blind.policy, task.policy)
    assert task.initial is not None
    assert blind.initial is not None
    assert np.array_equal(blind.initial, task.initial)
    assert (blind.horizon, blind.discount, blind.episodes) == (4, 1.0, 5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon is 0; it must be a whole number of at least 1"),
        ({"discount": 1.5}, r"discount is 1.5; it must lie in \[0, 1\]"),
        ({"episodes": 0}, "episodes is 0; it must be a whole number of at least 1"),
    ],
)
def test_bad_tasks_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Task(**{"policy": np.full((1, 2), 0.5), "horizon": 2, **changes})


def test_the_policy_is_checked_against_the_model() -> None:
    problem = problems.find("bandit")()
    with pytest.raises(InputError, match=r"policy of state 0 sums to 0\.5;"):
        Task.of(problem.mdp, problem.policy / 2)
