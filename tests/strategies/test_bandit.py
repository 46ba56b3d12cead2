"""Bandit ReVar: the bandit's optimum in every state, and what it costs not to look ahead."""

from typing import Any

import numpy as np
import pytest

from revar import Task, VisitStatistics, estimation_variance, one_step_costs, simulate
from revar.errors import InputError
from revar.model.budget import Budget
from revar.problems import problems
from revar.strategies import BanditReducedVariance, ReducedVariance
from tests.strategies.measured import scaled_mse


def test_shares_tend_to_policy_times_deviation() -> None:
    """MC-UCB's property: T(s,a)/T(s) tends to pi sigma / sum pi sigma in every state."""
    tree = problems.find("tree")(3, high_variance=4.0)
    strategy = BanditReducedVariance(confidence_scale=0.01)
    visits = simulate(tree.mdp, tree.policy, strategy, episodes=20_000, runs=20).visits
    ideal = tree.policy * tree.mdp.reward_std
    ideal /= ideal.sum(axis=1, keepdims=True)
    shares = visits / visits.sum(axis=2, keepdims=True)
    errors = shares.mean(axis=0) - ideal
    # sigma-hat of the least visited pair, from some 5,000 visits, is 1% off; its mean less so.
    assert np.abs(errors).max() < 0.01


def test_on_a_bandit_it_is_revar() -> None:
    bandit = problems.find("bandit")()
    one, other = (
        simulate(bandit.mdp, bandit.policy, strategy, episodes=300, runs=5)
        for strategy in (
            BanditReducedVariance(0.3, failure_probability=0.1, initial_visits=2),
            ReducedVariance(0.3, failure_probability=0.1, initial_visits=2),
        )
    )
    assert np.array_equal(one.visits, other.visits)
    assert np.array_equal(one.estimates, other.estimates)


def test_without_look_ahead_it_goes_where_the_policy_hardly_ever_is() -> None:
    """On the paper's tree it ends as high as the target policy, which ReVar is far below.

    Only without a bonus: the bound keeps shares near the target policy's for long.
    """
    tree = problems.find("tree")()
    bandit, revar = (
        scaled_mse(
            simulate(tree.mdp, tree.policy, name, episodes=2_000, runs=1_000, checkpoints=[2_000])
        )
        for name in (BanditReducedVariance(0.0), ReducedVariance(0.0))
    )
    assert revar.lies_below(bandit, 5)
    # In the limit: the shares pi sigma at every level, against the costs of the tree.
    shares = tree.policy * tree.mdp.reward_std
    shares /= shares.sum(axis=1, keepdims=True)
    entered = np.ones(tree.mdp.states)
    for state in range(1, tree.mdp.states):
        parent, action = (state - 1) // 2, (state - 1) % 2
        entered[state] = entered[parent] * shares[parent, action]
    costs = one_step_costs(tree.mdp, tree.policy)
    limit = float(np.sum(costs / (entered[:, None] * shares)))
    assert bandit.is_within(4, limit)
    assert limit > estimation_variance(tree.mdp, tree.policy, tree.policy)


def test_the_first_visits() -> None:
    task = Task(np.array([[0.5, 0.5]]), 1, budget=Budget(10))
    nothing = VisitStatistics(1, 2)
    assert BanditReducedVariance().plan(task, nothing).visits_first == 1
    assert BanditReducedVariance(0.0).plan(task, nothing).visits_first == 3
    assert BanditReducedVariance(initial_visits=5).plan(task, nothing).visits_first == 5
    with pytest.raises(InputError, match="bandit needs to know the number of episodes"):
        BanditReducedVariance().plan(Task(np.array([[0.5, 0.5]]), 1), nothing)


@pytest.mark.parametrize(
    "parameters",
    [{"confidence_scale": -1.0}, {"failure_probability": 1.0}, {"initial_visits": 0}],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any]) -> None:
    (name,) = parameters
    with pytest.raises(InputError, match=f"{name} is"):
        BanditReducedVariance(**parameters)
