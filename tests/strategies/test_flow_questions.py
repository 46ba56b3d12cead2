"""Flow with questions: at the limit for differences, and effort where the best is at stake."""

from functools import cache

import numpy as np
import pytest

from revar import (
    Best,
    Difference,
    Question,
    TabularMDP,
    Task,
    Values,
    one_step_costs,
    optimal_flow,
    simulate,
)
from revar.model.arrays import FloatArray
from revar.problems import Problem, problems
from revar.simulation.result import SimulationResult
from revar.strategies import Flow
from tests.strategies.measured import scaled_mse
from tests.strategies.test_flow import collected, with_rewards_times


def shifted(policy: FloatArray, share: float, seed: int) -> FloatArray:
    """A policy that differs in that share of its probability."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(policy.shape[1]), size=len(policy))
    return np.asarray((1.0 - share) * policy + share * drawn)


def compared(name: str) -> tuple[Problem, FloatArray]:
    """Problems on which nothing was tuned, and another policy for them."""
    if name == "riverswim":
        slower = problems.find("riverswim")(swim=0.6)
        return problems.find("riverswim")(), slower.policy
    garnet = problems.find("garnet")(8, horizon=15, discount=0.95, seed=21)
    return garnet, shifted(garnet.policy, 0.3, seed=2)


RUNS = 2000


@cache
def differences(name: str) -> SimulationResult:
    problem, other = compared(name)
    question = Difference(problem.policy, other)
    return simulate(
        problem.mdp, question, "flow", episodes=1000, runs=RUNS, checkpoints=[500, 1000]
    )


@pytest.mark.parametrize("name", ["garnet", "riverswim"])
def test_differences_are_at_the_limit(name: str) -> None:
    problem, other = compared(name)
    limit = optimal_flow(problem.mdp, Difference(problem.policy, other)).limit
    found = scaled_mse(differences(name))
    assert found.error < 0.05 * limit
    assert found.mean - 2 * found.error < 1.10 * limit
    # And not below it: no collection could be.
    assert found.mean + 4 * found.error > limit


@pytest.mark.parametrize("name", ["garnet", "riverswim"])
def test_intervals_of_differences_hold(name: str) -> None:
    # Three standard errors of a share of 95 percent are 0.015.
    assert (np.abs(differences(name).coverage() - 0.95) <= 0.015).all()


def test_shared_flow_beats_the_usual_comparison() -> None:
    """Against episodes of each policy in turn, pooled: 57 for 17 on the gridworld."""
    grid = problems.find("gridworld")()
    other = np.tile([0.15, 0.35, 0.35, 0.15], (16, 1))
    question = Difference(grid.policy, other)
    flow, in_turn = (
        scaled_mse(
            simulate(
                grid.mdp, question, strategy, episodes=1000, runs=runs, checkpoints=[1000], seed=1
            )
        )
        for strategy, runs in (("flow", 400), ("on-policy", 2000))
    )
    assert in_turn.is_within(4, 56.54)
    assert flow.mean - 2 * flow.error < 1.10 * 16.614


# Policy j plays arm j. The second and third are close to the best, the last is hopeless.
MEANS, DEVIATIONS = np.array([3.0, 2.6, 2.5, 0.0]), np.array([1.0, 2.0, 1.0, 3.0])
ARMS = TabularMDP(np.zeros((1, 4, 1)), MEANS[None], DEVIATIONS[None], [1.0], 1)
ARM_POLICIES = list(np.eye(4)[:, None])


@cache
def arms(kind: str) -> SimulationResult:
    question = Best(ARM_POLICIES) if kind == "best" else Values(ARM_POLICIES)
    return simulate(ARMS, question, "flow", episodes=2000, runs=1000, checkpoints=[1000, 2000])


def test_the_best_is_found() -> None:
    """Never left with the few visits that made it look bad.

    If nothing but the largest (standard error / gap)^2 counts, that happens in one run of 100.
    """
    result = arms("best")
    assert result.visits[:, 0, 0].min() > 300
    wrong = (result.values.argmax(axis=2) != 0).mean(axis=0)
    assert (wrong <= 0.002).all()


def test_close_contenders_are_told_apart_and_hopeless_ones_left_alone() -> None:
    limit = optimal_flow(ARMS, Best(ARM_POLICIES)).limit
    visits = arms("best").visits[:, 0].astype(np.float64)
    variances = DEVIATIONS**2 / visits
    ratios = 2000 * (variances[:, :1] + variances[:, 1:]) / (MEANS[0] - MEANS[1:]) ** 2 / limit
    hardest, second, hopeless = ratios.mean(axis=0)
    assert 1.0 < hardest < 1.2
    assert hardest / 2 < second < hardest
    assert hopeless < second
    effort = visits.mean(axis=0) / 2000
    apart = arms("values").visits[:, 0].mean(axis=0) / 2000
    assert effort[3] < 0.08
    assert apart[3] > 0.4
    assert effort[:2].sum() > 0.75


def test_the_best_of_several_on_a_graph() -> None:
    """One contender is close: its difference to the best is at the limit, as if it were alone."""
    garnet = problems.find("garnet")(12, 4, seed=7)
    policies = [shifted(garnet.policy, 0.4, seed) for seed in range(5)]  # 2 leads, 3 is close
    flow = optimal_flow(garnet.mdp, Best(policies))
    assert flow.weights.argmax() == 3
    limit = optimal_flow(garnet.mdp, Difference(policies[2], policies[3])).limit
    costs = one_step_costs(garnet.mdp, Difference(policies[2], policies[3]))

    def predicted(question: Question) -> float:
        visits = simulate(
            garnet.mdp, question, "flow", episodes=2000, runs=60, checkpoints=[2000]
        ).visits
        return float(2000 * (costs / np.maximum(visits, 1)).sum(axis=(1, 2)).mean() / limit)

    assert predicted(Best(policies)) < 1.10
    assert predicted(Values(policies)) > 1.5


@pytest.mark.parametrize("kind", ["difference", "values", "best"])
@pytest.mark.parametrize("factor", [1024.0, 2.0**-10])
def test_the_scale_of_rewards_changes_no_action(kind: str, factor: float) -> None:
    problem, other = compared("garnet")
    policies = (problem.policy, other)
    question = (
        Difference(*policies)
        if kind == "difference"
        else (Best if kind == "best" else Values)(policies)
    )
    plain, scaled = (
        simulate(
            with_rewards_times(problem, by).mdp,
            question,
            "flow",
            episodes=150,
            runs=2,
            keep_episodes=True,
        )
        for by in (1.0, factor)
    )
    for one, two in zip(plain.datasets, scaled.datasets, strict=True):
        np.testing.assert_array_equal(one.actions, two.actions)
        np.testing.assert_array_equal(factor * one.rewards, two.rewards)


@pytest.mark.parametrize("kind", ["difference", "best"])
def test_policies_that_do_the_same_are_planned_for(kind: str) -> None:
    """There is nothing to learn of their difference, and what counts for both is visited."""
    problem = problems.find("gridworld")()
    policies = (problem.policy, problem.policy)
    question = Difference(*policies) if kind == "difference" else Best(policies)
    task = Task.of(problem.mdp, question, budget=100).without_model()
    for episodes in (1, 30):
        scores = Flow().plan(task, collected(problem, episodes)).scores
        np.testing.assert_allclose(scores.sum(axis=2), 1.0, rtol=1e-12)
    result = simulate(problem.mdp, question, "flow", episodes=60, runs=2)
    assert not np.isnan(result.standard_errors).any()
