from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar import TabularMDP, estimation_variance, occupancy, one_step_costs, simulate
from revar.problems import problems
from tests.plain_model import MODELS, Floats, PlainModel

models = st.builds(
    lambda kind, seed, by_outcome: MODELS[kind](seed, by_outcome=by_outcome),
    st.sampled_from(sorted(MODELS)),
    st.integers(0, 10_000),
    st.booleans(),
)


def value(model: PlainModel, chance: Floats, mean: Floats) -> float:
    """The value recursion, also for rows that do not sum to one."""
    values = np.zeros(model.states)
    for _ in range(model.horizon):
        ahead = mean + model.discount * np.append(values, 0.0)
        values = (model.policy * (chance * ahead).sum(axis=2)).sum(axis=1)
    return float(model.initial @ values)


def influence_of_rewards(model: PlainModel, state: int, action: int) -> float:
    """dv/dmu(s,a): the value is linear in the mean, so that one difference is exact."""
    raised = np.array(model.mean)
    raised[state, action] += 1.0
    return value(model, model.chance, raised) - value(model, model.chance, model.mean)


def influence_of_outcomes(model: PlainModel, state: int, action: int) -> Floats:
    """dv/dP(o|s,a) by central differences, the outcome's own mean reward included, [S+1]."""
    slopes = np.zeros(model.states + 1)
    step = 1e-5
    for outcome in range(model.states + 1):
        ends = []
        for change in (step, -step):
            chance = np.array(model.chance)
            chance[state, action, outcome] += change
            ends.append(value(model, chance, model.mean))
        slopes[outcome] = (ends[0] - ends[1]) / (2 * step)
    return slopes


@given(models)
def test_costs_are_the_variance_of_one_observation_s_influence(model: PlainModel) -> None:
    costs = one_step_costs(model.mdp(), model.policy)
    for state in range(model.states):
        for action in range(model.actions):
            chance = model.chance[state, action]
            weight = influence_of_rewards(model, state, action)
            slopes = influence_of_outcomes(model, state, action)
            between = chance @ (slopes - chance @ slopes) ** 2
            within = weight**2 * (chance @ model.std[state, action] ** 2)
            assert costs[state, action] == pytest.approx(between + within, rel=1e-6, abs=1e-8)


@given(models)
def test_costs_with_known_transitions_are_of_rewards_alone(model: PlainModel) -> None:
    costs = one_step_costs(model.mdp(), model.policy, known_transitions=True)
    for state in range(model.states):
        for action in range(model.actions):
            chance, mean = model.chance[state, action], model.mean[state, action]
            variance = chance @ (model.std[state, action] ** 2 + (mean - chance @ mean) ** 2)
            weight = influence_of_rewards(model, state, action)
            assert costs[state, action] == pytest.approx(weight**2 * variance, rel=1e-9, abs=1e-12)


def test_the_covariance_of_reward_and_successor_counts() -> None:
    # From state 0 one lands on state 1 (worth 1) or ends, 1/2 each. If landing also pays 1, the
    # same event moves the value by 2: variance 4/4. If landing costs 1, the two cancel.
    transitions = np.array([[[0.0, 0.5]], [[0.0, 0.0]]])
    for paid, expected in ((1.0, 1.0), (0.0, 0.25), (-1.0, 0.0)):
        mean = np.zeros((2, 1, 3))
        mean[0, 0, 1], mean[1, 0, 2] = paid, 1.0
        mdp = TabularMDP(transitions, mean, 0.0, [1.0, 0.0], 2)
        costs = one_step_costs(mdp, [[1.0], [1.0]])
        assert costs[:, 0] == pytest.approx([expected, 0.0], abs=1e-15)


def test_deterministic_transitions_cost_nothing() -> None:
    problem = problems.find("tree")()
    unknown = one_step_costs(problem.mdp, problem.policy)
    known = one_step_costs(problem.mdp, problem.policy, known_transitions=True)
    np.testing.assert_allclose(unknown, known, rtol=1e-12)


@given(models, st.integers(0, 1000))
def test_the_error_is_the_sum_of_costs_over_visits(model: PlainModel, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (model.horizon, model.states)
    behavior = rng.dirichlet(np.ones(model.actions), size=shape)
    mdp = model.mdp()
    visits = occupancy(mdp, behavior).sum(axis=0)
    for known in (False, True):
        costs = one_step_costs(mdp, model.policy, known_transitions=known)
        needed = costs > 0
        found = estimation_variance(mdp, model.policy, behavior, known_transitions=known)
        assert found == pytest.approx((costs[needed] / visits[needed]).sum(), rel=1e-12)


@pytest.mark.parametrize("known", [False, True])
def test_a_needed_pair_that_is_never_visited_makes_the_error_infinite(known: bool) -> None:
    problem = problems.find("tree")()
    behavior = np.array(problem.policy)
    behavior[3] = [0.0, 1.0]
    found = estimation_variance(problem.mdp, problem.policy, behavior, known_transitions=known)
    assert found == np.inf
    # A state that the behavior never enters is as bad as an action that it never takes.
    behavior = np.array(problem.policy)
    behavior[0] = [1.0, 0.0]
    found = estimation_variance(problem.mdp, problem.policy, behavior, known_transitions=known)
    assert found == np.inf


def test_pairs_that_nothing_depends_on_need_no_visit() -> None:
    problem = problems.find("tree")()
    policy = np.array(problem.policy)
    policy[0] = [1.0, 0.0]  # the target policy never enters the right half
    left_only = estimation_variance(problem.mdp, policy, policy)
    assert 0 < left_only < np.inf
    # A reward without noise and with known transitions is learned by one visit, or by none.
    model = replace(MODELS["general"](4), std=np.zeros((5, 3, 6)))
    elsewhere = np.eye(model.actions)[np.zeros(model.states, dtype=int)]
    assert estimation_variance(model.mdp(), model.policy, elsewhere, known_transitions=True) == 0.0
    assert estimation_variance(model.mdp(), model.policy, elsewhere) == np.inf


def test_a_large_mean_leaves_the_costs_alone() -> None:
    # Three successors of equal value: rounding must not be multiplied by the mean.
    transitions = np.zeros((4, 1, 4))
    transitions[0, 0, 1:] = 0.3, 0.3, 0.4
    start, always = [1.0, 0.0, 0.0, 0.0], np.ones((4, 1))
    for mean in (0.0, 1e6, 1e9):
        mdp = TabularMDP(transitions, np.full((4, 1), mean), 1e-3, start, 2)
        found = estimation_variance(mdp, always, always)
        # The two rewards of an episode, and the successors' values, equal but for rounding.
        assert found == pytest.approx(2e-6, rel=1e-3)
        result = simulate(mdp, always, "on-policy", episodes=1000, runs=50, checkpoints=[1000])
        # A variance from 1000 draws has a relative standard deviation of 4.5%.
        assert np.all(np.abs(1000 * result.standard_errors**2 / 2e-6 - 1.0) < 0.4)
