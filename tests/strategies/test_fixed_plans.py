"""On-policy, uniform and the oracle: plans that hold for good."""

import numpy as np
import pytest

from revar import Task, VisitStatistics, sampling_proportions
from revar.errors import InputError
from revar.problems import Problem, problems
from revar.strategies import Oracle, Plan, Selection, Strategy, find_strategy
from revar.testing.problems import crossroads

PROBLEMS = [crossroads(), *(problems.find(problem_id)() for problem_id in problems.ids())]


def planned(strategy: Strategy, problem: Problem) -> Plan:
    task = Task.of(problem.mdp, problem.policy)
    return strategy.plan(task, VisitStatistics(problem.mdp.states, problem.mdp.actions))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_plans_that_hold_for_good(problem: Problem) -> None:
    policy = problem.policy
    on_policy = planned(find_strategy("on-policy"), problem)
    assert np.array_equal(on_policy.scores, policy[None])
    assert on_policy.selection is Selection.SAMPLE

    uniform = planned(find_strategy("uniform"), problem)
    assert uniform.selection is Selection.SAMPLE
    for state, row in enumerate(uniform.scores[0]):
        support = np.flatnonzero(policy[state])
        assert np.array_equal(np.flatnonzero(row), support)
        assert np.all(row[support] == 1.0 / max(support.size, 1))

    oracle = planned(find_strategy("oracle"), problem)
    expected = sampling_proportions(problem.mdp, policy).behavior
    assert np.array_equal(oracle.scores, expected[None])
    assert oracle.selection is Selection.TRACK

    assert {plan.lasts for plan in (on_policy, uniform, oracle)} == {None}


def test_only_the_oracle_needs_the_model() -> None:
    assert Oracle().needs_model
    assert not find_strategy("on-policy").needs_model
    assert not find_strategy("uniform").needs_model
    problem = PROBLEMS[0]
    blind = Task.of(problem.mdp, problem.policy).without_model()
    with pytest.raises(InputError, match="the oracle needs the true model, and this task has none"):
        Oracle().plan(blind, VisitStatistics(problem.mdp.states, problem.mdp.actions))
