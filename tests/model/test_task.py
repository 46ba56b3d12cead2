from typing import Any

import numpy as np
import pytest

from revar import Difference, TabularMDP, Task, epsilon_greedy, occupancy, policy_value
from revar.errors import InputError
from revar.model.task import check_behavior, check_policy
from revar.problems import problems


def test_a_task_of_a_model_knows_it() -> None:
    problem = problems.find("gridworld")(discount=0.5)
    task = Task.of(problem.mdp, problem.policy, budget=7)
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


def test_a_task_about_several_policies_has_their_mean() -> None:
    question = Difference([[1.0, 0.0]], [[0.5, 0.5]])
    task = Task(question.policy, 1, question=question)
    assert task.policy.tolist() == [[0.75, 0.25]]
    assert task.policies.shape == (2, 1, 2)
    assert task.without_model().question is question
    assert Task(np.array([[1.0, 0.0]]), 1).policies.shape == (1, 1, 2)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("best", "question is a str; it must be a Question"),
        (
            Difference([[0.5, 0.5]], [[0.9, 0.1]]),
            "the policy of a task is not the mean of its question's policies",
        ),
        (Difference([[1.0, 0.0]], [[0.9, 0.9]]), "policy 1 of state 0 sums to 1.8; it must sum"),
    ],
)
def test_questions_that_do_not_fit_are_refused(question: Any, message: str) -> None:
    policy = np.array([[0.95, 0.45]]) if "1.8" in message else np.array([[1.0, 0.0]])
    with pytest.raises(InputError, match=message):
        Task(policy, 1, question=question)


def test_the_first_state_s_distribution_is_checked() -> None:
    with pytest.raises(InputError, match="initial of state 0 is 3; it must lie in"):
        Task(policy=np.array([[1.0]]), horizon=1, initial=np.array([3.0]))
    with pytest.raises(InputError, match="initial has 2 states; the policy covers 1"):
        Task(policy=np.array([[1.0]]), horizon=1, initial=np.array([0.5, 0.5]))


def test_the_model_can_be_withheld() -> None:
    problem = problems.find("tree")()
    task = Task.of(problem.mdp, problem.policy, budget=5)
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
        ({"budget": 0}, "episodes is 0; it must be a whole number of at least 1"),
    ],
)
def test_bad_tasks_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Task(**{"policy": np.full((1, 2), 0.5), "horizon": 2, **changes})


def test_the_policy_is_checked_against_the_model() -> None:
    problem = problems.find("bandit")()
    with pytest.raises(InputError, match=r"policy of state 0 sums to 0\.5;"):
        Task.of(problem.mdp, problem.policy / 2)


@pytest.fixture
def mdp() -> TabularMDP:
    """0 goes to 1 (action 0) or 2 (action 1); 1 goes to 3; all others end. Three steps."""
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    transitions[1, :, 3] = 1.0
    return TabularMDP(transitions, 1.0, 0.0, [1.0, 0.0, 0.0, 0.0], 3)


def refusal(mdp: TabularMDP, policy: Any) -> str:
    with pytest.raises(InputError) as caught:
        check_policy(mdp, policy)
    return str(caught.value)


def test_rows_must_sum_to_one_where_the_policy_leads(mdp: TabularMDP) -> None:
    policy = np.full((4, 2), 0.5)
    policy[2] = [0.5, 0.4]
    assert refusal(mdp, policy) == (
        "policy of state 2 sums to 0.9; a state that it reaches needs probabilities that sum to 1"
    )


@pytest.mark.parametrize("row", [[0.0, 0.0], [0.5, 0.4], [0.9, 0.9]])
def test_rows_elsewhere_are_free(mdp: TabularMDP, row: list[float]) -> None:
    # Action 0 alone is taken in state 0, so that state 2 is reachable, but not by this policy.
    policy = np.array([[1.0, 0.0], [0.5, 0.5], row, [0.5, 0.5]])
    assert np.array_equal(check_policy(mdp, policy), policy)
    assert policy_value(mdp, policy) == 3.0


def test_rows_past_the_horizon_are_free(mdp: TabularMDP) -> None:
    short = TabularMDP(mdp.transitions, 1.0, 0.0, mdp.initial, 2)
    policy = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])
    assert "policy of state 3 sums to 0" in refusal(mdp, policy)
    assert policy_value(short, policy) == 2.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "policy of state 3, action 1 is nan; it must be finite"),
        (-0.5, "policy of state 3, action 1 is -0.5; it must lie in [0, 1]"),
        (1.5, "policy of state 3, action 1 is 1.5; it must lie in [0, 1]"),
    ],
)
def test_entries_are_probabilities(mdp: TabularMDP, value: float, message: str) -> None:
    policy = np.full((4, 2), 0.5)
    policy[3, 1] = value
    assert refusal(mdp, policy) == message


def test_actions_are_no_policy_but_become_one(mdp: TabularMDP) -> None:
    assert refusal(mdp, np.zeros(4, dtype=int)) == (
        "policy has shape (4,); it must be [states, actions] = (4, 2); "
        "revar.epsilon_greedy(policy, 0.0, 2) makes it of one action a state"
    )
    made = epsilon_greedy([0, 1, 1, 0], 0.0, 2)
    assert np.array_equal(check_policy(mdp, made), np.eye(2)[[0, 1, 1, 0]])


@pytest.mark.parametrize("shape", [(2, 4), (4, 3), (1, 4, 2)])
def test_the_shape_is_states_by_actions(mdp: TabularMDP, shape: tuple[int, ...]) -> None:
    assert refusal(mdp, np.full(shape, 0.5)) == (
        f"policy has shape {shape}; it must be [states, actions] = (4, 2)"
    )


def test_sums_of_one_up_to_rounding_are_accepted(mdp: TabularMDP) -> None:
    policy = np.full((4, 2), 0.5 + 1e-11)
    assert np.array_equal(check_policy(mdp, policy), policy)


def test_behaviors_are_tables_or_one_table_a_step(mdp: TabularMDP) -> None:
    table = np.full((4, 2), 0.5)
    assert check_behavior(mdp, table).shape == (1, 4, 2)
    assert check_behavior(mdp, np.stack([table] * 3)).shape == (3, 4, 2)
    with pytest.raises(InputError, match=r"behavior has shape \(2, 4, 2\); it must be"):
        check_behavior(mdp, np.stack([table] * 2))


def test_behaviors_must_sum_to_one_where_they_lead(mdp: TabularMDP) -> None:
    behavior = np.full((4, 2), 0.5)
    behavior[1] = 1.0
    with pytest.raises(InputError, match="behavior of state 1 sums to 2; a state that it reaches"):
        occupancy(mdp, behavior)
    behavior[0] = [0.0, 1.0]
    assert occupancy(mdp, behavior).sum() == 2.0


def test_behaviors_by_step_must_sum_to_one_where_they_lead_at_that_step(mdp: TabularMDP) -> None:
    behavior = np.zeros((3, 4, 2))
    behavior[0, 0] = [1.0, 0.0]
    behavior[1, 1] = [0.25, 0.75]
    behavior[2, 3] = [0.0, 1.0]
    assert occupancy(mdp, behavior).sum() == 3.0
    behavior[2, 3] = [0.5, 0.25]
    with pytest.raises(InputError, match=r"behavior at step 2 of state 3 sums to 0\.75; a state"):
        occupancy(mdp, behavior)
    behavior[1, 2, 1] = -1.0
    with pytest.raises(InputError, match="behavior at step 1 of state 2, action 1 is -1; it must"):
        occupancy(mdp, behavior)
